// The name of this platform, and the platforms that have addons.
"use strict"

const fs = require("node:fs")
const os = require("node:os")

// The platforms of scripts/targets.mjs and of optionalDependencies in package.json.
const platforms = ["linux-x64-gnu", "linux-x64-musl", "linux-arm64-gnu", "linux-arm64-musl", "linux-arm-gnu"]

// Size of the head of a program file that usually contains the name of its loader.
const HEAD = 4096

// Returns the C library of this program, by its loader. Node's report has it as well, but takes ten times as long.
function libc() {
  const head = Buffer.alloc(HEAD)
  try {
    const file = fs.openSync(process.execPath, "r")
    try {
      fs.readSync(file, head, 0, HEAD, 0)
    } finally {
      fs.closeSync(file)
    }
  } catch {
    // The file is unreadable, so use the report.
  }
  if (head.includes("/ld-musl-")) return "musl"
  if (head.includes("/ld-linux")) return "gnu"
  return process.report?.getReport().header.glibcVersionRuntime ? "gnu" : "musl"
}

// Node.js reports `arm` for ARMv6 as well, which has no addon.
function processor() {
  return process.arch === "arm" && os.machine?.() === "armv6l" ? "armv6" : process.arch
}

function platform() {
  const name = `${process.platform}-${processor()}`
  return process.platform === "linux" ? `${name}-${libc()}` : name
}

module.exports = { platform, platforms }
