// Sends requests one after another, and reports the duration of a round trip.
import { Request } from "zeromq"
import { make, parseArguments, report, security, verify } from "./messages.mjs"

const { endpoint, size, count, warmUp } = parseArguments()
const socket = new Request(security)
socket.connect(endpoint)

async function roundTrip(number) {
  await socket.send(make(size, number))
  const [message] = await socket.receive()
  verify(message, size, number)
}

// The first round trip waits for the peer.
for (let number = 0; number <= warmUp; number++) await roundTrip(number)

const times = new Float64Array(count)
const start = process.hrtime.bigint()
let last = start
for (let round = 0; round < count; round++) {
  await roundTrip(warmUp + 1 + round)
  const now = process.hrtime.bigint()
  times[round] = Number(now - last)
  last = now
}
const nanos = Number(last - start)

times.sort()
const percentile = part => times[Math.min(count - 1, Math.floor(count * part))] / 2000
report(socket, {
  rounds: count,
  size,
  seconds: nanos / 1e9,
  mean_us: nanos / 2000 / count,
  p50_us: percentile(0.5),
  p99_us: percentile(0.99),
})
socket.close()
