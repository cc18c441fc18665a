// Puts Tautline's libzmq under the package `zeromq` 6, whose addon has a libzmq linked into it.
//
// That addon calls the functions of its libzmq by way of the table that the loader fills, and the loader takes the first library that
// has a function: one that was loaded for everybody before the addon comes before what the addon has itself. So all that is done here is
// to load the library, for everybody, before `zeromq` is. Afterwards it would be too late: an addon with some functions of the one
// library and some of the other would crash.
"use strict"

const fs = require("node:fs")
const os = require("node:os")
const { platform } = require("./platform")

// ZMQ_TAUTLINE_STATISTICS, an option that libzmq does not know.
const ONLY_OURS = 0x54410001

const library = find()

function find() {
  if (process.env.TAUTLINE_ZEROMQ === "0") return undefined
  // There the functions of an addon are bound to the library they were linked with.
  if (process.platform !== "linux") return without(`${process.platform} cannot exchange a library within an addon`)
  const name = platform()
  let file
  try {
    file = require.resolve(`@tautline/libzmq-${name}`)
  } catch {
    return without(`the package @tautline/libzmq-${name} is not installed, or there is none`)
  }
  const loaded = mapped()
  if (loaded.includes(file)) return file
  if (loaded.some(name => /[/\\]zeromq[/\\].*addon\.node$/.test(name))) return without("it was loaded before tautline-zeromq")
  try {
    process.dlopen({ exports: {} }, file, os.constants.dlopen.RTLD_NOW | os.constants.dlopen.RTLD_GLOBAL)
  } catch (cause) {
    // What is loaded is no addon, which Node says when it is loaded. The library is linked to stay.
    if (!mapped().includes(file)) return without(`${file} cannot be loaded: ${cause.message}`)
  }
  return file
}

function without(reason) {
  process.emitWarning(`zeromq runs on its own libzmq: ${reason}`, "TautlineWarning")
  return undefined
}

// The files that this process has loaded.
function mapped() {
  const lines = fs.readFileSync("/proc/self/maps", "utf8").split("\n")
  return [...new Set(lines.map(line => line.slice(line.indexOf("/"))))]
}

// Whether `zeromq`, the module that is given, runs on Tautline: its sockets are asked.
function active(zeromq) {
  const socket = new zeromq.Pair()
  try {
    socket.getStringOption(ONLY_OURS)
    return true
  } catch {
    return false
  } finally {
    socket.close()
  }
}

module.exports = { active, library }
