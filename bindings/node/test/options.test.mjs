// Options, contexts, endpoints and errors.
import assert from "node:assert/strict"
import { test } from "node:test"
import * as zmq from "../lib/index.js"

const { Context, Dealer, Publisher, Pull, Push, Request, Router, Socket, Subscriber, XPublisher } = zmq

test("options in the constructor and as properties", t => {
  const socket = new Dealer({ receiveTimeout: 10, routingId: "me", linger: 0, sendHighWaterMark: 7, maxMessageSize: 5e9 })
  t.after(() => socket.close())
  const { receiveTimeout, routingId, linger, sendHighWaterMark, maxMessageSize } = socket
  assert.deepEqual([receiveTimeout, routingId, linger, sendHighWaterMark, maxMessageSize], [10, "me", 0, 7, 5e9])
  socket.immediate = true
  assert.equal(socket.immediate, true)
  assert.throws(() => (socket.routingId = null), { code: "EINVAL" })
})

test("defaults", t => {
  const socket = new Push()
  t.after(() => socket.close())
  for (const [name, value] of Object.entries({
    linger: -1,
    sendTimeout: -1,
    sendHighWaterMark: 1000,
    lastEndpoint: null,
    type: 8,
    maxMessageSize: -1,
    affinity: 0,
    plainUsername: null,
    curvePublicKey: null,
    securityMechanism: null,
    interface: null,
    handshakeInterval: 30000,
    reconnectInterval: 100,
    threadSafe: false,
  })) {
    assert.equal(socket[name], value, name)
  }
})

test("every option of every kind can be read or written without harm", t => {
  for (const [name, Kind] of Object.entries(zmq)) {
    if (!(Kind?.prototype instanceof Socket)) continue
    const socket = new Kind()
    t.after(() => socket.close())
    for (let part = Kind.prototype; part !== Object.prototype; part = Object.getPrototypeOf(part)) {
      for (const [option, { get, set }] of Object.entries(Object.getOwnPropertyDescriptors(part))) {
        if (!get && !set) continue
        for (const use of [() => socket[option], () => (socket[option] = socket[option]), () => (socket[option] = {})]) {
          try {
            use()
          } catch (reason) {
            assert(reason instanceof TypeError || /^E[A-Z]+$/.test(reason.code), `${name}.${option}: ${reason}`)
          }
        }
      }
    }
  }
})

test("values of the wrong type or out of range", () => {
  assert.throws(() => new Push({ linger: "1" }), TypeError)
  assert.throws(() => new Push({ immediate: 1 }), TypeError)
  assert.throws(() => new Push({ plainUsername: 5 }), TypeError)
  assert.throws(() => new Push({ nonsense: 1 }), TypeError)
  const refused = (make, sentence) => assert.throws(make, { code: "EINVAL", message: `Invalid argument: ${sentence}` })
  refused(() => new Push({ linger: -7 }), "ZMQ_LINGER does not take the value -7")
  refused(() => new Push({ curveServerKey: "short" }), "ZMQ_CURVE_SERVERKEY is a key: 32 bytes, or 40 characters of Z85")
  refused(() => new Push({ plainPassword: "" }), "ZMQ_PLAIN_PASSWORD does not take this value of 0 bytes")
  const push = new Push()
  refused(() => push.setInt32Option(6, 1), "PUSH sockets have no ZMQ_SUBSCRIBE")
  refused(() => push.setStringOption(23, "abc"), "ZMQ_SNDHWM needs a value of 4 bytes, not 3")
  refused(() => push.getInt64Option(23), "ZMQ_SNDHWM does not fit into a buffer of 8 bytes")
  refused(() => push.getInt32Option(9999), "there is no option 9999")
  push.close()
  assert.throws(() => new Push({ context: {} }), TypeError)
  assert.throws(() => new XPublisher({ verbosity: "much" }), TypeError)
  new XPublisher({ verbosity: "allSubsUnsubs" }).close()
})

test("a subclass can define its own option", t => {
  class MyDealer extends Dealer {
    get sendHighWaterMark() {
      return this.getInt32Option(23)
    }
    set sendHighWaterMark(value) {
      this.setInt32Option(23, value)
    }
  }
  const socket = new MyDealer({ sendHighWaterMark: 456 })
  t.after(() => socket.close())
  assert.equal(socket.sendHighWaterMark, 456)
})

test("invalid endpoints are refused", async t => {
  const socket = new Push()
  t.after(() => socket.close())
  await assert.rejects(socket.bind("nonsense://x"), { code: "EPROTONOSUPPORT", address: "nonsense://x" })
  await assert.rejects(socket.bind("tcp://127.0.0.1:99999"), { code: "EINVAL" })
  await assert.rejects(socket.bind(5), TypeError)
  assert.throws(() => socket.connect("x"), { code: "EINVAL", address: "x" })
  assert.throws(() => socket.disconnect("tcp://127.0.0.1:1"), { code: "ENOENT" })
  socket.bindSync("tcp://127.0.0.1:*")
  const other = new Push()
  t.after(() => other.close())
  assert.throws(() => other.bindSync(socket.lastEndpoint), { code: "EADDRINUSE" })
  await socket.unbind(socket.lastEndpoint)
  await other.bind(socket.lastEndpoint)
})

test("a separate context", async t => {
  const context = new Context({ ioThreads: 2, maxSockets: 2 })
  assert.deepEqual([context.ioThreads, context.maxSockets, context.blocky, context.ipv6], [2, 2, true, false])
  assert.throws(() => new Context({ ioThreads: -1 }), {
    code: "EINVAL",
    message: "Invalid argument: ioThreads does not take the value -1",
  })
  assert.throws(() => new Context({ nonsense: 1 }), TypeError)
  const [pull, push] = [new Pull({ context }), new Push({ context })]
  t.after(() => [pull, push].forEach(socket => socket.close()))
  assert.equal(pull.context, context)
  assert.throws(() => new Push({ context }), { code: "EMFILE" })
  await pull.bind("inproc://own")
  push.connect("inproc://own")
  await push.send("here")
  assert.equal((await pull.receive())[0].toString(), "here")
  const stranger = new Push()
  t.after(() => stranger.close())
  assert.equal(stranger.context, zmq.context)
})

test("versions and capabilities", () => {
  assert.equal(zmq.version, "4.3.5")
  assert(zmq.capability.curve && zmq.capability.ipc && zmq.capability.tautline && !zmq.capability.gssapi)
  assert.match(zmq.tautlineVersion, /^\d+\.\d+\.\d+/)
  const { publicKey, secretKey } = zmq.curveKeyPair()
  assert(publicKey.length === 40 && secretKey.length === 40 && publicKey !== secretKey)
})

test("statistics", async t => {
  const [pull, push] = [new Pull(), new Push({ linger: 0 })]
  t.after(() => [pull, push].forEach(socket => socket.close()))
  await pull.bind("inproc://statistics")
  push.connect("inproc://statistics")
  await push.send("12345")
  await pull.receive()
  const { messagesSent, bytesSent, messagesReceived, peers, droppedFull } = push.statistics
  assert.deepEqual([messagesSent, bytesSent, messagesReceived, peers, droppedFull], [1, 7, 0, 1, 0])
  assert.equal(pull.statistics.messagesReceived, 1)
  assert.equal(Object.keys(pull.statistics).length, 13)
  const closed = new Push()
  closed.close()
  assert.throws(() => closed.statistics, { code: "EBADF" })
})

test("peers", async t => {
  const [router, dealer] = [new Router(), new Dealer({ routingId: "joe", linger: 0 })]
  t.after(() => [router, dealer].forEach(socket => socket.close()))
  assert.deepEqual(router.peers, [])
  await router.bind("tcp://127.0.0.1:*")
  dealer.connect(router.lastEndpoint)
  await dealer.send("12345")
  await router.receive()
  const [client] = router.peers
  assert.equal(router.peers.length, 1)
  assert.deepEqual([client.state, client.messagesReceived, client.bytesReceived], ["connected", 1, 7])
  assert.deepEqual([client.routingId.toString(), client.peerAddress, client.mechanism], ["joe", "127.0.0.1", "NULL"])
  assert(client.connectedSince > new Date(2020, 0) && !client.isOutgoing && !client.usesSharedMemory)
  const [server] = dealer.peers
  assert.deepEqual([server.remote, server.isOutgoing, server.messagesSent], [router.lastEndpoint, true, 1])
  assert.deepEqual([server.local, client.endpoint], [client.remote, router.lastEndpoint])
})

test("an error names the endpoint", async t => {
  const [socket, other] = [new Pull(), new Pull()]
  t.after(() => [socket, other].forEach(socket => socket.close()))
  await socket.bind("tcp://127.0.0.1:*")
  const address = socket.lastEndpoint
  await assert.rejects(other.bind(address), { code: "EADDRINUSE", address, message: new RegExp(`: ${address}$`) })
  assert.throws(() => other.connect("tcp://localhost"), { code: "EINVAL", message: /: tcp:\/\/localhost$/ })
})

test("CURVE, and a peer with the wrong key", async t => {
  const [server, client] = [zmq.curveKeyPair(), zmq.curveKeyPair()]
  const pull = new Pull({ curveServer: true, curveSecretKey: server.secretKey })
  const secured = { curvePublicKey: client.publicKey, curveSecretKey: client.secretKey, linger: 0 }
  const push = new Push({ ...secured, curveServerKey: server.publicKey })
  const wrong = new Push({ ...secured, curveServerKey: zmq.curveKeyPair().publicKey })
  t.after(() => [pull, push, wrong].forEach(socket => socket.close()))
  assert.equal(pull.securityMechanism, "curve")
  assert.equal(push.curvePublicKey, client.publicKey)
  await pull.bind("tcp://127.0.0.1:*")
  const refused = new Promise(resolve => pull.events.on("handshake:error:protocol", resolve))
  wrong.connect(pull.lastEndpoint)
  const { error } = await refused
  assert.match(error.code, /^ERR_ZMTP_/)
  push.connect(pull.lastEndpoint)
  await push.send("secret")
  assert.equal((await pull.receive())[0].toString(), "secret")
})

test("PLAIN, and an authenticator that refuses a client", async t => {
  const judge = new zmq.Reply()
  const judging = (async () => {
    await judge.bind("inproc://zeromq.zap.01")
    for await (const [version, id, , , , , name, password] of judge) {
      const good = `${name}` === "me" && `${password}` === "word"
      await judge.send([version, id, good ? "200" : "400", good ? "OK" : "No", good ? "me" : "", ""])
    }
  })()
  const pull = new Pull({ plainServer: true, zapDomain: "test" })
  const wrong = new Push({ plainUsername: "me", plainPassword: "guess", linger: 0 })
  const push = new Push({ plainUsername: "me", plainPassword: "word" })
  t.after(async () => {
    ;[pull, push, wrong, judge].forEach(socket => socket.close())
    await judging
  })
  await pull.bind("tcp://127.0.0.1:*")
  const refused = new Promise(resolve => pull.events.on("handshake:error:auth", resolve))
  wrong.connect(pull.lastEndpoint)
  assert.equal((await refused).error.status, 400)
  push.connect(pull.lastEndpoint)
  await push.send("hello")
  assert.equal((await pull.receive())[0].toString(), "hello")
})

test("subscribe accepts strings and buffers only", t => {
  const socket = new Subscriber()
  t.after(() => socket.close())
  assert.throws(() => socket.subscribe(5), TypeError)
  socket.subscribe()
  socket.unsubscribe()
})

test("options that a kind does not have", t => {
  for (const [Kind, option] of [
    [Publisher, "receiveTimeout"],
    [Pull, "sendTimeout"],
    [Push, "routingId"],
    [Request, "conflate"],
    [Router, "correlate"],
  ]) {
    assert.throws(() => new Kind({ [option]: 1 }), TypeError)
  }
})
