// Statistics: counters of a socket's sent, received, dropped and queued messages.
//
//   node examples/statistics.mjs [ENDPOINT]
//
// `Statistics` in index.d.ts lists all counters. Each access to `statistics` reads them again.
import { Dealer, Router } from "tautline"

const router = new Router()
await router.bind(process.argv[2] ?? "tcp://127.0.0.1:*")
const dealer = new Dealer({ routingId: "dealer" })
dealer.connect(router.lastEndpoint)

for (let number = 1; number <= 100; number++) await dealer.send(`message ${number}`)
for (let number = 1; number <= 100; number++) {
  const [routingId] = await router.receive()
  await router.send([routingId, "received"])
}
for (let number = 1; number <= 100; number++) await dealer.receive()

// No peer has this routing id. With the option `mandatory`, the send would fail.
await router.send(["unknown", "lost"])

for (const [name, socket] of Object.entries({ dealer, router })) {
  const { messagesSent, bytesSent, messagesReceived, bytesReceived, queuedIn, peers } = socket.statistics
  console.log(`${name}: ${messagesSent} messages sent, ${bytesSent} bytes`)
  console.log(`${name}: ${messagesReceived} messages received, ${bytesReceived} bytes`)
  console.log(`${name}: ${queuedIn} wait to be received, ${peers} peer`)
}
console.log(`router: ${router.statistics.droppedUnroutable} message to an unknown routing id`)

dealer.close()
router.close()
