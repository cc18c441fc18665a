// Sends every request back as its answer.
import { Reply } from "zeromq"
import { departure, parseArguments, security, verify } from "./messages.mjs"

const { endpoint, size, count, warmUp } = parseArguments()
const socket = new Reply(security)
const left = departure(socket)
await socket.bind(endpoint)

for (let number = 0; number <= warmUp + count; number++) {
  const [message] = await socket.receive()
  verify(message, size, number)
  await socket.send(message)
}
await left
socket.close()
