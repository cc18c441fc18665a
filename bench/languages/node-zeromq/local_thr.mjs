// Receives messages, and reports the rate per second.
import { Pull } from "zeromq"
import { parseArguments, report, security, verify } from "./messages.mjs"

const { endpoint, size, count, warmUp } = parseArguments()
const socket = new Pull(security)
await socket.bind(endpoint)

async function take(number) {
  const [message] = await socket.receive()
  verify(message, size, number)
}

for (let number = 0; number < warmUp; number++) await take(number)

// The first message begins the measured time; it does not count.
await take(warmUp)
const start = process.hrtime.bigint()
for (let number = warmUp + 1; number < warmUp + count; number++) await take(number)
const seconds = Number(process.hrtime.bigint() - start) / 1e9
report(socket, { count, size, seconds, messages_per_second: (count - 1) / seconds })
socket.close()
