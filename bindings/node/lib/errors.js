// Exceptions with a code, from the negative numbers that the addon returns.
"use strict"

const os = require("node:os")
const { describeError } = require("./endpoints")
const { addon } = require("./native")

const numbers = new Map([...Object.entries(os.constants.errno), ...addon.errorCodes()])
const names = new Map([...numbers].map(([name, number]) => [number, name]))

// Error numbers for which the system has two names.
names.set(numbers.get("EAGAIN"), "EAGAIN").set(numbers.get("ENOTSUP"), "ENOTSUP")

// Texts that differ from the system's. All are the texts of `zeromq`.
const texts = {
  EAGAIN: "Operation was not possible or timed out",
  EBADF: "Socket is closed",
  EFSM: "Operation cannot be accomplished in current state",
  EHOSTUNREACH: "Host unreachable",
  EMTHREAD: "No thread available",
  ENOCOMPATPROTO: "The protocol is not compatible with the socket type",
  ENOENT: "No such endpoint",
  ETERM: "Context was terminated",
}

// Returns an exception. If it concerns an endpoint, the text has the endpoint and the reason, if it is known.
function errnoError(errno, address) {
  const code = names.get(errno) ?? "UNKNOWN"
  let text = texts[code] ?? capitalised(addon.errorText(errno))
  if (address !== undefined) {
    const reason = describeError(code, address)
    text += `${reason === undefined ? "" : `, ${reason}`}: ${address}`
  }
  return makeError(code, text, address, errno)
}

function makeError(code, message, address, errno = numbers.get(code)) {
  const error = new Error(message)
  error.errno = errno
  error.code = code
  if (address !== undefined) error.address = address
  return error
}

const capitalised = text => text.charAt(0).toUpperCase() + text.slice(1)

// Returns the exception for a refused option. `describe` returns a sentence that names an invalid option.
function optionError(errno, describe) {
  const error = errnoError(errno)
  const sentence = error.code === "EINVAL" ? describe() : ""
  if (sentence !== "") error.message += `: ${sentence}`
  return error
}

// Returns the exception for a request or a reply out of turn. The text names the call that must come first.
function stateError(errno, type, sending) {
  const error = errnoError(errno)
  const turn = turns[type]
  if (error.code === "EFSM" && turn !== undefined) error.message += `: ${turn[sending ? 0 : 1]}`
  return error
}

// Texts by the number of the socket's type, for sending and for receiving.
const turns = {
  3: ["a Request must receive the reply to its last request first", "a Request must send first"],
  4: ["a Reply must receive a request first", "a Reply must reply to the last request first"],
}

// Throws if the result is an error, and returns it otherwise.
function checkResult(result, address) {
  if (result < 0) throw errnoError(-result, address)
  return result
}

const AGAIN = -numbers.get("EAGAIN")

module.exports = { AGAIN, checkResult, errnoError, makeError, numbers, optionError, stateError }
