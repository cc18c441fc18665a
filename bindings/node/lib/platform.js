// The name of this platform, as the folders in prebuilds/ have it.
"use strict"

// glibc says its version in the report, musl does not.
function libc() {
  if (process.platform !== "linux") return ""
  return process.report.getReport().header.glibcVersionRuntime ? "-gnu" : "-musl"
}

module.exports = { platform: () => `${process.platform}-${process.arch}${libc()}` }
