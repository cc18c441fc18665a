// Events of a socket's connections.
//
//   node examples/events.mjs [ENDPOINT]
//
// Receive events one by one, as here, or use listeners: `events.on("connect", listener)`. Each event
// has a type, nearly all have an address, and events of failures have an error. The first access to
// `events` starts the reports, so earlier events are missing.
import { Reply, Request } from "tautline"

const server = new Reply()
await server.bind(process.argv[2] ?? "tcp://127.0.0.1:*")

// The client reconnects a lost connection after this many milliseconds, or up to twice as many.
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
