// Encryption with CURVE, and an authenticator that admits the clients whose public key it knows.
//
//   node examples/curve.mjs [ENDPOINT]
//
// Keys are 40 characters. A client has to know the server's public key. The authenticator decides
// for each client whether it may connect, by the ZAP protocol (https://rfc.zeromq.org/spec/27).
import { Reply, Request, curveKeyPair } from "tautline"

const [serverKeys, known, stranger] = [curveKeyPair(), curveKeyPair(), curveKeyPair()]
const admitted = new Set([known.publicKey])

// The authenticator receives keys as 32 bytes. In Z85, four bytes are five characters.
const DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
function z85(bytes) {
  let text = ""
  for (let at = 0; at < bytes.length; at += 4) {
    const value = bytes.readUInt32BE(at)
    for (const unit of [85 ** 4, 85 ** 3, 85 ** 2, 85, 1]) text += DIGITS[Math.floor(value / unit) % 85]
  }
  return text
}

const authenticator = new Reply()
await authenticator.bind("inproc://zeromq.zap.01")
async function authenticate() {
  for await (const [version, id, , , , , key] of authenticator) {
    const verdict = admitted.has(z85(key)) ? ["200", "OK", "user"] : ["400", "unknown key", ""]
    await authenticator.send([version, id, ...verdict, ""])
  }
}

const { secretKey: curveSecretKey } = serverKeys
const server = new Reply({ curveServer: true, curveSecretKey, zapDomain: "example" })
await server.bind(process.argv[2] ?? "tcp://127.0.0.1:*")
async function serve() {
  for await (const [question] of server) await server.send(`${question}, in confidence`)
}
const serving = Promise.all([authenticate(), serve()])

function client({ publicKey, secretKey }) {
  const curve = { curveServerKey: serverKeys.publicKey, curvePublicKey: publicKey, curveSecretKey: secretKey }
  return new Request({ ...curve, linger: 0 })
}

const friend = client(known)
friend.connect(server.lastEndpoint)
await friend.send("Hello")
const [answer] = await friend.receive()
console.log(`the known client: ${answer} (${friend.securityMechanism})`)

const other = client(stranger)
const refused = new Promise(resolve => other.events.on("handshake:error:auth", resolve))
other.connect(server.lastEndpoint)
console.log(`the stranger: refused with status ${(await refused).error.status}`)

for (const socket of [friend, other, server, authenticator]) socket.close()
await serving
