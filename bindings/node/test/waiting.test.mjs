// Promises: their resolution and rejection, and turns of the event loop.
import assert from "node:assert/strict"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { connect } from "node:net"
import { test } from "node:test"
import { Dealer, Pair, Publisher, Pull, Push, Reply, Request, Router, Subscriber, XPublisher } from "../lib/index.js"
import { pair } from "./common.mjs"

const turn = () => new Promise(resolve => setImmediate(resolve))

test("a send waits for room, and is resolved when there is room", async t => {
  const [pull, push] = await pair(t, Pull, Push, {
    first: { receiveHighWaterMark: 1 },
    second: { sendHighWaterMark: 1 },
    endpoint: "inproc://room",
  })
  let sent = 0
  const sending = (async () => {
    for (; sent < 100; sent++) await push.send(`${sent}`)
  })()
  for (let i = 0; i < 20; i++) await turn()
  assert(sent < 10, `${sent} messages went into room for two`)
  for (let i = 0; i < 100; i++) assert.equal((await pull.receive())[0].toString(), `${i}`)
  await sending
})

test("without a peer a send waits, and a second send is refused", async t => {
  const push = new Push()
  t.after(() => push.close())
  const first = push.send("first")
  await assert.rejects(push.send("second"), { code: "EBUSY" })
  assert.equal(push.writable, false)
  const pull = new Pull()
  t.after(() => pull.close())
  await pull.bind("tcp://127.0.0.1:*")
  push.connect(pull.lastEndpoint)
  await first
  assert.equal((await pull.receive())[0].toString(), "first")
  assert.equal(push.writable, true)
})

test("one receive at a time", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  const first = pull.receive()
  await assert.rejects(pull.receive(), { code: "EBUSY" })
  await push.send("message")
  assert.equal((await first)[0].toString(), "message")
})

test("time limits", async t => {
  const socket = new Dealer({ receiveTimeout: 5, sendTimeout: 5 })
  t.after(() => socket.close())
  await assert.rejects(socket.receive(), { code: "EAGAIN" })
  await assert.rejects(socket.send("nobody there"), { code: "EAGAIN" })
  socket.receiveTimeout = 0
  socket.sendTimeout = 0
  await assert.rejects(socket.receive(), { code: "EAGAIN" })
  await assert.rejects(socket.send("nobody there"), { code: "EAGAIN" })
})

test("with a time limit of 0, a receive without a message always fails", async t => {
  const [pull, push] = await pair(t, Pull, Push, { first: { receiveTimeout: 0 } })
  for (let i = 0; i < 2000; i++) await assert.rejects(pull.receive(), { code: "EAGAIN" })
  await push.send("x")
})

test("an expired time limit has no later effect", async t => {
  const [first, second] = await pair(t, Pair, Pair, { first: { receiveTimeout: 1 } })
  await assert.rejects(first.receive(), { code: "EAGAIN" })
  await second.send("later")
  first.receiveTimeout = -1
  assert.equal((await first.receive())[0].toString(), "later")
})

test("sending while a receive waits, and the other way round", async t => {
  const [router, dealer] = await pair(t, Router, Dealer)
  const answers = (async () => {
    for (let i = 0; i < 200; i++) assert.equal((await dealer.receive())[0].toString(), `${i}`)
  })()
  const questions = (async () => {
    for (let i = 0; i < 200; i++) {
      await dealer.send(`${i}`)
      if (i % 10 === 0) await turn()
    }
  })()
  for (let i = 0; i < 200; i++) {
    const waiting = router.receive()
    await turn()
    await router.send(await waiting)
  }
  await Promise.all([answers, questions])
})

test("reading the state of a socket does not consume the event of a waiting receive", async t => {
  const [first, second] = await pair(t, Pair, Pair, { endpoint: "inproc://looking" })
  for (let i = 0; i < 300; i++) {
    const waiting = first.receive()
    if (i % 3 === 0) await new Promise(resolve => setTimeout(resolve, 1))
    await second.send(`${i}`)
    void first.readable
    assert.equal((await waiting)[0].toString(), `${i}`)
  }
})

const onLinux = { skip: process.platform !== "linux" && "only Linux counts the unread bytes in /proc", timeout: 60_000 }

test("a receive ends if the I/O thread reads the rest of its message", onLinux, async t => {
  const pull = new Pull()
  t.after(() => pull.close())
  await pull.bind("tcp://127.0.0.1:*")
  const peer = connect(Number(pull.lastEndpoint.split(":").at(-1)), "127.0.0.1").resume()
  t.after(() => peer.destroy())
  await once(peer, "connect")
  const address = port => `0100007F:${port.toString(16).toUpperCase().padStart(4, "0")}`
  const row = new RegExp(`${address(peer.remotePort)} ${address(peer.localPort)} 01 \\w+:(\\w+)`)
  const unread = () => parseInt(readFileSync("/proc/net/tcp", "latin1").match(row)[1], 16)
  const write = bytes => {
    peer.write(Buffer.from(bytes))
    assert.equal(peer.writableLength, 0)
  }
  // ZMTP 1.0: no routing id. Each message begins with its length and its flags.
  write([1, 0])
  for (let i = 0; i < 20; i++) {
    const waiting = pull.receive()
    write([3, 0, i])
    do await turn()
    while (unread() > 0)
    write([i])
    // The loop stands still, so only the I/O thread can read.
    while (unread() > 0);
    assert.deepEqual([...(await waiting)[0]], [i, i])
  }
})

test("the state of a socket", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  assert.deepEqual([pull.readable, pull.writable, push.readable], [false, false, false])
  await push.send("one")
  await push.send("two")
  await pull.receive()
  while (!pull.readable) await turn()
  await pull.receive()
  assert.equal(pull.readable, false)
})

test("the event loop gets turns during a stream of messages", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  let timers = 0
  const timer = setInterval(() => timers++, 1)
  t.after(() => clearInterval(timer))
  const count = 50_000
  const sending = (async () => {
    for (let i = 0; i < count && timers < 5; i = (i + 1) % count) await push.send("x".repeat(50))
    await push.send("")
  })()
  for await (const [message] of pull) if (message.length === 0) break
  await sending
  assert(timers >= 5)
})

test("sends and receives out of turn are refused", async t => {
  const [rep, req] = await pair(t, Reply, Request)
  const refused = (operation, first) =>
    assert.rejects(operation, { code: "EFSM", message: `Operation cannot be accomplished in current state: ${first}` })
  await refused(req.receive(), "a Request must send first")
  await refused(rep.send("answer"), "a Reply must receive a request first")
  await req.send("question")
  await refused(req.send("another"), "a Request must receive the reply to its last request first")
  await rep.receive()
  await refused(rep.receive(), "a Reply must reply to the last request first")
  await rep.send("answer")
  await req.receive()
})

test("a message to an unknown routing id is refused", async t => {
  const router = new Router({ mandatory: true })
  t.after(() => router.close())
  await assert.rejects(router.send(["nobody", "hello"]), { code: "EHOSTUNREACH", message: "Host unreachable" })
})

test("a Push cannot receive, and a Pull cannot send", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  await assert.rejects(push.receive(), { code: "ENOTSUP" })
  await assert.rejects(pull.send("x"), { code: "ENOTSUP" })
})

test("closing ends waiting operations and iterations", async t => {
  const [pull, other] = [new Pull(), new Pull()]
  const push = new Push()
  const iteration = (async () => {
    for await (const message of other) assert.fail(`${message}`)
  })()
  const receiving = pull.receive()
  const sending = push.send("nobody there")
  ;[pull, push, other].forEach(socket => socket.close())
  await assert.rejects(receiving, { code: "EAGAIN" })
  await assert.rejects(sending, { code: "EAGAIN" })
  await iteration
  pull.close()
  assert.equal(pull.closed, true)
  assert.equal(pull.readable, false)
  assert.throws(() => pull.receive(), { code: "EBADF" })
  assert.throws(() => push.send("x"), { code: "EBADF" })
  assert.throws(() => pull.connect("inproc://x"), { code: "EBADF" })
  assert.throws(() => pull.linger, { code: "ENOTSOCK" })
})

test("leaving an iteration does not close the socket", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  for (let i = 0; i < 5; i++) await push.send(`${i}`)
  for await (const [message] of pull) if (message.toString() === "1") break
  // Receive all messages: if a message has lost its peer, closing its socket waits forever.
  for (let i = 2; i < 5; i++) assert.equal((await pull.receive())[0].toString(), `${i}`)
})

test("thousands of sockets come and go", async t => {
  for (let round = 0; round < 20; round++) {
    const pull = new Pull({ linger: 0 })
    await pull.bind(`inproc://round-${round}`)
    const pushes = Array.from({ length: 50 }, () => new Push({ linger: 0 }))
    pushes.forEach(push => push.connect(`inproc://round-${round}`))
    await Promise.all(pushes.map((push, i) => push.send(`${i}`)))
    for (let i = 0; i < pushes.length; i++) await pull.receive()
    ;[pull, ...pushes].forEach(socket => socket.close())
  }
})

test("waitForPeers waits for connected peers", async t => {
  const pull = new Pull()
  t.after(() => pull.close())
  await pull.bind("tcp://127.0.0.1:*")
  assert.equal(await pull.waitForPeers(0), true)
  assert.equal(await pull.waitForPeers(1, 0), false)
  assert.equal(await pull.waitForPeers(1, 15), false)
  const waiting = pull.waitForPeers(2)
  const workers = [new Push({ linger: 0 }), new Push({ linger: 0 })]
  t.after(() => workers.forEach(worker => worker.close()))
  workers.forEach(worker => worker.connect(pull.lastEndpoint))
  assert.equal(await waiting, true)
  assert.equal(pull.peers.length, 2)
  assert.equal(await workers[0].waitForPeers(1), true)
})

test("after waitForSubscriptions, the subscriber receives every message", async t => {
  for (const Kind of [Publisher, XPublisher]) {
    const [publisher, subscriber] = [new Kind(), new Subscriber()]
    t.after(() => [publisher, subscriber].forEach(socket => socket.close()))
    await publisher.bind("tcp://127.0.0.1:*")
    const waiting = publisher.waitForSubscriptions(2)
    subscriber.connect(publisher.lastEndpoint)
    subscriber.subscribe("news", "weather")
    assert.equal(await waiting, true)
    await publisher.send("news of today")
    assert.equal((await subscriber.receive())[0].toString(), "news of today")
    assert.equal(await publisher.waitForSubscriptions(3, 0), false)
  }
})

test("a receive continues during waitForPeers", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  const received = pull.receive()
  await Promise.all([push.send("hello"), pull.waitForPeers(1)])
  assert.equal((await received)[0].toString(), "hello")
})

test("waitForPeers ends with its socket, and waitForSubscriptions fails for types without topics", async t => {
  const push = new Push()
  t.after(() => push.close())
  await assert.rejects(push.waitForSubscriptions(1), { code: "ENOTSUP" })
  await assert.rejects(push.waitForPeers(-1), RangeError)
  const waiting = assert.rejects(push.waitForPeers(1), { code: "EBADF" })
  push.close()
  await waiting
})
