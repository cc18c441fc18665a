// Ending a program: time limits for operations, and an AbortSignal that stops a service.
//
//   node examples/shutdown.mjs [ENDPOINT]
//
// The program runs until Ctrl-C, or until `kill` sends SIGTERM. Any other AbortSignal works as well,
// such as AbortSignal.timeout(60_000).
import { Reply, Request } from "tautline"

// Answers requests until the signal aborts. It finishes the current request, and takes no further one.
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

// Sends a request, and waits for the answer for at most `receiveTimeout` milliseconds.
async function ask(endpoint, question, receiveTimeout) {
  // With this linger, closing the socket discards an unsent request.
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

// After closing, the service sends its queued answers for at most a second.
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
