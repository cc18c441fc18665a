// Messages through each type of socket.
import assert from "node:assert/strict"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { test } from "node:test"
import * as zmq from "../lib/index.js"
import draft from "../lib/draft.js"
import { pair, strings } from "./common.mjs"

const { Dealer, Pair, Publisher, Pull, Push, Reply, Request, Router, Stream, Subscriber, XPublisher, XSubscriber } = zmq

test("requests and replies", async t => {
  const [rep, req] = await pair(t, Reply, Request)
  for (let i = 0; i < 100; i++) {
    await req.send(["question", i])
    assert.deepEqual(strings(await rep.receive()), ["question", `${i}`])
    await rep.send(`${i}`)
    assert.deepEqual(strings(await req.receive()), [`${i}`])
  }
})

test("a service as an async iterator answers many clients at once", async t => {
  const [router, dealer] = await pair(t, Router, Dealer)
  const serving = (async () => {
    for await (const [id, ...rest] of router) await router.send([id, ...rest])
  })()
  for (let i = 0; i < 500; i++) await dealer.send(["", `${i}`])
  for (let i = 0; i < 500; i++) assert.deepEqual(strings(await dealer.receive()), ["", `${i}`])
  router.close()
  await serving
})

test("messages of all lengths and numbers of parts arrive whole and in order", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  const lengths = [0, 1, 40, 41, 1000, 4095, 4096, 4097, 60_000, 65_536, 300_000, 2_000_000]
  const messages = []
  for (let i = 0; i < 600; i++) {
    const parts = []
    for (let part = 0; part <= (i * 7) % 5; part++) parts.push(Buffer.alloc(lengths[(i + part * 5) % lengths.length], i + part))
    messages.push(parts)
  }
  messages.push(Array.from({ length: 5000 }, (_, part) => Buffer.from(`${part}`)))
  const sending = (async () => {
    for (const message of messages) await push.send(message)
  })()
  for (const message of messages) {
    const received = await pull.receive()
    assert.equal(received.length, message.length)
    message.forEach((part, index) => assert(part.equals(received[index])))
  }
  await sending
})

test("values that can be sent", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  const shared = new Uint8Array(new SharedArrayBuffer(3)).fill(97)
  const long = "ü".repeat(5000)
  const sent = [
    ["text", "text"],
    [long, long],
    ["x".repeat(1022), "x".repeat(1022)],
    [Buffer.from("buffer"), "buffer"],
    [new Uint8Array([104, 105]), "hi"],
    [new Uint16Array([0x6968]), "hi"],
    [new DataView(new Uint8Array([0, 104, 105]).buffer, 1), "hi"],
    [new Uint8Array([104, 105]).buffer, "hi"],
    [shared, "aaa"],
    [shared.buffer, "aaa"],
    [4.5, "4.5"],
    [12n, "12"],
    [null, ""],
    ["", ""],
    [["a", null, 3], ["a", "", "3"]],
  ]
  for (const [message] of sent) await push.send(message)
  for (const [, text] of sent) assert.deepEqual(strings(await pull.receive()), [text].flat())
  for (const nothing of [undefined, {}, [], [undefined], Symbol("x"), () => {}]) {
    assert.throws(() => push.send(nothing), TypeError)
  }
})

test("a received part does not change when others arrive", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  const kept = []
  for (let i = 0; i < 3000; i++) {
    await push.send(`message ${i}`)
    kept.push(...(await pull.receive()))
  }
  kept.forEach((message, i) => assert.equal(message.toString(), `message ${i}`))
})

test("a conflating socket keeps only the newest message", async t => {
  const [pull, push] = await pair(t, Pull, Push, {
    first: { conflate: true },
    second: { conflate: true },
    endpoint: "inproc://newest",
  })
  await push.send("first")
  assert.deepEqual(strings(await pull.receive()), ["first"])
  for (let i = 0; i < 100; i++) await push.send(`${i}`)
  assert.deepEqual(strings(await pull.receive()), ["99"])
})

test("topics", async t => {
  const [xpub, sub] = await pair(t, XPublisher, Subscriber)
  sub.subscribe("apple", Buffer.from("pear"))
  assert.deepEqual(strings(await xpub.receive()), ["\x01apple"])
  assert.deepEqual(strings(await xpub.receive()), ["\x01pear"])
  for (const topic of ["apple", "plum", "pear"]) await xpub.send([topic, "!"])
  assert.deepEqual(strings(await sub.receive()), ["apple", "!"])
  assert.deepEqual(strings(await sub.receive()), ["pear", "!"])
  sub.unsubscribe("apple")
  assert.deepEqual(strings(await xpub.receive()), ["\x00apple"])
})

test("an XPublisher and an XSubscriber exchange subscriptions as messages", async t => {
  const [pub, xsub] = await pair(t, Publisher, XSubscriber)
  await xsub.send("\x01")
  let done = false
  const publishing = (async () => {
    while (!done) {
      await pub.send("news")
      await new Promise(resolve => setTimeout(resolve, 1))
    }
  })()
  assert.deepEqual(strings(await xsub.receive()), ["news"])
  done = true
  await publishing
})

for (const transport of ["inproc", "ipc"]) {
  test(`pairs over ${transport}`, async t => {
    const folder = mkdtempSync(join(tmpdir(), "tautline-"))
    t.after(() => rmSync(folder, { recursive: true }))
    const endpoint = transport === "ipc" ? `ipc://${folder}/pair` : "inproc://pair"
    const [first, second] = await pair(t, Pair, Pair, { endpoint })
    for (let i = 0; i < 1000; i++) {
      await first.send(`${i}`)
      await second.send((await second.receive())[0])
      assert.equal((await first.receive())[0].toString(), `${i}`)
    }
  })
}

test("raw streams", async t => {
  const [server, client] = [new Stream(), new Stream()]
  t.after(() => [server, client].forEach(socket => socket.close()))
  await server.bind("tcp://127.0.0.1:*")
  client.connect(server.lastEndpoint, { routingId: "there" })
  const [id, greeting] = await client.receive()
  assert.deepEqual([id.toString(), greeting.length], ["there", 0])
  await client.send(["there", "hello"])
  const [peer, nothing] = await server.receive()
  assert.equal(nothing.length, 0)
  const [from, hello] = await server.receive()
  assert(from.equals(peer) && hello.toString() === "hello")
})

test("drafts: a server and its client", async t => {
  const [server, client] = await pair(t, draft.Server, draft.Client)
  await client.send("question")
  const [question, address] = await server.receive()
  assert.equal(question.toString(), "question")
  await server.send("answer", address)
  assert.deepEqual(strings(await client.receive()), ["answer"])
})

test("drafts: a radio and a dish", async t => {
  const [dish, radio] = await pair(t, draft.Dish, draft.Radio)
  dish.join("weather")
  let done = false
  const sending = (async () => {
    while (!done) {
      await radio.send("traffic jam", { group: "traffic" })
      await radio.send("rain", { group: "weather" })
      await new Promise(resolve => setTimeout(resolve, 1))
    }
  })()
  const [message, { group }] = await dish.receive()
  assert.deepEqual([message.toString(), group.toString()], ["rain", "weather"])
  done = true
  await sending
})

test("drafts: scatter and gather", async t => {
  const [gather, scatter] = await pair(t, draft.Gather, draft.Scatter)
  for (let i = 0; i < 10; i++) await scatter.send(`${i}`)
  for (let i = 0; i < 10; i++) assert.deepEqual(strings(await gather.receive()), [`${i}`])
})
