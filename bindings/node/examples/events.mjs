// Events: what happens to the connections of a socket.
//
//   node examples/events.mjs [ENDPOINT]
//
// Events are taken one after the other, as here, or by listeners: `events.on("connect", listener)`.
// Each has a type, nearly all have an address, and those of failures have an error. What happened
// before `events` was read for the first time is not among them.
import { Reply, Request } from "tautline"

const server = new Reply()
await server.bind(process.argv[2] ?? "tcp://127.0.0.1:*")

// A lost connection is tried again after as many milliseconds, or up to twice as many.
const client = new Request({ reconnectInterval: 60_000, linger: 0 })
const { events } = client
client.connect(server.lastEndpoint)

for await (const event of events) {
  switch (event.type) {
    case "handshake":
      console.log(`${event.type}: messages can pass`)
      server.close()
      break
    case "connect:retry":
      console.log(`${event.type}: in ${Math.round(event.interval / 1000)} s`)
      client.close()
      break
    case "end":
      console.log(`${event.type}: the socket is closed`)
      break
    default:
      console.log(event.type)
  }
}
