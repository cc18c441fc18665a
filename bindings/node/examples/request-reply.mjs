// Request and reply: a client sends requests, and a service replies.
//
//   node examples/request-reply.mjs [ENDPOINT]
//
// Without ENDPOINT the service listens on a free port of this machine. Client and service can also
// be two programs, with an agreed endpoint such as tcp://server.example:5555.
import { Reply, Request } from "tautline"

const service = new Reply()
await service.bind(process.argv[2] ?? "tcp://127.0.0.1:*")

// The loop ends when the socket is closed.
async function serve() {
  for await (const [name] of service) await service.send(`Hello, ${name}!`)
}
const serving = serve()

const client = new Request()
client.connect(service.lastEndpoint)
for (const name of ["World", "ZeroMQ", "Node.js"]) {
  await client.send(name)
  const [answer] = await client.receive()
  console.log(answer.toString())
}

client.close()
service.close()
await serving
