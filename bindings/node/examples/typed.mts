// TypeScript: messages that carry JSON, with types from end to end.
//
//   node examples/typed.mts
//
// Node.js 22.18 and newer can run this file, but not below node_modules: copy it out of there. For an
// older Node.js, compile it: tsc --module nodenext --target es2022 --strict typed.mts
import { Pull, Push } from "tautline"
import type { ErrnoError, Message, Readable, SocketOptions, Writable } from "tautline"

interface Reading {
  sensor: string
  celsius: number
}

const isReading = (value: unknown): value is Reading =>
  typeof value === "object" && value !== null && "sensor" in value && typeof value.sensor === "string" &&
  "celsius" in value && typeof value.celsius === "number"

const isErrno = (reason: unknown): reason is ErrnoError => reason instanceof Error && "code" in reason

// Accepts every type of socket that sends.
async function send(socket: Writable, reading: Reading): Promise<void> {
  await socket.send(JSON.stringify(reading))
}

// Accepts every type of socket that receives. Skips messages that contain no reading.
async function* readings(socket: Readable): AsyncGenerator<Reading, void> {
  for await (const [message] of socket) {
    const value: unknown = parse(message)
    if (isReading(value)) yield value
  }
}

function parse(message: Message | undefined): unknown {
  try {
    return JSON.parse(String(message))
  } catch {}
}

const options: SocketOptions<Pull> = { receiveHighWaterMark: 100 }
const pull = new Pull(options)
await pull.bind("tcp://127.0.0.1:*")
const endpoint = pull.lastEndpoint ?? ""

const push = new Push()
push.connect(endpoint)
await push.send("no JSON")
for (const celsius of [19, 20.5]) await send(push, { sensor: "kitchen", celsius })
let count = 0
for await (const { sensor, celsius } of readings(pull)) {
  console.log(`${sensor}: ${celsius.toFixed(1)} °C`)
  if (++count === 2) break
}
try {
  await new Push().bind(endpoint)
} catch (reason) {
  if (isErrno(reason)) console.log(`${reason.code}, as it should be`)
}
push.close()
pull.close()
