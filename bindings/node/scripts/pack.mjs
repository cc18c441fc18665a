// Makes the npm packages, `*.tgz`, in a folder: `tautline`, which is JavaScript only, one package with an addon for each platform,
// `tautline-zeromq`, and one package with the library for each platform.
//
//   node scripts/pack.mjs [--out FOLDER] [--build NAME]... [--addon NAME=FILE]... [--library NAME=FILE]...
//
//   --out FOLDER         folder for the packages, instead of npm in the target folder of the repository
//   --build NAME         builds the addon for a platform of targets.mjs as build.mjs does. Without --build and --addon, the script
//                        builds the addon for this platform and its installed C library
//   --addon NAME=FILE    an addon that was built elsewhere
//   --library NAME=FILE  a libzmq.so.5, stripped or not. Without this option, the script does not make `tautline-zeromq`
//
// Every file of a package has the same date, so equal files make equal packages. The script does not publish the packages.
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join, resolve } from "node:path"
import { parseArgs } from "node:util"
import { compile, copyPackage, host, licences, root } from "./build.mjs"
import { inspect, thatStays } from "./elf.mjs"
import { targets } from "./targets.mjs"

const many = { type: "string", multiple: true, default: [] }
const { values } = parseArgs({
  options: { out: { type: "string", default: join(process.env.CARGO_TARGET_DIR ?? join(root, "..", "..", "target"), "npm") }, build: many, addon: many, library: many },
})
const out = resolve(values.out)
const addons = new Map(values.addon.map(pair))
for (const name of values.build) addons.set(...pair(`${name}=${compile(name)}`))
if (addons.size === 0) addons.set(...pair(`${host}=${compile()}`))
const libraries = new Map(values.library.map(pair))

function pair(text) {
  const [name, ...rest] = text.split("=")
  if (!(name in targets) || rest.length === 0) throw new Error(`${text} is not NAME=FILE with a NAME of ${Object.keys(targets)}`)
  const file = resolve(rest.join("="))
  const glibc = inspect(file, targets[name])
  console.log(`${name}: ${file}${glibc === undefined ? "" : `, which needs glibc ${glibc}`}`)
  return [name, file]
}

const stage = mkdtempSync(join(tmpdir(), "tautline-pack-"))
try {
  mkdirSync(out, { recursive: true })
  const main = read(root)
  pack(root, main, folder => copyPackage(root, main.files, folder))
  const about = "Do not depend on this package. npm installs it together with"
  for (const [name, file] of addons) {
    pack(root, forPlatform(main, main.name, name, "The addon", `tautline.${name}.node`), folder => {
      copyFileSync(file, join(folder, `tautline.${name}.node`))
      writeFileSync(join(folder, "README.md"), `The addon of \`tautline\` for ${name}. ${about} that.\n`)
    })
  }
  if (libraries.size > 0) {
    const under = join(root, "zeromq")
    const swap = read(under)
    pack(under, swap, folder => copyPackage(under, swap.files, folder))
    for (const [name, file] of libraries) {
      pack(under, forPlatform(main, swap.name, `libzmq-${name}`, "The library", "libzmq.so.5"), folder => {
        writeFileSync(join(folder, "libzmq.so.5"), thatStays(file))
        writeFileSync(join(folder, "README.md"), `The library of \`tautline-zeromq\` for ${name}. ${about} that.\n`)
      })
    }
  }
} finally {
  rmSync(stage, { recursive: true })
}
const absent = Object.keys(targets).filter(name => !addons.has(name))
if (absent.length > 0) console.log(`without: ${absent.join(", ")}`)

function read(folder) {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
}

// Returns the package.json of one platform's package.
function forPlatform({ version, license, repository, engines }, whose, name, what, file) {
  const { os, cpu, libc } = targets[name.replace(/^libzmq-/, "")]
  const description = `${what} of ${whose} for ${os} on ${cpu} with ${libc}`
  // Yarn keeps packages in archives, where the system's loader cannot find the file.
  const preferUnplugged = true
  return {
    name: `@tautline/${name}`, version, description, license, repository,
    main: file, files: [file, "LICENSE-*"], os: [os], cpu: [cpu], libc: [libc], engines, preferUnplugged,
    publishConfig: { access: "public" },
  }
}

// Makes one package: `fill` puts its files into a folder.
function pack(from, description, fill) {
  const folder = join(stage, description.name.replace("/", "-"))
  mkdirSync(folder)
  fill(folder)
  licences(folder)
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(description, null, 2)}\n`)
  const [{ filename }] = JSON.parse(execFileSync("npm", ["pack", "--json", "--pack-destination", out], { cwd: folder, encoding: "utf8" }))
  console.log(join(out, basename(filename)))
}
