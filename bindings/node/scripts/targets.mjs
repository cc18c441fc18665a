// The platforms that have addons: the names of npm for each, and the compiler's triple with the oldest C library.
export const targets = {
  "linux-x64-gnu": { os: "linux", cpu: "x64", libc: "glibc", triple: "x86_64-unknown-linux-gnu.2.17" },
  "linux-x64-musl": { os: "linux", cpu: "x64", libc: "musl", triple: "x86_64-unknown-linux-musl" },
  "linux-arm64-gnu": { os: "linux", cpu: "arm64", libc: "glibc", triple: "aarch64-unknown-linux-gnu.2.17" },
  "linux-arm64-musl": { os: "linux", cpu: "arm64", libc: "musl", triple: "aarch64-unknown-linux-musl" },
  "linux-arm-gnu": { os: "linux", cpu: "arm", libc: "glibc", triple: "armv7-unknown-linux-gnueabihf.2.17" },
}
