// Builds the addon and puts it beside the JavaScript that loads it, and the licences of the repository into the package.
//
//   node scripts/build.mjs          for this platform, with its own compiler and C library
//   node scripts/build.mjs NAME...  for platforms of targets.mjs, with `cargo zigbuild` and the oldest C library of each. Needs
//                                   cargo-zigbuild, zig and the target's standard library (rustup target add); `cargo xtask cross`
//                                   has all of them, and tests the addons
//   --out FOLDER                    writes a copy of the package to FOLDER, with the addons and the licences, instead of this folder
import { execFileSync } from "node:child_process"
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { createRequire } from "node:module"
import { fileURLToPath, pathToFileURL } from "node:url"
import { parseArgs } from "node:util"
import { targets } from "./targets.mjs"

export const root = resolve(dirname(fileURLToPath(import.meta.url)), "..")
export const host = createRequire(import.meta.url)("../lib/platform.js").platform()

const LIBRARIES = { darwin: "libtautline_node.dylib", win32: "tautline_node.dll" }

// Builds the addon for this platform, or for `name` of targets.mjs. Returns the path of Cargo's output.
export function compile(name) {
  const metadata = execFileSync("cargo", ["metadata", "--format-version", "1", "--no-deps"], { cwd: root })
  const directory = JSON.parse(metadata).target_directory
  const options = ["--profile", "addon", "--locked"]
  if (name === undefined) {
    execFileSync("cargo", ["build", ...options], { cwd: root, stdio: "inherit" })
    return join(directory, "addon", LIBRARIES[process.platform] ?? "libtautline_node.so")
  }
  const target = targets[name]
  if (target === undefined) throw new Error(`unknown platform ${name}; choose one of ${Object.keys(targets).join(", ")}`)
  const env = { ...process.env }
  const triple = target.triple.replace(/\.[\d.]+$/, "")
  // A shared library needs musl as a shared library. By default, the compiler links musl statically.
  if (target.libc === "musl") env[`CARGO_TARGET_${triple.toUpperCase().replaceAll("-", "_")}_RUSTFLAGS`] = "-C target-feature=-crt-static"
  execFileSync("cargo", ["zigbuild", ...options, "--target", target.triple], { cwd: root, stdio: "inherit", env })
  return join(directory, triple, "addon", "libtautline_node.so")
}

export function licences(folder) {
  for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) copyFileSync(join(root, "..", "..", licence), join(folder, licence))
}

// Copies the `files` of package.json and the README, without the addons that a clone has built.
export function copyPackage(from, files, to) {
  for (const name of [...files, "README.md"]) {
    const [directory, pattern] = name.includes("*") ? [".", new RegExp(`^${name.replaceAll(".", "\\.").replace("*", ".*")}$`)] : []
    const names = pattern === undefined ? [name] : readdirSync(join(from, directory)).filter(name => pattern.test(name))
    for (const name of names) {
      if (!existsSync(join(from, name))) throw new Error(`${join(from, name)} is missing`)
      cpSync(join(from, name), join(to, name), { recursive: true, dereference: true, filter: file => !file.endsWith(".node") })
    }
  }
}

// Builds the addon for `name` of targets.mjs, or for this platform, and puts it into the package in `folder`. Returns its path.
export function build(name, folder = root) {
  const place = join(folder, "lib", `tautline.${name ?? host}.node`)
  copyFileSync(compile(name), place)
  return place
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { out: { type: "string" } } })
  const folder = values.out === undefined ? root : resolve(values.out)
  if (folder !== root) {
    mkdirSync(folder, { recursive: true })
    copyPackage(root, [...JSON.parse(readFileSync(join(root, "package.json"), "utf8")).files, "package.json"], folder)
  }
  for (const name of positionals.length === 0 ? [undefined] : positionals) console.log(build(name, folder))
  licences(folder)
}
