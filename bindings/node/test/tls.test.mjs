// TLS: `tls+tcp` and `wss`. `CERTIFICATES` is a folder with the certificates of the tests (`tests/ship/node/run.sh` sets it).
import assert from "node:assert/strict"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { test } from "node:test"
import { Dealer, Pair, Router, capability } from "../lib/index.js"

const folder = process.env.CERTIFICATES
const needed = { skip: folder === undefined && "CERTIFICATES is not set" }
const pem = name => readFileSync(join(folder, `${name}.pem`), "utf8")
const own = name => ({ tlsCertificate: pem(name), tlsKey: pem(`${name}-key`) })

test("the library has TLS", () => assert(capability.tls))

for (const transport of ["tls+tcp", "wss"]) {
  test(`messages over ${transport}`, needed, async t => {
    const server = new Pair({ linger: 0, ...own("server") })
    const client = new Pair({ linger: 0, tlsTrust: pem("ca"), tlsHostname: "localhost" })
    t.after(() => [server, client].forEach(socket => socket.close()))
    await server.bind(`${transport}://127.0.0.1:*`)
    assert(server.lastEndpoint.startsWith(`${transport}://127.0.0.1:`), server.lastEndpoint)
    client.connect(server.lastEndpoint)
    for (const size of [0, 1, 300, 100_000]) {
      await client.send([`${size}`, Buffer.alloc(size, "x")])
      const [told, body] = await server.receive()
      assert.deepEqual([told.toString(), body.equals(Buffer.alloc(size, "x"))], [`${size}`, true])
      await server.send(body)
      assert.equal((await client.receive())[0].length, size)
    }
  })
}

test("a server identifies its clients by their certificates", needed, async t => {
  const server = new Router({ linger: 0, ...own("server"), tlsTrust: Buffer.from(pem("ca")) })
  const client = new Dealer({ linger: 0, tlsTrust: pem("ca"), ...own("client") })
  t.after(() => [server, client].forEach(socket => socket.close()))
  await server.bind("tls+tcp://127.0.0.1:*")
  client.connect(server.lastEndpoint)
  await client.send("hello")
  assert.equal((await server.receive())[1].toString(), "hello")
  assert.equal(server.peers[0].userId, "alice")
})

test("an untrusted server is refused, and the event has the reason", needed, async t => {
  const server = new Pair({ linger: 0, ...own("server") })
  const client = new Pair({ linger: 0, reconnectInterval: 10, tlsTrust: pem("other-ca") })
  t.after(() => [server, client].forEach(socket => socket.close()))
  await server.bind("tls+tcp://127.0.0.1:*")
  const refused = new Promise(resolve => client.events.on("handshake:error:protocol", resolve))
  client.connect(server.lastEndpoint)
  assert.match((await refused).reason, /trusted/)
})

test("a key that does not match the certificate is refused at once", needed, t => {
  const socket = new Pair({ tlsCertificate: pem("server"), tlsKey: pem("client-key") })
  t.after(() => socket.close())
  assert.throws(() => socket.bindSync("tls+tcp://127.0.0.1:*"), { code: "EINVAL" })
  assert.equal(socket.tlsKey, undefined, "a key cannot be read")
})
