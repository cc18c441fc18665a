// Checks the files of shared libraries for the packages, and changes one flag in them. All files are little-endian.
import { readFileSync } from "node:fs"

const MACHINES = { x64: 62, arm64: 183, arm: 40 }
const PT_DYNAMIC = 2
const DT_FLAGS_1 = 0x6ffffffbn
const DF_1_NODELETE = 8n

// Throws if the file was not built for { cpu, libc }. Returns the oldest glibc that can load it, or undefined for musl.
export function inspect(file, { cpu, libc }) {
  const bytes = readFileSync(file)
  if (bytes.toString("latin1", 0, 4) !== "\x7fELF" || bytes.readUInt16LE(18) !== MACHINES[cpu]) throw new Error(`${file} is not for ${cpu}`)
  const minors = [...bytes.toString("latin1").matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) => Number(minor))
  if ((libc === "glibc") !== minors.length > 0) throw new Error(`${file} is not for ${libc}`)
  return libc === "glibc" ? `2.${Math.max(...minors)}` : undefined
}

// Returns the bytes of the library with the flag of `ld -z nodelete`, which keeps the library loaded when it is closed.
export function thatStays(file) {
  const bytes = readFileSync(file)
  const [table, size, count] = [Number(bytes.readBigUInt64LE(32)), bytes.readUInt16LE(54), bytes.readUInt16LE(56)]
  for (let index = 0; index < count; index++) {
    const header = table + index * size
    if (bytes.readUInt32LE(header) !== PT_DYNAMIC) continue
    const begin = Number(bytes.readBigUInt64LE(header + 8))
    const end = begin + Number(bytes.readBigUInt64LE(header + 32))
    for (let entry = begin; entry < end; entry += 16) {
      if (bytes.readBigUInt64LE(entry) !== DT_FLAGS_1) continue
      bytes.writeBigUInt64LE(bytes.readBigUInt64LE(entry + 8) | DF_1_NODELETE, entry + 8)
      return bytes
    }
  }
  throw new Error(`${file} has no DT_FLAGS_1: link it with -z now, as rustc does, or with -z nodelete`)
}
