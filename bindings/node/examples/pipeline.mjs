// A pipeline distributes tasks to worker threads, and collects their results.
//
//   node examples/pipeline.mjs [WORKERS]
//
// The threads of a process share a context, so `inproc` works between them. Workers in other
// processes or on other machines connect to `tcp` or `ipc` endpoints in the same way.
import { Worker, isMainThread, parentPort } from "node:worker_threads"
import { Pull, Push } from "tautline"

const TASKS = 1000

async function work() {
  const tasks = new Pull()
  const results = new Push()
  tasks.connect("inproc://tasks")
  results.connect("inproc://results")
  parentPort.once("message", () => tasks.close())
  await results.send("ready")
  for await (const [number] of tasks) await results.send(Number(number) ** 2)
  results.close()
}

async function deal(count) {
  const tasks = new Push()
  const results = new Pull()
  await tasks.bind("inproc://tasks")
  await results.bind("inproc://results")

  // A Push distributes to the connected workers in turn, so wait until all are connected.
  const workers = Array.from({ length: count }, () => new Worker(new URL(import.meta.url)))
  for (const _ of workers) await results.receive()
  console.log(`${count} workers are ready`)

  // Sending waits if the workers' queues are full, so send and receive at the same time.
  const sending = (async () => {
    for (let number = 1; number <= TASKS; number++) await tasks.send(number)
  })()
  let sum = 0
  for (let done = 0; done < TASKS; done++) {
    const [square] = await results.receive()
    sum += Number(square)
  }
  await sending
  console.log(`the first ${TASKS} squares add up to ${sum}`)

  for (const worker of workers) worker.postMessage("end")
  tasks.close()
  results.close()
}

await (isMainThread ? deal(Number(process.argv[2] ?? 3)) : work())
