// The end of processes and threads, and garbage collection.
import assert from "node:assert/strict"
import { test } from "node:test"
import { Pull } from "../lib/index.js"
import { packageRoot, program } from "./common.mjs"

async function sink(t) {
  const pull = new Pull()
  t.after(() => pull.close())
  await pull.bind("tcp://127.0.0.1:*")
  return [pull, JSON.stringify(pull.lastEndpoint)]
}

test("open sockets do not keep a process alive", async () => {
  const { code, errors } = await program(`
    const pull = new zmq.Pull(), sub = new zmq.Subscriber()
    pull.bindSync("tcp://127.0.0.1:*")
    sub.connect(pull.lastEndpoint)
    sub.subscribe()
    new zmq.Request().connect("tcp://127.0.0.1:1")`)
  assert.deepEqual([code, errors], [0, ""])
})

test("a pending receive keeps a process alive until the socket is closed", async () => {
  const { code, output } = await program(`
    const pull = new zmq.Pull()
    pull.receive().catch(reason => console.log(reason.code))
    setTimeout(() => pull.close(), 50).unref()
    setTimeout(() => {}, 60)`)
  assert.deepEqual([code, output], [0, "EAGAIN\n"])
})

test("the last sent message arrives although the program ends", async t => {
  const [pull, endpoint] = await sink(t)
  const ended = program(`
    const push = new zmq.Push()
    push.connect(${endpoint})
    ;(async () => { for (let i = 0; i < 500; i++) await push.send("x".repeat(1000)); await push.send("last") })()`)
  let count = 0
  for await (const [message] of pull) {
    count++
    if (message.toString() === "last") break
  }
  assert.equal(count, 501)
  assert.equal((await ended).code, 0)
})

const unsent = `
  const push = new zmq.Push()
  push.connect("tcp://127.0.0.1:1")
  push.send("nobody gets it")`

test("the end of a process waits for queued messages, and prints a notice", async () => {
  const { code, errors } = await program(unsent, { until: /waiting until queued messages are sent/ })
  assert.equal(code, "SIGTERM", errors)
})

test("with blocky false or a linger of 0, the end does not wait", async () => {
  assert.equal((await program(`zmq.context.blocky = false; ${unsent}`)).code, 0)
  assert.equal((await program(`${unsent}; push.linger = 0`)).code, 0)
})

test("process.exit() at any time", async () => {
  const { code } = await program(`
    const [pull, push] = [new zmq.Pull(), new zmq.Push()]
    pull.bindSync("tcp://127.0.0.1:*")
    push.connect(pull.lastEndpoint)
    pull.receive()
    push.send("x").then(() => setImmediate(() => process.exit(3)))`)
  assert.equal(code, 3)
})

test("an exception in the receiving code ends the process", async () => {
  const { code, errors } = await program(`
    const [a, b] = [new zmq.Pair(), new zmq.Pair()]
    a.bindSync("inproc://a")
    b.connect("inproc://a")
    b.receive().then(() => { throw new Error("mine") })
    setImmediate(() => a.send("x"))`)
  assert.equal(code, 1)
  assert.match(errors, /Error: mine/)
})

test("an exception of a listener ends the process", async () => {
  const { code, errors } = await program(`
    const pull = new zmq.Pull()
    pull.events.on("bind", () => { throw new Error("mine") })
    pull.bindSync("tcp://127.0.0.1:*")`)
  assert.equal(code, 1)
  assert.match(errors, /Error: mine/)
})

const required = `require(${JSON.stringify(packageRoot)})`

test("worker threads share the context, and end with sockets open", async () => {
  const worker = `
    const zmq = ${required}
    const { workerData } = require("node:worker_threads")
    const push = new zmq.Push()
    push.connect("inproc://main")
    const idle = new zmq.Pull()
    idle.receive().catch(() => {})
    const proxy = new zmq.Proxy(new zmq.Router(), new zmq.Dealer())
    proxy.run().catch(() => {})
    push.send("from " + workerData).then(() => setTimeout(() => process.exit(), 5))`
  const { code, output, errors } = await program(`
    const { Worker } = require("node:worker_threads")
    ;(async () => {
      const pull = new zmq.Pull()
      await pull.bind("inproc://main")
      const ended = []
      for (let i = 0; i < 4; i++) {
        const worker = new Worker(${JSON.stringify(worker)}, { eval: true, workerData: i })
        ended.push(new Promise(resolve => worker.once("exit", resolve)))
      }
      const seen = []
      for (let i = 0; i < 4; i++) seen.push(String((await pull.receive())[0]))
      await Promise.all(ended)
      console.log(seen.sort().join())
    })()`)
  assert.equal(errors, "")
  assert.deepEqual([code, output], [0, "from 0,from 1,from 2,from 3\n"])
})

test("a worker that is terminated while it waits", async () => {
  const worker = `
    const zmq = ${required}
    const socket = new zmq.Pull()
    socket.bindSync("tcp://127.0.0.1:*")
    socket.receive()
    require("node:worker_threads").parentPort.postMessage("waiting")`
  const { code, errors } = await program(`
    const { Worker } = require("node:worker_threads")
    const worker = new Worker(${JSON.stringify(worker)}, { eval: true })
    worker.once("message", () => worker.terminate())`)
  assert.deepEqual([code, errors], [0, ""])
})

test("an unreferenced socket is closed", async () => {
  const { code, output } = await program(
    `(async () => {
      const context = new zmq.Context({ maxSockets: 50 })
      let made = 0
      for (; made < 1000; made++) {
        new zmq.Push({ context, linger: 0 })
        if (made % 20 === 19) {
          global.gc()
          await new Promise(resolve => setImmediate(resolve))
          await new Promise(resolve => setImmediate(resolve))
        }
      }
      console.log(made)
    })()`,
    { flags: ["--expose-gc"] },
  )
  assert.deepEqual([code, output], [0, "1000\n"])
})

test("a waiting socket is not collected", async () => {
  const { code, output } = await program(
    `const push = new zmq.Push({ linger: 0 })
     ;(() => {
       const pull = new zmq.Pull()
       pull.bindSync("tcp://127.0.0.1:*")
       push.connect(pull.lastEndpoint)
       pull.receive().then(([message]) => console.log(String(message)))
     })()
     for (let i = 0; i < 5; i++) global.gc()
     setTimeout(() => { global.gc(); push.send("still there") }, 20)`,
    { flags: ["--expose-gc"] },
  )
  assert.deepEqual([code, output], [0, "still there\n"])
})

test("hundreds of thousands of messages do not increase memory", async () => {
  const { code, output } = await program(
    `(async () => {
      const [pull, push] = [new zmq.Pull(), new zmq.Push()]
      pull.bindSync("tcp://127.0.0.1:*")
      push.connect(pull.lastEndpoint)
      const parts = [Buffer.alloc(700), "and a text", Buffer.alloc(5000)]
      const used = []
      for (let round = 0; round < 4; round++) {
        const count = 100_000
        const sending = (async () => { for (let i = 0; i < count; i++) await push.send(i % 50 ? parts[i % 2] : parts) })()
        for (let i = 0; i < count; i++) await pull.receive()
        await sending
        global.gc()
        await new Promise(resolve => setImmediate(resolve))
        const { heapUsed, external, rss } = process.memoryUsage()
        used.push([heapUsed + external, rss])
      }
      console.log(JSON.stringify(used))
    })()`,
    { flags: ["--expose-gc"] },
  )
  assert.equal(code, 0)
  const [, second, , last] = JSON.parse(output)
  // There are 200,000 messages between the two readings: less than 40 bytes of heap and 100 bytes of memory for each.
  assert(last[0] - second[0] < 8e6 && last[1] - second[1] < 20e6, output)
})
