// Buffers of `loan`, which are sent without a copy.
import assert from "node:assert/strict"
import { mkdtempSync, rmSync } from "node:fs"
import { release, tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import { Worker } from "node:worker_threads"
import { Dealer, Pull, Push, loan } from "../lib/index.js"
import { packageRoot, pair, program } from "./common.mjs"

const MIB = 1024 * 1024

// Linux lends bodies since 5.14.
const [major, minor] = release().split(".").map(Number)
const skip = (process.platform !== "linux" || major < 5 || (major === 5 && minor < 14)) && "this system cannot lend bodies"

// Returns an endpoint that is free until the end of the test `t`.
function endpoint(t) {
  const folder = mkdtempSync(join(tmpdir(), "tautline-"))
  t.after(() => rmSync(folder, { recursive: true }))
  return `ipc://${folder}/bodies`
}

test("an ipc peer receives whole bodies, which are lent once the connection shares memory", { skip }, async t => {
  delete process.env.TAUT_IPC_LOANS
  const near = new Dealer({ linger: 0 })
  t.after(() => near.close())
  await near.bind(endpoint(t))
  // Waits for the answer after each body. A connection begins to lend after some bodies, and copies the first bodies in new memory.
  const sender = program(`
    const { addon } = require(${JSON.stringify(join(packageRoot, "lib", "native.js"))})
    const far = new zmq.Dealer({ linger: 0 })
    far.connect(${JSON.stringify(near.lastEndpoint)})
    ;(async () => {
      for (let number = 0; number < 3000 && addon.lentBodies() < 50; number++) {
        const body = zmq.loan(${MIB}).fill(number)
        body.writeUInt32LE(number)
        await far.send(body)
        await far.receive()
      }
      await far.send(String(addon.lentBodies()))
      await far.receive()
    })()`)
  let count = 0
  for (;;) {
    const [body] = await near.receive()
    await near.send("")
    if (body.length !== MIB) {
      assert(Number(body) >= 50, `${body} of ${count} bodies were lent`)
      break
    }
    const expected = Buffer.alloc(MIB, count & 255)
    expected.writeUInt32LE(count++)
    assert(body.equals(expected), `body ${count}`)
  }
  assert(count >= 50)
  assert.deepEqual(await sender, { code: 0, output: "", errors: "" })
})

test("sending empties the buffer, and a copy of a part does not", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  const body = loan(MIB)
  assert(Buffer.isBuffer(body))
  body.fill(7)
  await push.send([body.subarray(0, MIB - 1), body.subarray(1)])
  assert.equal(body.length, MIB)
  await push.send(["header", body, body])
  assert.deepEqual([body.length, body.buffer.byteLength], [0, 0])
  for (const again of [body, ["x", body], body.buffer]) assert.throws(() => push.send(again), TypeError)
  const copies = await pull.receive()
  assert.deepEqual(copies, [Buffer.alloc(MIB - 1, 7), Buffer.alloc(MIB - 1, 7)])
  const [header, ...bodies] = await pull.receive()
  assert.deepEqual([header.toString(), bodies.length], ["header", 2])
  assert(bodies.every(received => received.equals(Buffer.alloc(MIB, 7))))
})

test("another array on the memory is sent without a copy, too", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  const numbers = new Float32Array(loan(MIB).buffer)
  numbers[5] = 0.5
  await push.send(numbers)
  assert.equal(numbers.length, 0)
  const [received] = await pull.receive()
  assert.deepEqual([received.length, received.readFloatLE(20)], [MIB, 0.5])
})

test("a buffer that could not be sent keeps its bytes", async t => {
  const push = new Push({ linger: 0, sendTimeout: 0 })
  t.after(() => push.close())
  const body = loan(MIB).fill(1)
  await assert.rejects(push.send(body), { code: "EAGAIN" })
  assert(body.equals(Buffer.alloc(MIB, 1)))
})

test("small buffers are ordinary ones, and wrong sizes are refused", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  const body = loan(1000)
  await push.send(body)
  assert.deepEqual([body.length, (await pull.receive())[0].length], [1000, 1000])
  assert.equal(loan(0).length, 0)
  for (const size of [-1, NaN, Infinity]) assert.throws(() => loan(size), RangeError)
  for (const size of ["100000", undefined, null, {}]) assert.throws(() => loan(size), TypeError)
})

test("queued bodies stay as they are when their buffers are collected", async t => {
  const { code, output, errors } = await program(
    `
    const push = new zmq.Push({ linger: 0 }), pull = new zmq.Pull()
    const turn = () => new Promise(resolve => setImmediate(resolve))
    ;(async () => {
      const endpoint = ${JSON.stringify(endpoint(t))}
      push.connect(endpoint)
      for (let number = 0; number < 20; number++) await push.send(zmq.loan(${MIB}).fill(number))
      for (let round = 0; round < 3; round++) { gc(); await turn() }
      const others = Array.from({ length: 20 }, () => zmq.loan(${MIB}).fill(255))
      pull.bindSync(endpoint)
      for (let number = 0; number < 20; number++) {
        const [body] = await pull.receive()
        if (!body.equals(Buffer.alloc(${MIB}, number))) console.log("body", number)
      }
      console.log(others.length)
    })()`,
    { flags: ["--expose-gc"] },
  )
  assert.deepEqual([code, output, errors], [0, "20\n", ""])
})

test("bodies of a worker thread outlive it", async t => {
  const pull = new Pull()
  t.after(() => pull.close())
  await pull.bind("inproc://loans-of-worker")
  const source = `
    const zmq = require(${JSON.stringify(packageRoot)})
    const push = new zmq.Push()
    push.connect("inproc://loans-of-worker")
    const unsent = zmq.loan(${MIB})
    for (let number = 0; number < 20; number++) push.send(zmq.loan(${MIB}).fill(number))`
  const worker = new Worker(source, { eval: true })
  const [code] = await new Promise((resolve, reject) => worker.once("error", reject).once("exit", (...args) => resolve(args)))
  assert.equal(code, 0)
  for (let number = 0; number < 20; number++) {
    const [body] = await pull.receive()
    assert(body.equals(Buffer.alloc(MIB, number)), `body ${number}`)
  }
})
