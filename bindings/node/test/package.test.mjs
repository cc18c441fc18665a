// The package as npm makes and installs it, and its types.
import assert from "node:assert/strict"
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { packageRoot } from "./common.mjs"

const npm = (folder, ...args) => execFileSync("npm", args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })

test("the packed package works where it is installed", t => {
  const folder = mkdtempSync(join(tmpdir(), "tautline-"))
  t.after(() => rmSync(folder, { recursive: true }))
  const [{ filename, files }] = JSON.parse(npm(packageRoot, "pack", "--json", "--pack-destination", folder))
  const names = files.map(({ path }) => path)
  assert(names.includes("index.d.ts") && names.some(name => /^prebuilds\/.*\/tautline\.node$/.test(name)))
  assert(names.includes("LICENSE-MIT") && names.includes("LICENSE-APACHE"), "without its licences")
  assert(!names.some(name => /^(src|test|target|node_modules)\//.test(name)), `${names}`)
  writeFileSync(join(folder, "package.json"), '{ "private": true }')
  npm(folder, "install", "--offline", "--no-audit", "--no-fund", `./${filename}`)
  const program = `
    import { Request, Reply } from "tautline"
    import { Server } from "tautline/draft.js"
    const [rep, req] = [new Reply(), new Request()]
    await rep.bind("inproc://it")
    req.connect("inproc://it")
    await req.send("it works")
    const [message] = await rep.receive()
    console.log(message.toString(), typeof Server)`
  writeFileSync(join(folder, "program.mjs"), program)
  assert.equal(execFileSync(process.execPath, ["program.mjs"], { cwd: folder, encoding: "utf8" }), "it works function\n")
})

const tsc = process.env.TSC ?? join(packageRoot, "node_modules", ".bin", "tsc")

test("the types", { skip: !existsSync(tsc) && "no TypeScript compiler: npm install, or TSC=path" }, () => {
  try {
    execFileSync(tsc, ["--project", join(packageRoot, "test", "types")], { encoding: "utf8" })
  } catch (reason) {
    assert.fail(reason.stdout)
  }
})
