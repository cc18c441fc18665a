// The end of a program: time limits for what waits, and an AbortSignal that stops a service.
//
//   node examples/shutdown.mjs [ENDPOINT]
//
// It runs until Ctrl-C, or until `kill` sends SIGTERM. Any other AbortSignal does as well, such as
// AbortSignal.timeout(60_000).
import { Reply, Request } from "tautline"

// Answers until it is aborted: what it is at then it finishes, and takes nothing more.
async function serve(service, signal) {
  let busy = false
  let answered = 0
  // Closing the socket ends the loop.
  signal.addEventListener("abort", () => busy || service.close(), { once: true })
  for await (const [question] of service) {
    busy = true
    await service.send(`${question}: yes`)
    answered++
    busy = false
    if (signal.aborted) break
  }
  service.close()
  return answered
}

// Asks, and waits for the answer as long as `receiveTimeout` says.
async function ask(endpoint, question, receiveTimeout) {
  // With this linger a question that was not taken in time is thrown away with the socket.
  const client = new Request({ receiveTimeout, linger: 0 })
  client.connect(endpoint)
  try {
    await client.send(question)
    const [answer] = await client.receive()
    console.log(answer.toString())
  } catch (reason) {
    if (reason.code !== "EAGAIN") throw reason
    console.log(`${question}: no answer in ${receiveTimeout} ms`)
  } finally {
    client.close()
  }
}

const stop = new AbortController()
for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => stop.abort(name))

// Once it is closed, answers that are still on their way are sent, for at most a second.
const service = new Reply({ linger: 1000 })
await service.bind(process.argv[2] ?? "tcp://127.0.0.1:*")
const serving = serve(service, stop.signal)
const idle = new Reply()
await idle.bind("inproc://idle")

await ask(service.lastEndpoint, "Are you there?", 60_000)
await ask("inproc://idle", "And you?", 100)
console.log("Ctrl-C ends the service")
console.log(`${await serving} answered until ${stop.signal.reason}`)
idle.close()
