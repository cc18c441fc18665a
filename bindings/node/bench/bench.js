#!/usr/bin/env node
// `npx tautline-bench`: measures tautline on this machine, in turn with the package `zeromq` if the project has it.
"use strict"

const { spawn } = require("node:child_process")
const { once } = require("node:events")
const { createRequire } = require("node:module")
const os = require("node:os")
const { join } = require("node:path")
const readline = require("node:readline")
const { parseArgs } = require("node:util")

// Title, role that binds, role that connects, true if the first role measures, size of a message in bytes. See measure.js for the roles.
const CASES = [
  ["64 B, PUSH to PULL", "collect", "supply", true, 64],
  ["8 KiB, PUSH to PULL", "collect", "supply", true, 8192],
  ["64 B, REQ to REP and back", "answer", "ask", false, 64],
]

const { values } = parseArgs({
  options: { rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "1" }, help: { type: "boolean" } },
})
const rounds = Number(values.rounds)
const seconds = Number(values.seconds)

async function main() {
  if (values.help || !(rounds >= 1) || !(seconds > 0)) {
    console.log("tautline-bench [--rounds NUMBER] [--seconds OF-EACH]")
    return values.help ? 0 : 2
  }
  const libraries = [{ name: "tautline", path: join(__dirname, "..") }]
  const other = find("zeromq")
  if (other !== undefined) libraries.unshift(other)
  const { version } = require("../package.json")
  const cpus = os.cpus().length
  const load = os.loadavg()[0]
  console.log(`tautline ${version}, Node.js ${process.versions.node}, ${cpus} processors.`)
  if (load > cpus / 2) console.log(`The machine is busy (load ${load.toFixed(1)}). An idle machine gives better results.`)
  console.log(`Two processes over tcp, ${rounds} times with ${other === undefined ? "it" : "each library in turn"}.\n`)
  const heads = libraries.map(({ name, version }) => [name, version].filter(Boolean).join(" ").padStart(16))
  console.log("".padEnd(27) + heads.join("") + (other === undefined ? "" : "   tautline is"))
  for (const test of CASES) {
    const results = libraries.map(() => [])
    for (let round = 0; round < rounds; round++) {
      // The libraries begin in turn, so that other load on the machine slows both down.
      const order = round % 2 === 0 ? libraries : [...libraries].reverse()
      for (const library of order) results[libraries.indexOf(library)].push(await measure(library, test))
    }
    console.log(line(test[0], results))
  }
  console.log("\nMore per second is better. Each figure is the median" + (other === undefined
    ? ".\nTo compare with zeromq, run npm install zeromq and repeat this command."
    : "; in brackets, the least and the greatest ratio of a pair."))
  return 0
}

// Returns a package of the current project, or undefined.
function find(name) {
  const require = createRequire(join(process.cwd(), "_"))
  try {
    const { version } = require(`${name}/package.json`)
    return { name, version, path: require.resolve(name) }
  } catch {
    return undefined
  }
}

// Measures one case. Returns the number of messages or round trips per second.
async function measure({ path }, [, binds, connects, first, size]) {
  const children = []
  const start = (...given) => {
    const child = spawn(process.execPath, [join(__dirname, "measure.js"), path, ...given, size, seconds], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    children.push(child)
    const lines = readline.createInterface({ input: child.stdout })
    const next = () => Promise.race([once(lines, "line").then(([text]) => text), once(lines, "close").then(() => undefined)])
    return next
  }
  try {
    const binding = start(binds)
    const endpoint = await answered(binding())
    // Start to read before the process prints its result.
    const result = first ? binding() : undefined
    const connecting = start(connects, endpoint)
    return Number(await answered(result ?? connecting()))
  } finally {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      child.kill("SIGKILL")
      await once(child, "exit")
    }
  }
}

async function answered(line) {
  const text = await line
  if (text === undefined) throw new Error("A process ended before it printed its result.")
  return text
}

function line(name, results) {
  const figures = results.map(list => rate(median(list)).padStart(16)).join("")
  if (results.length === 1) return name.padEnd(27) + figures
  const [without, with_] = results
  const ratios = with_.map((figure, index) => figure / without[index]).sort((a, b) => a - b)
  const [least, greatest] = [ratios[0], ratios.at(-1)]
  const range = `(${least.toFixed(2)} to ${greatest.toFixed(2)})`
  const verdict = least <= 1 && greatest >= 1 ? "as fast, within the measured range" : `${median(ratios).toFixed(1)} times as fast`
  return `${name.padEnd(27)}${figures}   ${verdict} ${range}`
}

function median(list) {
  const sorted = [...list].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

function rate(perSecond) {
  for (const [unit, factor] of [["M", 1e6], ["k", 1e3]]) {
    if (perSecond >= factor) return `${(perSecond / factor).toPrecision(3)} ${unit}/s`
  }
  return `${perSecond.toPrecision(3)} /s`
}

main().then(
  code => (process.exitCode = code),
  reason => {
    console.error(reason.message)
    process.exitCode = 1
  },
)
