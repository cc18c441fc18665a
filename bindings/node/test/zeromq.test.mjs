// The package `tautline-zeromq`: programs of the unchanged package `zeromq` run on Tautline. `zeromq` is installed in the folder `TOOLS`,
// and `LIBRARY` is a libzmq.so of Tautline (`tests/ship/node/run.sh` sets both).
import assert from "node:assert/strict"
import { execFile, execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before, test } from "node:test"
import { promisify } from "node:util"
import { addonFile, host, packageRoot } from "./common.mjs"

const run = promisify(execFile)
const { TOOLS: tools, LIBRARY: library } = process.env
const skip = (!tools || !library || !host.startsWith("linux-")) && "TOOLS and LIBRARY are not set, or it is not Linux"

const folder = mkdtempSync(join(tmpdir(), "tautline-"))
after(() => rmSync(folder, { recursive: true }))

// Creates a project that has both packages.
before(async () => {
  if (skip) return
  const packages = join(folder, "packages")
  const given = ["--addon", `${host}=${addonFile}`, "--library", `${host}=${library}`]
  await run(process.execPath, [join(packageRoot, "scripts", "pack.mjs"), "--out", packages, ...given])
  const modules = join(folder, "node_modules")
  for (const [file, name] of [["tautline-zeromq", "tautline-zeromq"], [`tautline-libzmq-${host}`, `@tautline/libzmq-${host}`]]) {
    const place = join(modules, name)
    mkdirSync(place, { recursive: true })
    execFileSync("tar", ["-xzf", join(packages, `${file}-0.1.0.tgz`), "-C", place, "--strip-components=1"])
  }
  symlinkSync(join(tools, "node_modules", "zeromq"), join(modules, "zeromq"))
})

const PROGRAM = `
  const zmq = require("zeromq")
  const { active } = require("tautline-zeromq")
  console.log(active(zmq))`

async function says(source, { flags = [], env = {} } = {}) {
  return run(process.execPath, [...flags, "-e", source], { cwd: folder, env: { ...process.env, ...env } })
}

test("zeromq runs on Tautline if a flag or an import loads Tautline first", { skip }, async () => {
  assert.equal((await says(PROGRAM, { flags: ["--require", "tautline-zeromq"] })).stdout, "true\n")
  const imports = 'import { active } from "tautline-zeromq"\nimport * as zmq from "zeromq"\nconsole.log(active(zmq))'
  assert.equal((await says(imports, { flags: ["--input-type=module"] })).stdout, "true\n")
})

test("zeromq runs on Tautline in worker threads", { skip }, async () => {
  const source = `
    const { active } = require("tautline-zeromq")
    const { Worker } = require("node:worker_threads")
    new Worker(${JSON.stringify(PROGRAM)}, { eval: true })`
  assert.equal((await says(source)).stdout, "true\n")
})

test("zeromq stays on its own libzmq if it was loaded first, and a warning gives the reason", { skip }, async () => {
  const { stdout, stderr } = await says(PROGRAM)
  assert.equal(stdout, "false\n")
  assert.match(stderr, /zeromq runs on its own libzmq: it was loaded before tautline-zeromq/)
})

test("TAUTLINE_ZEROMQ=0 leaves zeromq on its own libzmq, without a warning", { skip }, async () => {
  const { stdout, stderr } = await says(PROGRAM, { flags: ["--require", "tautline-zeromq"], env: { TAUTLINE_ZEROMQ: "0" } })
  assert.deepEqual([stdout, stderr], ["false\n", ""])
})

test("zeromq stays on its own libzmq if the package for the platform is missing", { skip }, async t => {
  const place = mkdtempSync(join(tmpdir(), "tautline-"))
  t.after(() => rmSync(place, { recursive: true }))
  mkdirSync(join(place, "node_modules", "tautline-zeromq"), { recursive: true })
  symlinkSync(join(tools, "node_modules", "zeromq"), join(place, "node_modules", "zeromq"))
  for (const name of readdirSync(join(folder, "node_modules", "tautline-zeromq"))) {
    copyFileSync(join(folder, "node_modules", "tautline-zeromq", name), join(place, "node_modules", "tautline-zeromq", name))
  }
  const flags = ["--require", "tautline-zeromq", "-e", PROGRAM]
  const { stdout, stderr } = await run(process.execPath, flags, { cwd: place })
  assert.equal(stdout, "false\n")
  assert.match(stderr, new RegExp(`the package @tautline/libzmq-${host} is not installed, or does not exist for this platform`))
})

test("all classes of zeromq exchange messages, and every call of its addon goes to Tautline", { skip }, async () => {
  const root = join(packageRoot, "..", "..")
  copyFileSync(join(root, "tests", "world", "programs", "node", "exchange.js"), join(folder, "exchange.js"))
  const env = { ...process.env, LD_BIND_NOW: "1", LD_DEBUG: "bindings", LD_DEBUG_OUTPUT: join(folder, "bindings") }
  const { stdout } = await run(process.execPath, ["--require", "tautline-zeromq", "exchange.js"], { cwd: folder, env })
  const lines = stdout.trim().split("\n")
  assert.equal(lines.at(-1), "end")
  assert(lines.length > 5 && lines.slice(0, -1).every(line => line.startsWith("ok ")), stdout)
  const declared = readFileSync(join(root, "include", "zmq.h"), "utf8").match(/\bzmq_[a-z0-9_]+(?= ?\()/g)
  const wanted = new Set(declared)
  const bindings = readdirSync(folder).filter(name => name.startsWith("bindings."))
    .flatMap(name => readFileSync(join(folder, name), "utf8").split("\n"))
    .map(line => /binding file \S*addon\.node \[0\] to (\S+) \[0\]: normal symbol `(\w+)'/.exec(line))
    .filter(found => found !== null && wanted.has(found[2]))
  assert(bindings.length > 20, `${bindings.length}`)
  assert.deepEqual(bindings.filter(([, file]) => !file.endsWith("libzmq.so.5")), [])
})
