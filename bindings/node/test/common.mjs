// What the tests share.
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { dirname, join } from "node:path"
import { Pull } from "../lib/index.js"

export const packageRoot = dirname(dirname(fileURLToPath(import.meta.url)))

// This platform, and the addon that scripts/build.mjs has built for it.
export const host = createRequire(import.meta.url)("../lib/platform.js").platform()
export const addonFile = join(packageRoot, "lib", `tautline.${host}.node`)

export function freePort() {
  const socket = new Pull()
  socket.bindSync("tcp://127.0.0.1:*")
  const port = socket.lastEndpoint.split(":").at(-1)
  socket.close()
  return port
}

// Two sockets that are joined; closed at the end of the test `t`.
export async function pair(t, First, Second, { first = {}, second = {}, endpoint = "tcp://127.0.0.1:*" } = {}) {
  const sockets = [new First(first), new Second(second)]
  t.after(() => sockets.forEach(socket => socket.close()))
  await sockets[0].bind(endpoint)
  sockets[1].connect(sockets[0].lastEndpoint)
  return sockets
}

export const strings = parts => parts.map(part => part.toString())

// Runs a program that has the package as `zmq`; its exit code and what it has written.
export async function program(source, { flags = [], until } = {}) {
  const text = `const zmq = require(${JSON.stringify(packageRoot)}); ${source}`
  const child = spawn(process.execPath, [...flags, "-e", text], { stdio: ["pipe", "pipe", "pipe"] })
  return follow(child, until)
}

// Waits for the end of a child process, or for `until` in what it writes, and ends it then.
export async function follow(child, until) {
  const result = { code: null, output: "", errors: "" }
  for (const [stream, name] of [
    [child.stdout, "output"],
    [child.stderr, "errors"],
  ]) {
    stream.on("data", data => {
      result[name] += data
      if (until?.test(result[name])) child.kill()
    })
  }
  const [code, signal] = await once(child, "close")
  result.code = code ?? signal
  return result
}
