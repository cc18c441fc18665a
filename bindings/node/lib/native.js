// The addon for this platform, and the runtime that makes its callbacks.
//
// The addon comes in a separate package, which npm selects by `os`, `cpu` and `libc`. An addon beside this file has priority: a clone
// builds it there, and a bundle that runs without packages is deployed with the addon beside it.
"use strict"

const { createRequire } = require("node:module")
const { join } = require("node:path")
const { isMainThread } = require("node:worker_threads")
const { platform, platforms } = require("./platform")

// Not `require`: a bundler would resolve it at bundling time, possibly on another platform than the program's. A bundle of ES
// modules has no `__filename`.
const here = typeof __filename === "string" ? __filename : (process.argv[1] ?? join(process.cwd(), "_"))
const requireAtRunTime = createRequire(here)

function load() {
  // On Bun the addon would load, and then crash the process at the first wait.
  if (process.versions.bun) throw new Error("tautline does not run on Bun, which lacks the functions of libuv that watch descriptors")
  if (process.versions.deno) throw new Error("tautline does not run on Deno, which lacks functions of libuv's event loop, such as uv_prepare_init")
  const name = platform()
  const places = [`./tautline.${name}.node`, `@tautline/${name}`]
  for (const place of places) {
    try {
      return requireAtRunTime(place)
    } catch (cause) {
      if (cause.code !== "MODULE_NOT_FOUND") {
        throw new Error(`The addon of tautline for ${name}, ${place}, cannot be loaded: ${cause.message}`, { cause })
      }
    }
  }
  throw new Error(absent(name))
}

function absent(name) {
  if (!platforms.includes(name)) {
    return `tautline has no addon for ${name}. It has addons for ${platforms.join(", ")}. With Rust, \
\`node scripts/build.mjs\` in bindings/node of its repository may build one.`
  }
  return `The addon of tautline for ${name} is not installed: the package @tautline/${name} is missing, and so is a file \
tautline.${name}.node beside ${here}. The package is an optional dependency of tautline: was tautline installed with \
--omit=optional, on another platform, or by a lockfile from one? A bundle needs one of the two where it runs.`
}

const addon = load()

// The method of a socket that is called at the end of its wait.
const onWaitEnd = Symbol("onWaitEnd")
const runtime = new addon.Runtime((socket, status) => socket[onWaitEnd](status), isMainThread)

// The calls made for every message: send, sendText, receive, wait. Each takes a socket's number.
const calls = runtime.fastFunctions()

module.exports = { addon, calls, onWaitEnd, runtime }
