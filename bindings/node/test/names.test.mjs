// `name://`: a folder of this host holds the endpoints.
import assert from "node:assert/strict"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { packageRoot, run } from "./common.mjs"

test("a bound name is found in this process and in another process", async t => {
  // The path is short, because the paths of sockets have a limit.
  const folder = mkdtempSync(join(tmpdir(), "names"))
  t.after(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, "names.toml"), `[folder]\npath = "${folder}/f"\n`)
  const program = `
    const { Pull, Push } = require(${JSON.stringify(packageRoot)})
    const { execFile } = require("node:child_process")
    const send = async word => {
      const push = new Push()
      push.connect("name://work")
      await push.send(word)
      push.close()
    }
    const main = async () => {
      const pull = new Pull({ linger: 0 })
      await pull.bind("name://work")
      await send("from here")
      console.log((await pull.receive())[0].toString())
      execFile(process.execPath, ["-e", process.env.PROGRAM, "other"])
      console.log((await pull.receive())[0].toString())
      pull.close()
    }
    process.argv.includes("other") ? send("from there") : main()`
  const environment = { ...process.env, PROGRAM: program, TAUT_NAMES: join(folder, "names.toml") }
  const { stdout } = await run(process.execPath, ["-e", program], { env: environment, timeout: 120_000 })
  assert.equal(stdout, "from here\nfrom there\n")
})

test("a missing or unusable names file is named", async () => {
  const program = `
    const { Push } = require(${JSON.stringify(packageRoot)})
    try { new Push().connect("name://work") } catch (error) { console.log(error.code, error.message) }`
  const connect = async names => {
    const environment = { ...process.env, TAUT_NAMES: names }
    return await run(process.execPath, ["-e", program], { env: environment, timeout: 120_000 })
  }
  assert.match((await connect("")).stdout, /^EPROTONOSUPPORT .*, set TAUT_NAMES to the path of a names file: name:\/\/work\n$/)
  const unusable = await connect("/nonexistent/names")
  assert.match(unusable.stdout, /^EINVAL .* the names file has a fault/)
  assert.match(unusable.stderr, /names \/nonexistent\/names: No such file/)
})
