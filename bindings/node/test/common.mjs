// Helpers of the tests.
import { execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"
import { dirname, join } from "node:path"
import { promisify } from "node:util"
import { Pull } from "../lib/index.js"

export const packageRoot = dirname(dirname(fileURLToPath(import.meta.url)))

// The name of this platform, and its addon from scripts/build.mjs.
export const host = createRequire(import.meta.url)("../lib/platform.js").platform()
export const addonFile = join(packageRoot, "lib", `tautline.${host}.node`)

// The TypeScript compiler, if there is one.
export const tsc = process.env.TSC ?? join(packageRoot, "node_modules", ".bin", "tsc")

export const run = promisify(execFile)
export const npm = (folder, ...args) => run("npm", args, { cwd: folder, encoding: "utf8" }).then(({ stdout }) => stdout)

// Packs the package of a clone with the clone's addon, and installs it into an empty project. Returns the names of its files.
export async function installPacked(place) {
  writeFileSync(join(place, "package.json"), '{ "private": true }')
  const [{ filename, files }] = JSON.parse(await npm(packageRoot, "pack", "--json", "--pack-destination", place))
  await npm(place, "install", "--offline", "--omit=optional", "--no-audit", "--no-fund", `./${filename}`)
  return files.map(({ path }) => path)
}

export function freePort() {
  const socket = new Pull()
  socket.bindSync("tcp://127.0.0.1:*")
  const port = socket.lastEndpoint.split(":").at(-1)
  socket.close()
  return port
}

// Returns two connected sockets. They are closed at the end of the test `t`.
export async function pair(t, First, Second, { first = {}, second = {}, endpoint = "tcp://127.0.0.1:*" } = {}) {
  const sockets = [new First(first), new Second(second)]
  t.after(() => sockets.forEach(socket => socket.close()))
  await sockets[0].bind(endpoint)
  sockets[1].connect(sockets[0].lastEndpoint)
  return sockets
}

export const strings = parts => parts.map(part => part.toString())

// Runs a program that has the package as `zmq`. Returns its exit code and its output.
export async function program(source, { flags = [], until } = {}) {
  const text = `const zmq = require(${JSON.stringify(packageRoot)}); ${source}`
  const child = spawn(process.execPath, [...flags, "-e", text], { stdio: ["pipe", "pipe", "pipe"] })
  return follow(child, until)
}

// Waits for the end of a child process. Sends it a signal after its output matches `until`.
export async function follow(child, until, signal) {
  const result = { code: null, output: "", errors: "" }
  let told = false
  for (const [stream, name] of [
    [child.stdout, "output"],
    [child.stderr, "errors"],
  ]) {
    stream.on("data", data => {
      result[name] += data
      if (!told && until?.test(result[name])) told = child.kill(signal)
    })
  }
  const [code, killed] = await once(child, "close")
  result.code = code ?? killed
  return result
}
