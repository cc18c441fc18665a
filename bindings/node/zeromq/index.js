// Puts Tautline's libzmq under the package `zeromq` 6, whose addon has a libzmq linked into it.
//
// That addon calls the functions of its libzmq through the table that the loader fills. The loader takes each function from the first
// library that has it. A library with global symbols that was loaded before the addon therefore precedes the addon's own functions. This
// file only loads the library, with global symbols, before `zeromq` is loaded. Later would be too late: an addon that mixes the functions
// of two libraries would crash.
"use strict"

const fs = require("node:fs")
const os = require("node:os")
const { platform } = require("./platform")

// ZMQ_TAUTLINE_STATISTICS, an option that only Tautline has.
const ONLY_OURS = 0x54410001

const library = find()

function find() {
  if (process.env.TAUTLINE_ZEROMQ === "0") return undefined
  // On other systems, the functions of an addon are bound to the library that it was linked with.
  if (process.platform !== "linux") return without(`${process.platform} cannot exchange a library within an addon`)
  const name = platform()
  let file
  try {
    file = require.resolve(`@tautline/libzmq-${name}`)
  } catch {
    return without(`the package @tautline/libzmq-${name} is not installed, or does not exist for this platform`)
  }
  const loaded = mapped()
  if (loaded.includes(file)) return file
  if (loaded.some(name => /[/\\]zeromq[/\\].*addon\.node$/.test(name))) return without("it was loaded before tautline-zeromq")
  try {
    process.dlopen({ exports: {} }, file, os.constants.dlopen.RTLD_NOW | os.constants.dlopen.RTLD_GLOBAL)
  } catch (cause) {
    // Node reports that the library is no addon, but has loaded it. The library is linked to stay loaded.
    if (!mapped().includes(file)) return without(`${file} cannot be loaded: ${cause.message}`)
  }
  return file
}

function without(reason) {
  process.emitWarning(`zeromq runs on its own libzmq: ${reason}`, "TautlineWarning")
  return undefined
}

// Returns the files that this process has mapped.
function mapped() {
  const lines = fs.readFileSync("/proc/self/maps", "utf8").split("\n")
  return [...new Set(lines.map(line => line.slice(line.indexOf("/"))))]
}

// Returns true if the given module `zeromq` runs on Tautline: its sockets then have our option.
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
