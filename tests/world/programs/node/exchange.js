// Exchanges messages over every pattern with the package's own classes. Prints a line `ok NAME` or `not ok NAME` for each case, then `end`.
// A case that takes longer than WATCHDOG seconds fails.
"use strict"
const assert = require("assert")
const zmq = require("zeromq")
const fs = require("fs")
const os = require("os")
const path = require("path")

const BIG = Buffer.alloc(1 << 20, "x")

async function pair(First, Second, options = [{}, {}], endpoint = "tcp://127.0.0.1:*") {
  const first = new First(options[0])
  const second = new Second(options[1])
  await first.bind(endpoint)
  second.connect(first.lastEndpoint)
  return [first, second]
}

const strings = parts => parts.map(part => part.toString())

const cases = {
  async "3,000 round trips, ROUTER and DEALER"() {
    const [router, dealer] = await pair(zmq.Router, zmq.Dealer)
    const serve = (async () => {
      for await (const [id, ...rest] of router) await router.send([id, ...rest])
    })()
    for (let i = 0; i < 3000; i++) {
      await dealer.send(["", String(i)])
      assert.deepStrictEqual(strings(await dealer.receive()), ["", String(i)])
    }
    router.close()
    dealer.close()
    await serve
  },

  async "a pipeline of 10,000 messages, PUSH and PULL"() {
    const [pull, push] = await pair(zmq.Pull, zmq.Push)
    const sending = (async () => {
      for (let i = 0; i < 10_000; i++) await push.send(`${i}`)
      await push.send(["head", BIG, ""])
    })()
    for (let i = 0; i < 10_000; i++) assert.strictEqual((await pull.receive())[0].toString(), `${i}`)
    const [head, body, tail] = await pull.receive()
    assert(head.equals(Buffer.from("head")) && body.equals(BIG) && tail.length === 0)
    await sending
    pull.close()
    push.close()
  },

  async "requests and replies over ipc, REQ and REP"() {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "node-"))
    const [rep, req] = await pair(zmq.Reply, zmq.Request, [{}, {}], `ipc://${folder}/socket`)
    for (let i = 0; i < 200; i++) {
      await req.send(["question", `${i}`])
      assert.deepStrictEqual(strings(await rep.receive()), ["question", `${i}`])
      await rep.send(`${i}`)
      assert.strictEqual((await req.receive())[0].toString(), `${i}`)
    }
    rep.close()
    req.close()
    fs.rmSync(folder, { recursive: true })
  },

  async "topics, XPUB and SUB"() {
    const [xpub, sub] = await pair(zmq.XPublisher, zmq.Subscriber)
    sub.subscribe("apple", "pear")
    assert.deepStrictEqual(strings(await xpub.receive()), ["\x01apple"])
    assert.deepStrictEqual(strings(await xpub.receive()), ["\x01pear"])
    for (const topic of ["apple", "plum", "pear"]) await xpub.send([topic, "!"])
    assert.deepStrictEqual(strings(await sub.receive()), ["apple", "!"])
    assert.deepStrictEqual(strings(await sub.receive()), ["pear", "!"])
    sub.unsubscribe("apple")
    assert.deepStrictEqual(strings(await xpub.receive()), ["\x00apple"])
    xpub.close()
    sub.close()
  },

  async "both ways within the process, PAIR over inproc"() {
    const [first, second] = await pair(zmq.Pair, zmq.Pair, [{}, {}], "inproc://pair")
    for (let i = 0; i < 1000; i++) {
      await first.send(`${i}`)
      await second.send((await second.receive())[0])
      assert.strictEqual((await first.receive())[0].toString(), `${i}`)
    }
    first.close()
    second.close()
  },

  async "a proxy between many"() {
    const proxy = new zmq.Proxy(new zmq.Router(), new zmq.Dealer())
    await proxy.frontEnd.bind("tcp://127.0.0.1:*")
    await proxy.backEnd.bind("tcp://127.0.0.1:*")
    const [front, back] = [proxy.frontEnd.lastEndpoint, proxy.backEnd.lastEndpoint]
    const running = proxy.run()
    const workers = [1, 2, 3].map(() => new zmq.Reply())
    const serving = workers.map(async worker => {
      worker.connect(back)
      for await (const [question] of worker) await worker.send(`<${question}>`)
    })
    const req = new zmq.Request()
    req.connect(front)
    for (let i = 0; i < 300; i++) {
      await req.send(`${i}`)
      assert.strictEqual((await req.receive())[0].toString(), `<${i}>`)
    }
    req.close()
    workers.forEach(worker => worker.close())
    await Promise.all(serving)
    proxy.terminate()
    await running
  },

  async "options, time limits and errors"() {
    const socket = new zmq.Dealer({ receiveTimeout: 10, routingId: "me", linger: 0, sendHighWaterMark: 7 })
    assert.deepStrictEqual([socket.routingId, socket.linger, socket.sendHighWaterMark], ["me", 0, 7])
    await assert.rejects(socket.receive(), { code: "EAGAIN" })
    await assert.rejects(socket.bind("nonsense://x"), { code: "EPROTONOSUPPORT" })
    socket.close()
    assert.throws(() => socket.linger, { code: "ENOTSOCK" })
  },

  async "events of connections"() {
    const pull = new zmq.Pull()
    await pull.bind("tcp://127.0.0.1:*")
    const push = new zmq.Push()
    const seen = new Promise(resolve => push.events.on("handshake", resolve))
    const accepted = new Promise(resolve => pull.events.on("accept", resolve))
    push.connect(pull.lastEndpoint)
    await push.send("hello")
    await pull.receive()
    assert.strictEqual((await accepted).type, "accept")
    assert.strictEqual((await seen).type, "handshake")
    pull.close()
    push.close()
  },

  async "a peer that restarts"() {
    const push = new zmq.Push({ reconnectInterval: 10 })
    let pull = new zmq.Pull()
    await pull.bind("tcp://127.0.0.1:*")
    const endpoint = pull.lastEndpoint
    push.connect(endpoint)
    await push.send("first")
    await pull.receive()
    const lost = new Promise(resolve => push.events.on("disconnect", resolve))
    pull.close()
    await lost
    const sending = push.send("second")
    pull = new zmq.Pull()
    for (;;) {
      try {
        await pull.bind(endpoint)
        break
      } catch (error) {
        assert.strictEqual(error.code, "EADDRINUSE")
      }
    }
    assert.strictEqual((await pull.receive())[0].toString(), "second")
    await sending
    pull.close()
    push.close()
  },
}

function within(seconds, work) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${seconds} s`)), seconds * 1000)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

async function main() {
  for (const [name, body] of Object.entries(cases)) {
    try {
      await within(Number(process.env.WATCHDOG ?? 20), body())
      console.log(`ok ${name}`)
    } catch (error) {
      console.log(`not ok ${name}\n${error.stack}`)
    }
  }
  console.log("end")
}

main()
