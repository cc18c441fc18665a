// A program in one file from a bundler runs beside the package with the addon, and beside the addon's file alone. The bundlers are
// installed in the folder `TOOLS` (`tests/ship/node/run.sh` does it).
import assert from "node:assert/strict"
import { execFile } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, test } from "node:test"
import { promisify } from "node:util"
import { addonFile, host, packageRoot } from "./common.mjs"

const run = promisify(execFile)
const tools = process.env.TOOLS
const skip = tools === undefined && "TOOLS is not set"
const tool = name => createRequire(join(tools, "_"))(name)

const folder = mkdtempSync(join(tmpdir(), "tautline-"))
after(() => rmSync(folder, { recursive: true }))

const body = `
  const [pull, push] = [new Pull(), new Push()]
  await pull.bind("tcp://127.0.0.1:*")
  push.connect(pull.lastEndpoint)
  pull.events.on("accept", () => {})
  const message = pull.receive()
  await push.send("bundled")
  console.log(String(await message), typeof Server)
  pull.close()`

// Creates a project with the program in both kinds of modules, and with the package without its addon.
function source() {
  const place = join(folder, "source")
  const own = join(place, "node_modules", "tautline")
  mkdirSync(join(own, "lib"), { recursive: true })
  for (const name of ["package.json", "draft.js"]) copyFileSync(join(packageRoot, name), join(own, name))
  const names = readdirSync(join(packageRoot, "lib")).filter(name => name.endsWith(".js"))
  for (const name of names) copyFileSync(join(packageRoot, "lib", name), join(own, "lib", name))
  writeFileSync(join(place, "program.mjs"), `import { Pull, Push } from "tautline"\nimport { Server } from "tautline/draft.js"\n${body}`)
  const required = 'const { Pull, Push } = require("tautline")\nconst { Server } = require("tautline/draft.js")'
  writeFileSync(join(place, "program.cjs"), `${required}\n;(async () => {${body}\n})()`)
  return place
}

// Runs a bundle in two folders: beside the package with the addon, and beside the addon's file.
async function runs(bundle, name) {
  const places = [mkdtempSync(join(folder, "package-")), mkdtempSync(join(folder, "file-"))]
  const own = join(places[0], "node_modules", "@tautline", host)
  mkdirSync(own, { recursive: true })
  writeFileSync(join(own, "package.json"), `{ "main": "tautline.${host}.node" }`)
  for (const to of [own, places[1]]) copyFileSync(addonFile, join(to, `tautline.${host}.node`))
  for (const place of places) {
    copyFileSync(bundle, join(place, name))
    const { stdout, stderr } = await run(process.execPath, [name], { cwd: place })
    assert.deepEqual([stdout, stderr], ["bundled function\n", ""])
  }
  const alone = mkdtempSync(join(folder, "alone-"))
  copyFileSync(bundle, join(alone, name))
  await assert.rejects(run(process.execPath, [name], { cwd: alone }), ({ stderr }) => stderr.includes("A bundle needs one of the two"))
}

const place = source()
const banner = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);'

for (const [kind, format] of [["cjs", "cjs"], ["mjs", "esm"]]) {
  test(`esbuild, ${format}`, { skip }, async () => {
    const outfile = join(folder, `esbuild.${kind}`)
    const js = format === "esm" ? banner : ""
    const { warnings } = await tool("esbuild").build({
      entryPoints: [join(place, `program.${kind}`)], outfile, format, bundle: true, platform: "node", banner: { js }, logLevel: "silent",
    })
    assert.deepEqual(warnings, [])
    await runs(outfile, `esbuild.${kind}`)
  })

  test(`rollup, ${format}`, { skip }, async () => {
    const file = join(folder, `rollup.${kind}`)
    const plugins = [tool("@rollup/plugin-node-resolve").nodeResolve({ preferBuiltins: true }), tool("@rollup/plugin-commonjs")()]
    const bundle = await tool("rollup").rollup({ input: join(place, `program.${kind}`), plugins, onLog: () => {} })
    await bundle.write({ file, format })
    await runs(file, `rollup.${kind}`)
  })
}
