// Events of a socket's connections.
"use strict"

const { EventEmitter } = require("node:events")
const { threadId } = require("node:worker_threads")
const { checkResult, errnoError, makeError } = require("./errors")
const { stable } = require("./sockets")
const { internals } = require("./socket")

// All events of libzmq's first monitor interface.
const EVERYTHING = 0xffff

// Maps the event numbers of zmq.h to the name here and the meaning of the value.
const events = new Map([
  [0x0001, ["connect"]],
  [0x0002, ["connect:delay"]],
  [0x0004, ["connect:retry", value => ({ interval: value })]],
  [0x0008, ["bind"]],
  [0x0010, ["bind:error", systemError]],
  [0x0020, ["accept"]],
  [0x0040, ["accept:error", systemError]],
  [0x0080, ["close"]],
  [0x0100, ["close:error", systemError]],
  [0x0200, ["disconnect"]],
  [0x0400, ["end"]],
  [0x0800, ["handshake:error:other", systemError]],
  [0x1000, ["handshake"]],
  [0x2000, ["handshake:error:protocol", protocolError]],
  [0x4000, ["handshake:error:auth", authError]],
])

const protocolErrors = new Map([
  [0x10000000, "ERR_ZMTP_UNSPECIFIED"],
  [0x10000001, "ERR_ZMTP_UNEXPECTED_COMMAND"],
  [0x10000002, "ERR_ZMTP_INVALID_SEQUENCE"],
  [0x10000003, "ERR_ZMTP_KEY_EXCHANGE"],
  [0x10000011, "ERR_ZMTP_MALFORMED_COMMAND_UNSPECIFIED"],
  [0x10000012, "ERR_ZMTP_MALFORMED_COMMAND_MESSAGE"],
  [0x10000013, "ERR_ZMTP_MALFORMED_COMMAND_HELLO"],
  [0x10000014, "ERR_ZMTP_MALFORMED_COMMAND_INITIATE"],
  [0x10000015, "ERR_ZMTP_MALFORMED_COMMAND_ERROR"],
  [0x10000016, "ERR_ZMTP_MALFORMED_COMMAND_READY"],
  [0x10000017, "ERR_ZMTP_MALFORMED_COMMAND_WELCOME"],
  [0x10000018, "ERR_ZMTP_INVALID_METADATA"],
  [0x11000001, "ERR_ZMTP_CRYPTOGRAPHIC"],
  [0x11000002, "ERR_ZMTP_MECHANISM_MISMATCH"],
  [0x20000000, "ERR_ZAP_UNSPECIFIED"],
  [0x20000001, "ERR_ZAP_MALFORMED_REPLY"],
  [0x20000002, "ERR_ZAP_BAD_REQUEST_ID"],
  [0x20000003, "ERR_ZAP_BAD_VERSION"],
  [0x20000004, "ERR_ZAP_INVALID_STATUS_CODE"],
  [0x20000005, "ERR_ZAP_INVALID_METADATA"],
])

// Reads a number of 64 bits in the machine's byte order.
const word = bytes => new BigUint64Array(new Uint8Array(bytes).buffer)[0]

function systemError(value) {
  return { error: errnoError(value) }
}

function protocolError(value) {
  const reason = new Error("The peer broke the protocol")
  reason.code = protocolErrors.get(value) ?? "ERR_ZMTP_UNSPECIFIED"
  return { error: reason }
}

function authError(value) {
  const reason = new Error("Authentication failed")
  reason.status = value
  return { error: reason }
}

let observers = 0

// Events of a bound endpoint. All others can concern bound or connected endpoints.
const atBoundEnd = new Set(["bind", "bind:error", "accept", "accept:error"])

class Observer {
  #pair
  #emitter = null
  // The bound endpoints.
  #bound = new Set()

  constructor(socket) {
    this.#bound.add(socket.lastEndpoint)
    const name = `inproc://tautline.monitor.${process.pid}.${threadId}.${++observers}`
    checkResult(internals.native(socket).monitor(name, EVERYTHING))
    this.#pair = new stable.Pair({ context: socket.context, linger: 0 })
    this.#pair.connect(name)
  }

  get closed() {
    return this.#pair.closed
  }

  close() {
    this.#pair.close()
  }

  async receive() {
    if (this.#emitter !== null) throw makeError("EBUSY", "The observer is in event emitter mode")
    return this.#next()
  }

  async #next() {
    const parts = await this.#pair.receive()
    const values = Number(word(parts[1]))
    const [type, details] = events.get(Number(word(parts[0]))) ?? ["unknown"]
    const value = values > 0 ? Number(word(parts[2])) : 0
    const [local, remote, routingId, peerAddress, userId, reason, mechanism, credential, refusal] = parts.slice(2 + values)
    // The socket was closed: this is the last event.
    if (type === "end") this.close()
    const event = { type }
    const address = this.#address(type, local.toString(), remote.toString())
    if (address !== "") event.address = address
    if (details) Object.assign(event, details(value))
    // Add only the known properties, because programs may compare events.
    if (local.length > 0 && remote.length > 0) {
      event.local = local.toString()
      event.remote = remote.toString()
    }
    if (routingId.length > 0) event.routingId = routingId
    if (peerAddress.length > 0) event.peerAddress = peerAddress.toString()
    if (userId.length > 0) event.userId = userId.toString()
    if (reason.length > 0) event.reason = reason.toString()
    if (mechanism !== undefined) event.claim = { mechanism: mechanism.toString(), credential }
    if (refusal?.length > 0) event.refusalReason = refusal.toString()
    return event
  }

  // Returns the endpoint that the program has bound or connected.
  #address(type, local, remote) {
    if (atBoundEnd.has(type)) {
      this.#bound.add(local)
      return local
    }
    return remote === "" || this.#bound.has(local) ? local : remote
  }

  async *[Symbol.asyncIterator]() {
    while (!this.closed) {
      try {
        yield await this.receive()
      } catch (reason) {
        if (this.closed) return
        throw reason
      }
    }
  }

  on(type, listener) {
    this.#emit().on(type, listener)
    return this
  }

  off(type, listener) {
    this.#emit().off(type, listener)
    return this
  }

  #emit() {
    if (this.#emitter === null) {
      if (internals.isBusy(this.#pair)) throw makeError("EBUSY", "The observer is receiving")
      this.#emitter = new EventEmitter()
      this.#run()
    }
    return this.#emitter
  }

  async #run() {
    while (!this.closed) {
      let event
      try {
        event = await this.#next()
      } catch {
        return
      }
      // An exception of a listener is not caught, as in any emitter.
      this.#emitter.emit(event.type, event)
    }
  }
}

module.exports = { Observer }
