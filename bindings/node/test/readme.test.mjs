// The examples of zeromq's own README run with a changed import and another port. `ZEROMQ_README` is the path of that README, of
// version 6 (`tests/ship/node/run.sh` fetches it).
import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { follow, freePort, packageRoot } from "./common.mjs"

const readme = process.env.ZEROMQ_README
const skip = readme === undefined && "ZEROMQ_README is not set"

// Returns the program below the heading `name`.
function example(text, name, port) {
  const code = text.split(`#### \`${name}\``)[1]?.match(/```js\n(.*?)```/s)?.[1]
  assert(code, `the README has no ${name}`)
  assert(code.includes('from "zeromq"') && code.includes(":3000"))
  return code.replace('from "zeromq"', 'from "tautline"').replaceAll(":3000", `:${port}`)
}

for (const [bound, connected, until] of [
  ["producer.js", "worker.js", /work: some work/],
  ["publisher.js", "subscriber.js", /related to: <Buffer 6b .*> containing message: <Buffer 6d 65 6f 77 21>/s],
  ["server.js", "client.js", /<Buffer 38>/],
]) {
  test(`${bound} and ${connected}`, { skip }, async t => {
    const folder = mkdtempSync(join(tmpdir(), "tautline-"))
    t.after(() => rmSync(folder, { recursive: true }))
    mkdirSync(join(folder, "node_modules"))
    symlinkSync(packageRoot, join(folder, "node_modules", "tautline"))
    const text = readFileSync(readme, "utf8")
    const port = freePort()
    const [first, second] = [bound, connected].map(name => {
      const file = join(folder, name.replace(".js", ".mjs"))
      writeFileSync(file, example(text, name, port))
      const child = spawn(process.execPath, [file])
      t.after(() => child.kill("SIGKILL"))
      return child
    })
    first.stderr.on("data", data => assert.fail(`${data}`))
    const { output, errors } = await follow(second, until)
    assert.match(output, until)
    assert.equal(errors, "")
  })
}

test("both ways to import", { skip }, async () => {
  const { createRequire } = await import("node:module")
  const required = createRequire(import.meta.url)("../lib/index.js")
  const { Request, Reply } = await import("../lib/index.js")
  assert(Request === required.Request && Reply === required.Reply)
})
