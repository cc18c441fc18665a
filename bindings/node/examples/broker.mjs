// A broker: clients and workers know only the broker, not each other.
//
//   node examples/broker.mjs [CLIENTS] [WORKERS]
//
// CLIENTS and WORKERS are endpoints to listen on; the default is free ports. The Router puts the
// client's routing id before each request, and the worker's Reply keeps it, so the Router can send
// the answer to that client. `new Proxy(front, back).run()` also passes messages, in a separate
// thread. A loop like `pass` can inspect and change the messages.
import { fork } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Dealer, Reply, Request, Router } from "tautline"

async function pass(from, to) {
  for await (const message of from) await to.send(message)
}

// Each worker is a separate process.
async function work(endpoint) {
  const reply = new Reply()
  reply.connect(endpoint)
  for await (const [text] of reply) await reply.send(text.toString().toUpperCase())
}

async function ask(endpoint, words) {
  const request = new Request()
  request.connect(endpoint)
  const answers = []
  for (const word of words) {
    await request.send(word)
    const [answer] = await request.receive()
    answers.push(answer.toString())
  }
  request.close()
  return answers.join(" ")
}

async function broker(clients = "tcp://127.0.0.1:*", workers = "tcp://127.0.0.1:*") {
  const front = new Router()
  const back = new Dealer()
  await front.bind(clients)
  await back.bind(workers)
  const passing = Promise.all([pass(front, back), pass(back, front)])

  const program = fileURLToPath(import.meta.url)
  const processes = [1, 2].map(() => fork(program, ["--worker", back.lastEndpoint]))
  const texts = ["to be or", "not to be", "that is it"]
  const answers = await Promise.all(texts.map(text => ask(front.lastEndpoint, text.split(" "))))
  console.log(answers.join("\n"))

  for (const worker of processes) worker.kill()
  front.close()
  back.close()
  await passing
}

await (process.argv[2] === "--worker" ? work(process.argv[3]) : broker(...process.argv.slice(2)))
