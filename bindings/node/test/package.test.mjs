// npm packs and installs the packages: from a clone, and from a registry with one package for each platform.
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { before, after, test } from "node:test"
import { targets } from "../scripts/targets.mjs"
import { addonFile, freePort, host, installPacked, npm, packageRoot, run, tsc } from "./common.mjs"
import { registry } from "./registry.mjs"

const own = JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8"))
const { platforms } = createRequire(import.meta.url)("../lib/platform.js")

const folder = mkdtempSync(join(tmpdir(), "tautline-"))
const packages = join(folder, "packages")
after(() => rmSync(folder, { recursive: true }))

// Creates an empty project.
let projects = 0
function project() {
  const place = join(folder, `project-${++projects}`)
  mkdirSync(place)
  writeFileSync(join(place, "package.json"), '{ "private": true }')
  return place
}

// Returns a copy of the addon that the scripts accept for another processor or C library.
function standIn(name) {
  const bytes = readFileSync(addonFile)
  bytes.writeUInt16LE({ x64: 62, arm64: 183, arm: 40 }[targets[name].cpu], 18)
  let at = 0
  if (targets[name].libc === "musl") while ((at = bytes.indexOf("GLIBC_2", at)) >= 0) bytes.write("MUSLC_2", at)
  const file = join(folder, `${name}.node`)
  writeFileSync(file, bytes)
  return file
}

const isHere = host in targets
const skip = !isHere && `there is no package for ${host}`

before(async () => {
  if (!isHere) return
  const addons = Object.keys(targets).flatMap(name => ["--addon", `${name}=${name === host ? addonFile : standIn(name)}`])
  await run(process.execPath, [join(packageRoot, "scripts", "pack.mjs"), "--out", packages, ...addons])
})

// Installs `tautline` into an empty project. Returns the platforms of the installed addons, and the project.
async function installed(t, ...options) {
  const place = project()
  const cache = join(folder, "cache")
  const flags = ["--no-audit", "--no-fund", "--cache", cache, "--registry", await registry(t, packages)]
  await npm(place, "install", ...flags, ...options, "tautline")
  const scope = join(place, "node_modules", "@tautline")
  return { place, chosen: existsSync(scope) ? readdirSync(scope) : [] }
}

// Runs a program of the project. If the program fails, the error contains its output.
async function outcome(place, source) {
  writeFileSync(join(place, "program.mjs"), source)
  return run(process.execPath, ["program.mjs"], { cwd: place, encoding: "utf8" }).then(
    ({ stdout }) => stdout,
    reason => `${reason.stderr}`,
  )
}

const program = `
  import { Request, Reply } from "tautline"
  import { Server } from "tautline/draft"
  const [rep, req] = [new Reply(), new Request()]
  await rep.bind("inproc://it")
  req.connect("inproc://it")
  await req.send("it works")
  const [message] = await rep.receive()
  console.log(message.toString(), typeof Server)`

test("a package that was packed in a clone has the clone's addon", async () => {
  const place = project()
  const names = await installPacked(place)
  assert(names.includes("index.d.ts") && names.some(name => /^lib\/tautline\..*\.node$/.test(name)), `${names}`)
  assert(names.includes("examples/typed.mts"), `${names}`)
  assert(names.includes("LICENSE-MIT") && names.includes("LICENSE-APACHE"), "without its licences")
  assert(!names.some(name => /^(src|test|target|scripts|zeromq|node_modules)\//.test(name)), `${names}`)
  assert.equal(await outcome(place, program), "it works function\n")
})

test("the platforms and versions in package.json agree", () => {
  const names = Object.keys(targets)
  assert.deepEqual(platforms, names)
  assert.deepEqual(own.optionalDependencies, Object.fromEntries(names.map(name => [`@tautline/${name}`, own.version])))
  const swap = JSON.parse(readFileSync(join(packageRoot, "zeromq", "package.json"), "utf8"))
  assert.equal(swap.version, own.version)
  const swapped = names.filter(name => targets[name].cpu !== "arm")
  assert.deepEqual(swap.optionalDependencies, Object.fromEntries(swapped.map(name => [`@tautline/libzmq-${name}`, own.version])))
})

test("npm installs the addon of this platform and no other, and the README's first program runs", { skip }, async t => {
  const { place, chosen } = await installed(t)
  assert.deepEqual(chosen, [host])
  assert(!readdirSync(join(place, "node_modules", "tautline", "lib")).some(name => name.endsWith(".node")))
  for (const name of ["tautline", `@tautline/${host}`]) {
    assert(existsSync(join(place, "node_modules", name, "LICENSE-MIT")) && existsSync(join(place, "node_modules", name, "README.md")))
  }
  assert(existsSync(join(place, "node_modules", "tautline", "examples", "request-reply.mjs")))
  const readme = readFileSync(join(place, "node_modules", "tautline", "README.md"), "utf8")
  const first = readme.match(/```js\n(.*?)```/s)[1]
  assert(first.includes(":3000"))
  assert.equal(await outcome(place, first.replaceAll(":3000", `:${freePort()}`)), "Hello, World\n")
  const bench = await run("npx", ["--no-install", "tautline-bench", "--rounds", "1", "--seconds", "0.05"], { cwd: place })
  assert.match(bench.stdout, /64 B, REQ to REP and back +[\d.]+ [Mk]?\/s\n/)
})

for (const [name, { os, cpu, libc }] of Object.entries(targets).filter(([name]) => name !== host).slice(-1)) {
  test(`npm installs the addon of ${name} for that platform`, { skip }, async t => {
    const { place, chosen } = await installed(t, `--os=${os}`, `--cpu=${cpu}`, `--libc=${libc}`)
    assert.deepEqual(chosen, [name])
    // On this platform, it is the wrong addon.
    const said = await outcome(place, program)
    assert(said.includes(`Error: The addon of tautline for ${host} is not installed`) && said.includes(`@tautline/${host}`), said)
    cpSync(join(folder, `${name}.node`), join(place, "node_modules", "tautline", "lib", `tautline.${host}.node`))
    assert.match(await outcome(place, program), /Error: The addon of tautline for \S+, \.\/tautline\.\S+\.node, cannot be loaded: /)
  })
}

test("on a platform without an addon, npm installs the package, and the program gets an error", { skip }, async t => {
  const { place, chosen } = await installed(t, "--os=darwin", "--cpu=arm64")
  assert.deepEqual(chosen, [])
  const there = `Object.defineProperty(process, "platform", { value: "darwin" })
    Object.defineProperty(process, "arch", { value: "arm64" })
    await import("tautline")`
  const said = await outcome(place, there)
  assert(said.includes("Error: tautline has no addon for darwin-arm64. It has addons for linux-x64-gnu, "), said)
  assert(!said.includes("Cannot find module"), said)
})

test("the types", { skip: !existsSync(tsc) && "no TypeScript compiler: npm install, or TSC=path" }, () => {
  try {
    execFileSync(tsc, ["--project", join(packageRoot, "test", "types")], { encoding: "utf8" })
  } catch (reason) {
    assert.fail(reason.stdout)
  }
})
