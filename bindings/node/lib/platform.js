// The name of this platform, and the platforms that there are addons for.
"use strict"

const fs = require("node:fs")
const os = require("node:os")

// As scripts/targets.mjs builds them, and as optionalDependencies of package.json has them.
const platforms = ["linux-x64-gnu", "linux-x64-musl", "linux-arm64-gnu", "linux-arm64-musl", "linux-arm-gnu"]

// Where the kernel reads the name of a program's loader, as a rule.
const HEAD = 4096

// The C library that this program runs on, by its loader. Node's report knows it as well, and takes ten times as long.
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

// Node.js says `arm` of ARMv6 as well, for which there is no addon.
function processor() {
  return process.arch === "arm" && os.machine?.() === "armv6l" ? "armv6" : process.arch
}

function platform() {
  const name = `${process.platform}-${processor()}`
  return process.platform === "linux" ? `${name}-${libc()}` : name
}

module.exports = { platform, platforms }
