// The examples run to their end in an installed package, as for a user. Two processes of each example run at the same time: one without
// arguments, and one with given endpoints.
import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { copyFileSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { after, before, test } from "node:test"
import { follow, installPacked, packageRoot, run, tsc } from "./common.mjs"

const place = mkdtempSync(join(tmpdir(), "tautline-"))
const examples = join("node_modules", "tautline", "examples")
before(() => installPacked(place))
after(() => rmSync(place, { recursive: true }))

let endpoints = 0
const endpoint = () => `ipc://${join(place, `endpoint-${++endpoints}`)}`

// For each example: its output, the arguments of the second process, and the output after which a process is stopped, if it must be.
const expected = {
  "broker.mjs": [/^TO BE OR\nNOT TO BE\nTHAT IS IT\n$/, [endpoint(), endpoint()]],
  "curve.mjs": [
    /^the known client: Hello, in confidence \(curve\)\nthe stranger: refused with status 400\n$/,
    [endpoint()],
  ],
  "events.mjs": [
    /^(connect:delay\n)?connect\nhandshake: messages can pass\ndisconnect\nconnect:retry: in \d+ s\nend: the socket is closed\n$/,
    [endpoint()],
  ],
  "last-value.mjs": [/^price.tea is 4\nprice.coffee is 7\nprice.tea is now 5\n$/, [endpoint()]],
  "pipeline.mjs": [/^(3|5) workers are ready\nthe first 1000 squares add up to 333833500\n$/, ["5"]],
  "publish-subscribe.mjs": [
    /^fan: sport.football, .*\nfan: sport.tennis, .*\ntraveller: traffic.rail, .*\ntraveller: weather.rain, .*\n$/,
    [endpoint()],
  ],
  "request-reply.mjs": [/^Hello, World!\nHello, ZeroMQ!\nHello, Node.js!\n$/, [endpoint()]],
  "shutdown.mjs": [
    /^Are you there\?: yes\nAnd you\?: no answer in 100 ms\nCtrl-C ends the service\n1 answered until (SIGINT|SIGTERM)\n$/,
    [endpoint()],
    [/Ctrl-C/, ["SIGINT", "SIGTERM"]],
  ],
  "statistics.mjs": [
    new RegExp(
      "^dealer: 100 messages sent, 1192 bytes\ndealer: 100 messages received, 1000 bytes\n" +
        "dealer: 0 wait to be received, 1 peer\n" +
        "router: 100 messages sent, 1000 bytes\nrouter: 100 messages received, 1192 bytes\n" +
        "router: 0 wait to be received, 1 peer\n" +
        "router: 1 message to an unknown routing id\n$",
    ),
    [endpoint()],
  ],
}

const typed = "typed.mts"
const readings = /^kitchen: 19.0 °C\nkitchen: 20.5 °C\nEADDRINUSE, as it should be\n$/

async function check(text, args, until, signal) {
  const child = spawn(process.execPath, args, { cwd: place })
  const { code, output, errors } = await follow(child, until, signal)
  assert.deepEqual([code, errors], [0, ""], output)
  assert.match(output, text)
}

for (const [name, [text, args, [until, signals = []] = []]] of Object.entries(expected)) {
  test(`examples/${name}`, async () => {
    const file = join(examples, name)
    await Promise.all([check(text, [file], until, signals[0]), check(text, [file, ...args], until, signals[1])])
  })
}

test("an example in a clone", () => check(expected["request-reply.mjs"][0], [join(packageRoot, "examples", "request-reply.mjs")]))

test(`examples/${typed}`, { skip: !existsSync(tsc) && "no TypeScript compiler: npm install, or TSC=path" }, async () => {
  copyFileSync(join(place, examples, typed), join(place, typed))
  symlinkSync(join(packageRoot, "node_modules", "@types"), join(place, "node_modules", "@types"))
  const options = ["--module", "nodenext", "--target", "es2022", "--strict", "--verbatimModuleSyntax", "--erasableSyntaxOnly"]
  await run(tsc, [...options, "--outDir", "compiled", typed], { cwd: place }).catch(({ stdout }) => assert.fail(stdout))
  await check(readings, [join("compiled", "typed.mjs")])
  // Uncompiled, if Node.js strips types.
  if (process.features.typescript) await check(readings, ["--no-warnings", typed])
})

test("the README names every example, and each is tested", () => {
  const names = readdirSync(join(place, examples)).sort()
  assert.deepEqual(names, [...Object.keys(expected), typed].sort())
  const readme = readFileSync(join(packageRoot, "README.md"), "utf8")
  const linked = [...readme.matchAll(/\]\(examples\/(.*?)\)/g)].map(([, name]) => name)
  assert.deepEqual(linked.sort(), names)
})
