// Observers and proxies.
import assert from "node:assert/strict"
import { test } from "node:test"
import { curveKeyPair, Dealer, Proxy, Pull, Push, Reply, Request, Router } from "../lib/index.js"
import { pair } from "./common.mjs"

test("events by listeners", async t => {
  const [pull, push] = [new Pull(), new Push()]
  t.after(() => [pull, push].forEach(socket => socket.close()))
  const first = (socket, type) => new Promise(resolve => socket.events.on(type, resolve))
  const [bound, accepted, shaken] = [first(pull, "bind"), first(pull, "accept"), first(push, "handshake")]
  await pull.bind("tcp://127.0.0.1:*")
  assert.deepEqual(await bound, { type: "bind", address: pull.lastEndpoint })
  push.connect(pull.lastEndpoint)
  assert.equal((await accepted).type, "accept")
  assert.equal((await shaken).address, pull.lastEndpoint)
  await assert.rejects(push.events.receive(), { code: "EBUSY" })
  const lost = first(push, "disconnect")
  pull.close()
  assert.equal((await lost).type, "disconnect")
})

test("a removed listener is not called", async t => {
  const pull = new Pull()
  t.after(() => pull.close())
  const never = () => assert.fail("was called")
  pull.events.on("bind", never).off("bind", never)
  const bound = new Promise(resolve => pull.events.on("bind", resolve))
  await pull.bind("tcp://127.0.0.1:*")
  await bound
})

test("events one by one, until the socket is closed", async t => {
  const [pull, push] = await pair(t, Pull, Push)
  const types = []
  const watching = (async () => {
    for await (const { type } of push.events) {
      types.push(type)
      if (type === "disconnect") push.close()
    }
  })()
  await push.send("hello")
  await pull.receive()
  pull.close()
  await watching
  assert(types.includes("disconnect"), `${types}`)
  assert.equal(push.events.closed, true)
})

test("a retry event has its interval", async t => {
  const push = new Push({ reconnectInterval: 20, linger: 0 })
  t.after(() => push.close())
  const retried = new Promise(resolve => push.events.on("connect:retry", resolve))
  push.connect("tcp://127.0.0.1:1")
  const { interval } = await retried
  assert(interval >= 20 && interval < 40, `${interval}`)
})

test("an event has both ends, the peer and the reason", async t => {
  const [router, dealer] = [new Router(), new Dealer({ routingId: "joe", linger: 0 })]
  t.after(() => [router, dealer].forEach(socket => socket.close()))
  const first = (socket, type) => new Promise(resolve => socket.events.on(type, resolve))
  await router.bind("tcp://127.0.0.1:*")
  const address = router.lastEndpoint
  const [came, shaken, lost] = ["accept", "handshake", "disconnect"].map(type => first(router, type))
  const reached = first(dealer, "handshake")
  dealer.connect(address)
  const { local, remote } = await reached
  assert.deepEqual(await came, { type: "accept", address, local: address, remote: local })
  assert.equal(remote, address)
  const peer = { routingId: Buffer.from("joe"), peerAddress: "127.0.0.1" }
  assert.deepEqual(await shaken, { type: "handshake", address, local: address, remote: local, ...peer })
  dealer.close()
  assert.deepEqual(await lost, {
    type: "disconnect",
    address,
    local: address,
    remote: local,
    ...peer,
    reason: "the peer closed the connection",
  })
})

test("the event of a failed handshake has the reason", async t => {
  const [server, client] = [curveKeyPair(), curveKeyPair()]
  const pull = new Pull({ curveServer: true, curveSecretKey: server.secretKey })
  const push = new Push({
    curvePublicKey: client.publicKey,
    curveSecretKey: client.secretKey,
    curveServerKey: client.publicKey,
    linger: 0,
  })
  t.after(() => [pull, push].forEach(socket => socket.close()))
  const failed = new Promise(resolve => pull.events.on("handshake:error:protocol", resolve))
  await pull.bind("tcp://127.0.0.1:*")
  push.connect(pull.lastEndpoint)
  const { error, reason, address } = await failed
  assert.deepEqual([error.code, reason, address], ["ERR_ZMTP_CRYPTOGRAPHIC", "a CURVE key is wrong", pull.lastEndpoint])
})

test("a proxy between several clients and workers", async t => {
  const proxy = new Proxy(new Router(), new Dealer())
  await proxy.frontEnd.bind("tcp://127.0.0.1:*")
  await proxy.backEnd.bind("tcp://127.0.0.1:*")
  const [front, back] = [proxy.frontEnd.lastEndpoint, proxy.backEnd.lastEndpoint]
  assert.throws(() => proxy.pause(), { code: "EINVAL" })
  const running = proxy.run()
  await assert.rejects(proxy.run(), { code: "EBUSY" })
  await assert.rejects(async () => proxy.frontEnd.receive(), { code: "EBUSY" })
  const workers = [1, 2, 3].map(() => new Reply())
  const serving = workers.map(async worker => {
    worker.connect(back)
    for await (const [question] of worker) await worker.send(`<${question}>`)
  })
  const req = new Request()
  t.after(() => req.close())
  req.connect(front)
  for (let i = 0; i < 300; i++) {
    if (i === 100) {
      proxy.pause()
      proxy.resume()
    }
    await req.send(`${i}`)
    assert.equal((await req.receive())[0].toString(), `<${i}>`)
  }
  workers.forEach(worker => worker.close())
  await Promise.all(serving)
  proxy.terminate()
  await running
  assert(proxy.frontEnd.closed && proxy.backEnd.closed)
})
