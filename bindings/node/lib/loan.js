// Buffers in memory that ipc peers of the same user can read in place. Such a buffer is sent without a copy.
"use strict"

const { constants } = require("node:buffer")
const { addon, runtime } = require("./native")

// Smaller bodies are always copied.
const SMALLEST = 64 * 1024
// The memory for loans has at most this size.
const LARGEST = Math.min(1024 ** 3, constants.MAX_LENGTH)

function loan(size) {
  const isPossible = Number.isInteger(size) && size >= SMALLEST && size <= LARGEST
  return (isPossible && addon.loan(runtime, size)) || Buffer.alloc(size)
}

// Empties a buffer of `loan` that was sent.
function endLoan(part) {
  addon.endLoan(runtime, part)
}

module.exports = { endLoan, loan }
