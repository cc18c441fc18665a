// Builds the addon for this platform and puts it where the package loads it from, and the licences of the repository beside it.
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { createRequire } from "node:module"
import { fileURLToPath } from "node:url"

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..")
const { platform } = createRequire(import.meta.url)("../lib/platform.js")

const metadata = execFileSync("cargo", ["metadata", "--format-version", "1", "--no-deps"], { cwd: root })
const target = JSON.parse(metadata).target_directory
execFileSync("cargo", ["build", "--release", "--locked"], { cwd: root, stdio: "inherit" })

const library = { darwin: "libtautline_node.dylib", win32: "tautline_node.dll" }[process.platform] ?? "libtautline_node.so"
const place = join(root, "prebuilds", platform())
mkdirSync(place, { recursive: true })
copyFileSync(join(target, "release", library), join(place, "tautline.node"))
for (const licence of ["LICENSE-APACHE", "LICENSE-MIT"]) copyFileSync(join(root, "..", "..", licence), join(root, licence))
console.log(join(place, "tautline.node"))
