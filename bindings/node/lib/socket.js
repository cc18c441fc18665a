// The base class of all sockets: sending, receiving, endpoints, closing.
//
// Sending: a message goes to the engine at once. Receiving: one call of the addon takes a batch of the queued messages and packs it into
// a chunk of memory that all sockets of the thread share. Each receive then cuts one message from the chunk. Both return resolved
// promises if they need not wait. After a number of such promises the event loop gets a turn.
"use strict"

const { addon, calls, onWaitEnd, runtime } = require("./native")
const { AGAIN, checkResult, errnoError, makeError, stateError } = require("./errors")
const contexts = require("./context")
const { endLoan } = require("./loan")
const { NOTHING, plainMessage } = require("./messages")
const options = require("./options")

const CHUNK = 64 * 1024
// Length of the longest part that is stored in a chunk, as in src/socket.rs.
const SMALL_MAX = 4096
const LARGE = 1 << 30
const MORE = 1 << 31
const LENGTH = LARGE - 1
// Result of a send: the part is a buffer of `loan`.
const LENT = 1
const TOO_LONG = -(2 ** 31)
// Maximal number of parts in the first batch, and in later ones.
const FIRST_TABLE = 16
const TABLE = 1024
// Number of operations without a wait between two turns of the event loop.
const PATIENCE = 512
// A buffer of `loan` counts as this many operations, because Node.js releases its memory in a turn of the event loop.
const LOAN_PATIENCE = 64
// Number of consecutive attempts that may fail after a wake-up before the event loop gets a turn.
const ATTEMPTS = 3

const POLLIN = 1
const POLLOUT = 2

const EVENTS = 15
const STATISTICS = 0x54410001
// In the order of zmq_tautline_statistics_t.
const COUNTS = [
  "messagesSent",
  "bytesSent",
  "messagesReceived",
  "bytesReceived",
  "droppedFull",
  "droppedUnroutable",
  "lostMessages",
  "queuedOut",
  "queuedIn",
  "peers",
  "reconnects",
  "failedConnects",
  "failedHandshakes",
]

const PEERS = 0x54410005
// Layout of zmq_tautline_peer_t: numbers of 64 bits, numbers of 32 bits, the routing id, and texts.
const PEER_COUNTS = [
  "id",
  "connectedSince",
  "messagesSent",
  "bytesSent",
  "messagesReceived",
  "bytesReceived",
  "queuedOut",
  "queuedOutBytes",
  "queuedIn",
  "queuedInBytes",
  "droppedFull",
  "queueFullCount",
  "reconnects",
  "roundTripMicros",
]
const PEER_STATES = ["connecting", "connected", "closed", "lingering"]
const PEER_SMALL = 4
const PEER_ROUTING_ID = 256
const PEER_TEXTS = [
  ["remote", 128],
  ["local", 128],
  ["endpoint", 256],
  ["userId", 192],
  ["peerAddress", 64],
  ["mechanism", 16],
]
const PEER_SIZE =
  8 * PEER_COUNTS.length + 4 * PEER_SMALL + PEER_ROUTING_ID + PEER_TEXTS.reduce((sum, [, room]) => sum + room, 0)

// Interval of the checks for peers or subscriptions during a wait, in milliseconds.
const POLL_INTERVAL = 10

// Number that belongs to no socket.
const NO_SOCKET = 2 ** 32 - 1

const DONE = Promise.resolve()
const NONE = []
const END = { value: undefined, done: true }

let pool = Buffer.alloc(0)
let poolUsed = 0
let patience = PATIENCE

const again = () => makeError("EAGAIN", "Operation was not possible or timed out")
const closed = () => makeError("EBADF", "Socket is closed")

// Returns a peer from the zmq_tautline_peer_t at this offset.
function peer(room, at) {
  const counts = new BigUint64Array(room, at, PEER_COUNTS.length)
  at += 8 * PEER_COUNTS.length
  const [state, flags, routingIdLength] = new Uint32Array(room, at, PEER_SMALL)
  at += 4 * PEER_SMALL
  const bytes = Buffer.from(room)
  const peer = Object.fromEntries(PEER_COUNTS.map((name, place) => [name, Number(counts[place])]))
  const { connectedSince } = peer
  peer.connectedSince = connectedSince === 0 ? null : new Date(connectedSince / 1000)
  peer.state = PEER_STATES[state] ?? PEER_STATES[0]
  peer.isOutgoing = (flags & 1) !== 0
  peer.usesSharedMemory = (flags & 2) !== 0
  peer.routingId = Buffer.from(bytes.subarray(at, at + routingIdLength))
  at += PEER_ROUTING_ID
  for (const [name, length] of PEER_TEXTS) {
    peer[name] = bytes.toString("utf8", at, bytes.indexOf(0, at))
    at += length
  }
  return peer
}

// Empties buffers that were sent without a copy. Returns 0.
function endLoans(parts) {
  for (const part of parts) endLoan(part)
  patience -= LOAN_PATIENCE * parts.length
  return 0
}

class Socket {
  #native
  // The number of the socket for `calls`.
  #number
  #context
  #closed = false
  // True while a proxy uses the socket.
  #lent = false
  #observer = null
  #sendTimeout = -1
  #receiveTimeout = -1
  // The last batch. The first `#next` of its `#count` parts have been taken, and the next part begins at `#at`.
  #chunk = pool
  #table = null
  #count = 0
  #next = 0
  #at = 0
  // Pending operations: { resolve, reject, timer }, for the writer also the message and its address.
  #reader = null
  #writer = null
  // True if a pending operation keeps the process alive.
  #keepsAlive = true

  constructor(type, { context = contexts.context, ...values } = {}) {
    this.#context = context
    const native = contexts.native(context)
    try {
      this.#native = new addon.NativeSocket(runtime, native, type, this)
    } catch (cause) {
      throw Number(cause.message) < 0 ? errnoError(-cause.message) : cause
    }
    this.#number = this.#native.number
    options.assign(this, values)
  }

  get context() {
    return this.#context
  }

  get closed() {
    return this.#closed
  }

  get events() {
    if (this.#observer === null) {
      const { Observer } = require("./observer")
      this.#observer = new Observer(this)
    }
    return this.#observer
  }

  get readable() {
    return this.#next < this.#count || (this.#state() & POLLIN) !== 0
  }

  get writable() {
    return this.#writer === null && (this.#state() & POLLOUT) !== 0
  }

  get statistics() {
    if (this.#closed) throw closed()
    if (this.#lent) throw makeError("EBUSY", "Socket is used by a proxy")
    const numbers = new BigUint64Array(COUNTS.length)
    checkResult(this.#native.getOption(STATISTICS, new Uint8Array(numbers.buffer)))
    return Object.fromEntries(COUNTS.map((name, place) => [name, Number(numbers[place])]))
  }

  get peers() {
    // More peers may connect before the second call.
    const room = new ArrayBuffer(PEER_SIZE * (this.statistics.peers + 16))
    const length = checkResult(this.#native.getOption(PEERS, new Uint8Array(room)))
    return Array.from({ length: length / PEER_SIZE }, (_, place) => peer(room, place * PEER_SIZE))
  }

  waitForPeers(count, timeoutMs) {
    return this.#waitFor(() => this.#native.hasPeers(count), count, timeoutMs)
  }

  waitForSubscriptions(count, timeoutMs) {
    return this.#waitFor(() => this.#native.hasSubscriptions(count), count, timeoutMs)
  }

  async #waitFor(query, count, timeoutMs = -1) {
    if (!Number.isInteger(count) || count < 0 || count >= 2 ** 32) throw new RangeError("Count must be an integer, 0 or more")
    const end = timeoutMs < 0 ? Infinity : performance.now() + timeoutMs
    for (;;) {
      if (this.#closed) throw closed()
      if (this.#lent) throw makeError("EBUSY", "Socket is used by a proxy")
      const result = query()
      if (result === 0) return true
      if (result !== AGAIN) throw errnoError(-result)
      const remaining = end - performance.now()
      if (remaining <= 0) return false
      await new Promise(resolve => setTimeout(resolve, Math.min(POLL_INTERVAL, remaining)))
    }
  }

  #state() {
    if (this.#closed || this.#lent) return 0
    const state = new Int32Array(1)
    checkResult(this.#native.getOption(EVENTS, new Uint8Array(state.buffer)))
    return state[0]
  }

  // ---- sending

  send(message) {
    if (this.#writer !== null) return Promise.reject(this.#busy("writing", "send"))
    const result = this.#attempt(message, undefined)
    return result === 0 && --patience > 0 ? DONE : this.#sent(result, message, undefined)
  }

  // Sends to `address`: { routingId, group }.
  #sendAddressed(message, address) {
    if (this.#writer !== null) return Promise.reject(this.#busy("writing", "send"))
    return this.#sent(this.#attempt(message, address), message, address)
  }

  // Tries to send. Returns 0, AGAIN or another error.
  #attempt(message, address) {
    if (address !== undefined) {
      const plain = plainMessage(message)
      const bytes = typeof plain === "string" ? Buffer.from(plain) : plain
      const result = this.#native.sendAddressed(bytes, address.routingId ?? 0, address.group ?? NOTHING)
      return result === LENT ? endLoans([bytes]) : result
    }
    if (message instanceof Uint8Array && message.length > 0 && !(message.buffer instanceof SharedArrayBuffer)) {
      const result = calls.send(this.#number, message, false)
      return result === LENT ? endLoans([message]) : result
    }
    if (typeof message === "string") return this.#sendText(message, false)
    const plain = plainMessage(message)
    const parts = Array.isArray(plain) ? plain : [plain]
    // A message may contain a buffer of `loan` several times, so the buffers keep their memory until all parts are sent.
    let lent = NONE
    for (let index = 0; index < parts.length; index++) {
      const result = this.#sendPart(parts[index], index + 1 < parts.length)
      if (result < 0) {
        // Only the first part can fail, except for lack of memory.
        endLoans(lent)
        return result
      }
      if (result === LENT) lent = [...lent, parts[index]]
    }
    return endLoans(lent)
  }

  #sendPart(part, more) {
    return typeof part === "string" ? this.#sendText(part, more) : calls.send(this.#number, part, more)
  }

  #sendText(text, more) {
    const result = calls.sendText(this.#number, text, more)
    return result === TOO_LONG ? calls.send(this.#number, Buffer.from(text), more) : result
  }

  #sent(result, message, address) {
    if (result === 0) {
      if (patience > 0) return DONE
      patience = PATIENCE
      return new Promise(resolve => setImmediate(resolve))
    }
    if (result !== AGAIN) return Promise.reject(this.#failure(result, true))
    if (this.#sendTimeout === 0) return Promise.reject(again())
    return new Promise((resolve, reject) => {
      const timer = this.#sendTimeout > 0 ? setTimeout(() => this.#giveUp(this.#endWriting()), this.#sendTimeout) : null
      this.#writer = { resolve, reject, timer, message, address }
      this.#arm()
    })
  }

  #endWriting() {
    const writer = this.#writer
    this.#writer = null
    clearTimeout(writer.timer)
    return writer
  }

  // ---- receiving

  receive() {
    if (this.#reader !== null) return Promise.reject(this.#busy("reading", "receive"))
    if (--patience <= 0) {
      // Give the event loop a turn, then continue like a receive that had to wait.
      patience = PATIENCE
      const promise = this.#receiveLater()
      setImmediate(() => this.#progress())
      return promise
    }
    if (this.#next < this.#count) return Promise.resolve(this.#take())
    const count = this.#fill()
    if (count > 0) return Promise.resolve(this.#take())
    if (count !== AGAIN) return Promise.reject(this.#failure(count, false))
    if (this.#receiveTimeout === 0) return Promise.reject(again())
    const promise = this.#receiveLater()
    this.#arm()
    return promise
  }

  #receiveLater() {
    return new Promise((resolve, reject) => {
      const timer =
        this.#receiveTimeout > 0 ? setTimeout(() => this.#giveUp(this.#endReading()), this.#receiveTimeout) : null
      this.#reader = { resolve, reject, timer }
    })
  }

  #endReading() {
    const reader = this.#reader
    this.#reader = null
    clearTimeout(reader.timer)
    return reader
  }

  // Receives the next batch. Returns the number of its parts, or an error.
  #fill() {
    if (pool.length - poolUsed < SMALL_MAX) {
      pool = Buffer.allocUnsafeSlow(CHUNK)
      poolUsed = 0
    }
    // After a full batch, the socket gets a larger table. The first word of the table is the number of bytes used in the chunk.
    if (this.#table === null) this.#table = new Uint32Array(1 + FIRST_TABLE)
    else if (this.#count === this.#table.length - 1 && this.#count < TABLE) {
      this.#table = new Uint32Array(1 + 4 * this.#count)
    }
    const count = calls.receive(this.#number, pool, poolUsed, this.#table)
    this.#next = 0
    if (count < 0) {
      this.#count = 0
      return count
    }
    this.#count = count
    this.#chunk = pool
    this.#at = poolUsed
    poolUsed += this.#table[0]
    return count
  }

  // Takes the next message of the batch. Its last parts may be in the next batch.
  #take() {
    const first = this.#table[++this.#next]
    if ((first & MORE) === 0) return [this.#cut(first)]
    const parts = [this.#cut(first)]
    for (;;) {
      if (this.#next === this.#count) checkResult(this.#fill())
      const entry = this.#table[++this.#next]
      parts.push(this.#cut(entry))
      if ((entry & MORE) === 0) return parts
    }
  }

  #cut(entry) {
    if ((entry & LARGE) === 0) {
      const start = this.#at
      this.#at = start + (entry & LENGTH)
      return this.#chunk.subarray(start, this.#at)
    }
    const part = Buffer.allocUnsafeSlow(this.#native.largePartLength())
    this.#native.takeLargePart(part)
    return part
  }

  [Symbol.asyncIterator]() {
    return {
      next: () => {
        if (this.#closed) return Promise.resolve(END)
        if (this.#next < this.#count && patience > 1 && this.#reader === null) {
          patience--
          return Promise.resolve({ value: this.#take(), done: false })
        }
        return this.receive().then(
          value => ({ value, done: false }),
          reason => {
            if (this.#closed) return END
            throw reason
          },
        )
      },
      return: () => Promise.resolve(END),
    }
  }

  // ---- waiting

  // Waits until the pending operations can continue.
  #arm() {
    const interest = (this.#reader === null ? 0 : POLLIN) | (this.#writer === null ? 0 : POLLOUT)
    if (calls.wait(this.#number, interest, this.#keepsAlive) !== 0) this.#progress()
  }

  // Called by the addon at the end of a wait.
  [onWaitEnd](status) {
    this.#progress()
  }

  // Retries the pending operations. Waits again if an operation is still pending.
  #progress() {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (this.#closed || this.#lent) return
      if (this.#writer !== null) this.#progressWriting()
      if (this.#reader !== null) this.#progressReading()
      if (this.#reader === null && this.#writer === null) return
      const interest = (this.#reader === null ? 0 : POLLIN) | (this.#writer === null ? 0 : POLLOUT)
      if (calls.wait(this.#number, interest, this.#keepsAlive) === 0) return
    }
    setImmediate(() => this.#progress())
  }

  #progressWriting() {
    const { message, address } = this.#writer
    let result
    try {
      result = this.#attempt(message, address)
    } catch (reason) {
      // The program changed the message's memory during the wait.
      this.#endWriting().reject(reason)
      return
    }
    if (result === 0) this.#endWriting().resolve()
    else if (result !== AGAIN) this.#endWriting().reject(errnoError(-result))
  }

  #progressReading() {
    try {
      const count = this.#next < this.#count ? 1 : this.#fill()
      if (count > 0) {
        const message = this.#take()
        this.#endReading().resolve(message)
      } else if (count !== AGAIN) this.#endReading().reject(errnoError(-count))
      else if (this.#receiveTimeout === 0) this.#endReading().reject(again())
    } catch (reason) {
      this.#endReading().reject(reason)
    }
  }

  #giveUp(operation) {
    if (!this.#closed) this.#arm()
    operation.reject(again())
  }

  #busy(doing, operation) {
    if (this.#closed) throw closed()
    return makeError("EBUSY", `Socket is busy ${doing}; only one ${operation} operation may be in progress at any time`)
  }

  // Returns the error of an operation. ENOTSOCK means that the addon no longer has the socket.
  #failure(result, sending) {
    if (this.#closed) throw closed()
    return this.#lent ? makeError("EBUSY", "Socket is used by a proxy") : stateError(-result, this.type, sending)
  }

  // ---- endpoints

  async bind(address) {
    this.bindSync(address)
  }

  async unbind(address) {
    this.unbindSync(address)
  }

  bindSync(address) {
    this.#endpoint("bind", address)
  }

  unbindSync(address) {
    this.#endpoint("unbind", address)
  }

  connect(address) {
    this.#endpoint("connect", address)
  }

  disconnect(address) {
    this.#endpoint("disconnect", address)
  }

  #endpoint(operation, address) {
    if (typeof address !== "string") throw new TypeError("Address must be a string")
    if (this.#closed) throw closed()
    if (this.#lent) throw makeError("EBUSY", "Socket is used by a proxy")
    checkResult(this.#native[operation](address), address)
  }

  // ---- the end

  close() {
    if (this.#closed) return
    this.#closed = true
    this.#count = this.#next = 0
    this.#native.close()
    this.#number = NO_SOCKET
    for (const end of [this.#reader && this.#endReading(), this.#writer && this.#endWriting()]) end?.reject(again())
  }

  // ---- for the other modules of this package

  static internals = {
    native: socket => socket.#native,
    sendAddressed: (socket, message, address) => socket.#sendAddressed(message, address),
    isBusy: socket => socket.#reader !== null || socket.#writer !== null,
    // Returns the messages that the binding received and the program has not taken.
    leftover(socket) {
      const messages = []
      while (socket.#next < socket.#count) messages.push(socket.#take())
      return messages
    },
    lend(socket, on) {
      socket.#lent = on
    },
    doNotKeepAlive(socket) {
      socket.#keepsAlive = false
    },
    sendTimeout: [socket => socket.#sendTimeout, (socket, value) => (socket.#sendTimeout = value)],
    receiveTimeout: [socket => socket.#receiveTimeout, (socket, value) => (socket.#receiveTimeout = value)],
  }
}

const { internals } = Socket
delete Socket.internals

options.accessors(Socket.prototype, internals.native)
options.define(Socket.prototype, options.everySocket)

module.exports = { Socket, internals }
