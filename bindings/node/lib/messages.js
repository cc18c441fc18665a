// Converts values for sending: bytes and strings stay as they are, all other values become one of them.
"use strict"

const NOTHING = new Uint8Array(0)

// Returns a part in a form that the addon accepts. Copies memory that other threads can write to.
function plain(part) {
  if (typeof part === "string") return part
  if (part instanceof Uint8Array && !isShared(part.buffer)) {
    if (part.length === 0 && isDetached(part.buffer)) {
      throw new TypeError("The memory of this buffer is no longer there: it was transferred, or sent as a buffer of loan()")
    }
    return part
  }
  if (part === null) return NOTHING
  if (ArrayBuffer.isView(part)) {
    const bytes = new Uint8Array(part.buffer, part.byteOffset, part.byteLength)
    return isShared(part.buffer) ? bytes.slice() : bytes
  }
  if (part instanceof ArrayBuffer) return new Uint8Array(part)
  if (isShared(part)) return new Uint8Array(part).slice()
  if (typeof part === "number" || typeof part === "bigint" || typeof part === "boolean") return String(part)
  if (part === undefined) throw new TypeError("Message must be present")
  throw new TypeError("A message must be a string, a number, a buffer, null, or an array of them")
}

// Node.js 18 and 20 have no `detached`.
function isDetached(memory) {
  try {
    new Uint8Array(memory)
    return false
  } catch {
    return true
  }
}

const isShared = memory => memory instanceof SharedArrayBuffer

// Returns a message in such a form: one part, or an array of parts.
function plainMessage(message) {
  if (!Array.isArray(message)) return plain(message)
  if (message.length === 0) throw new TypeError("A message must have at least one part")
  return message.map(plain)
}

module.exports = { NOTHING, plain, plainMessage }
