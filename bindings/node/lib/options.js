// The options of sockets and contexts: their names here, their numbers in zmq.h, and their types. A row is
// [name, number, type, access]. Access "get" marks an option that can only be read, "set" one that can only be set.
"use strict"

const { optionError } = require("./errors")

const everySocket = [
  ["affinity", 4, "Uint64"],
  ["rate", 8, "Int32"],
  ["recoveryInterval", 9, "Int32"],
  ["type", 16, "Int32", "get"],
  ["linger", 17, "Int32"],
  ["reconnectInterval", 18, "Int32"],
  ["backlog", 19, "Int32"],
  ["reconnectMaxInterval", 21, "Int32"],
  ["maxMessageSize", 22, "Int64"],
  ["lastEndpoint", 32, "String", "get"],
  ["tcpKeepalive", 34, "Int32"],
  ["tcpKeepaliveCount", 35, "Int32"],
  ["tcpKeepaliveIdle", 36, "Int32"],
  ["tcpKeepaliveInterval", 37, "Int32"],
  ["tcpAcceptFilter", 38, "String"],
  ["immediate", 39, "Bool"],
  ["ipv6", 42, "Bool"],
  ["securityMechanism", 43, "Mechanism", "get"],
  ["plainServer", 44, "Bool"],
  ["plainUsername", 45, "String"],
  ["plainPassword", 46, "String"],
  ["curveServer", 47, "Bool"],
  ["curvePublicKey", 48, "Key"],
  ["curveSecretKey", 49, "Key"],
  ["curveServerKey", 50, "Key"],
  ["zapDomain", 55, "String"],
  ["typeOfService", 57, "Int32"],
  ["handshakeInterval", 66, "Int32"],
  ["socksProxy", 68, "String"],
  ["heartbeatInterval", 75, "Int32"],
  ["heartbeatTimeToLive", 76, "Int32"],
  ["heartbeatTimeout", 77, "Int32"],
  ["connectTimeout", 79, "Int32"],
  ["tcpMaxRetransmitTimeout", 80, "Int32"],
  ["threadSafe", 81, "Bool", "get"],
  ["multicastMaxTransportDataUnit", 84, "Int32"],
  ["vmciBufferSize", 85, "Uint64"],
  ["vmciBufferMinSize", 86, "Uint64"],
  ["vmciBufferMaxSize", 87, "Uint64"],
  ["vmciConnectTimeout", 88, "Int32"],
  ["interface", 92, "String"],
  ["zapEnforceDomain", 93, "Bool"],
  ["loopbackFastPath", 94, "Bool"],
  ["tlsKey", 103, "String", "set"],
  ["tlsCertificate", 104, "String", "set"],
  ["tlsTrust", 105, "String", "set"],
  ["tlsHostname", 106, "String", "set"],
  ["tlsTrustSystem", 107, "Bool", "set"],
]

const writable = [
  ["sendBufferSize", 11, "Int32"],
  ["sendHighWaterMark", 23, "Int32"],
  ["multicastHops", 25, "Int32"],
]

const readable = [
  ["receiveBufferSize", 12, "Int32"],
  ["receiveHighWaterMark", 24, "Int32"],
]

const named = {
  routingId: ["routingId", 5, "String"],
  conflate: ["conflate", 54, "Bool", "set"],
  invertMatching: ["invertMatching", 74, "Bool"],
  noDrop: ["noDrop", 69, "Bool", "set"],
  probeRouter: ["probeRouter", 51, "Bool", "set"],
  correlate: ["correlate", 52, "Bool", "set"],
  relaxed: ["relaxed", 53, "Bool", "set"],
  mandatory: ["mandatory", 33, "Bool", "set"],
  handover: ["handover", 56, "Bool", "set"],
  manual: ["manual", 71, "Bool", "set"],
  welcomeMessage: ["welcomeMessage", 72, "String", "set"],
  notify: ["notify", 73, "Bool", "set"],
}

const context = [
  ["ioThreads", 1, "Int32"],
  ["maxSockets", 2, "Int32"],
  ["maxSocketsLimit", 3, "Int32", "get"],
  ["threadPriority", 3, "Int32", "set"],
  ["threadSchedulingPolicy", 4, "Int32", "set"],
  ["maxMessageSize", 5, "Int32"],
  ["ipv6", 42, "Bool"],
  ["blocky", 70, "Bool"],
]

// Defines the options as properties that call `get…Option` and `set…Option` of their object.
function define(prototype, rows) {
  for (const [name, number, type, access] of rows) {
    const property = { configurable: true, enumerable: true }
    if (access !== "set") {
      property.get = function () {
        return this[`get${type}Option`](number)
      }
    }
    if (access !== "get") {
      property.set = function (value) {
        this[`set${type}Option`](number, value)
      }
    }
    Object.defineProperty(prototype, name, property)
  }
}

const wantNumber = value => {
  if (typeof value !== "number") throw new TypeError("Option value must be a number")
  return value
}

const wantBool = value => {
  if (typeof value !== "boolean") throw new TypeError("Option value must be a boolean")
  return value
}

// Sets options by name, as constructors do.
function assign(object, values) {
  for (const [name, value] of Object.entries(values)) {
    if (!(name in object)) throw new TypeError(`There is no option ${name}`)
    object[name] = value
  }
}

// Form of a type in memory: [bytes, write, read].
const forms = {
  Int32: [4, (view, value) => view.setInt32(0, wantNumber(value), little), view => view.getInt32(0, little)],
  Uint32: [4, (view, value) => view.setUint32(0, wantNumber(value), little), view => view.getUint32(0, little)],
  Bool: [4, (view, value) => view.setInt32(0, wantBool(value) ? 1 : 0, little), view => view.getInt32(0, little) !== 0],
  Int64: [8, (view, value) => view.setBigInt64(0, whole(value), little), view => Number(view.getBigInt64(0, little))],
  Uint64: [8, (view, value) => view.setBigUint64(0, whole(value), little), view => Number(view.getBigUint64(0, little))],
}

const whole = value => BigInt(Math.trunc(wantNumber(value)))
const little = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1

// Defines the protected methods of sockets. `native` returns the native socket.
function accessors(prototype, native) {
  const get = (socket, number, room) => {
    const result = native(socket).getOption(number, room)
    if (result < 0) throw optionError(-result, () => native(socket).optionReadError(number, room.length))
    return result
  }
  const set = (socket, number, value) => {
    const result = value === null ? native(socket).clearOption(number) : native(socket).setOption(number, value)
    if (result < 0) throw optionError(-result, () => native(socket).optionError(number, value ?? NOTHING))
  }
  for (const [type, [bytes, write, read]] of Object.entries(forms)) {
    prototype[`get${type}Option`] = function (number) {
      const room = new Uint8Array(bytes)
      get(this, number, room)
      return read(new DataView(room.buffer))
    }
    prototype[`set${type}Option`] = function (number, value) {
      const room = new Uint8Array(bytes)
      write(new DataView(room.buffer), value)
      set(this, number, room)
    }
  }
  prototype.getStringOption = function (number) {
    const room = Buffer.alloc(1024)
    const length = get(this, number, room)
    if (length === 0) return null
    const end = room[length - 1] === 0 ? length - 1 : length
    return end === 0 ? null : room.toString("utf8", 0, end)
  }
  prototype.setStringOption = function (number, value) {
    if (value === null) set(this, number, null)
    else if (typeof value === "string") set(this, number, Buffer.from(value))
    else if (value instanceof Uint8Array) set(this, number, value)
    else throw new TypeError("Option value must be a string, a buffer or null")
  }
  // Reads a key as text. A key that is not set is null.
  prototype.getKeyOption = function (number) {
    const room = Buffer.alloc(41)
    const length = native(this).getOption(number, room)
    const text = room.toString("latin1", 0, 40)
    return length < 0 || text === NO_KEY ? null : text
  }
  prototype.setKeyOption = prototype.setStringOption
  prototype.getMechanismOption = function (number) {
    return [null, "plain", "curve", "gssapi"][this.getInt32Option(number)] ?? null
  }
}

const NOTHING = Buffer.alloc(0)
// 32 zero bytes.
const NO_KEY = "0".repeat(40)

module.exports = {
  accessors,
  assign,
  context,
  define,
  everySocket,
  named,
  readable,
  wantBool,
  wantNumber,
  writable,
}
