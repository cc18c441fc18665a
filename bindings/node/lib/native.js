// The addon for this platform, and the runtime that calls back from it.
"use strict"

const { isMainThread } = require("node:worker_threads")
const { platform } = require("./platform")

function load() {
  const name = platform()
  try {
    return require(`../prebuilds/${name}/tautline.node`)
  } catch (cause) {
    throw new Error(`There is no addon of tautline for ${name}, or it cannot be loaded: ${cause.message}`, { cause })
  }
}

const addon = load()

// The method of a socket that is called when its wait is over.
const ready = Symbol("ready")
const runtime = new addon.Runtime((socket, status) => socket[ready](status), isMainThread)

// What is called for every message: send, sendText, receive, wait, with a socket's number.
const calls = runtime.calls()

module.exports = { addon, calls, ready, runtime }
