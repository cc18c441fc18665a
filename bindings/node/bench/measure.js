// One process of the benchmark: measure.js LIBRARY ROLE [ENDPOINT] BYTES SECONDS. What binds prints its endpoint first; what measures
// prints how many messages or round trips there were in a second.
"use strict"

const [library, role, ...given] = process.argv.slice(2)
const seconds = Number(given.pop())
const message = Buffer.alloc(Number(given.pop()), "x")
const [endpoint] = given
const { Pull, Push, Reply, Request } = require(library)

// Before it measures, the part of the time in which compilers, queues and buffers come to what they are in the long run.
const WARM_UP = 0.3

const now = () => Number(process.hrtime.bigint()) / 1e9

// How often in a second `step` comes to its end.
async function measured(step) {
  const start = now() + WARM_UP * seconds
  while (now() < start) await step()
  const begin = now()
  let count = 0
  let end = begin
  // A look at the clock costs little beside the message, but not nothing.
  while (end < begin + seconds) {
    for (let index = 0; index < 8; index++) await step()
    count += 8
    end = now()
  }
  console.log(count / (end - begin))
}

const roles = {
  async collect() {
    const socket = new Pull()
    await socket.bind("tcp://127.0.0.1:*")
    console.log(socket.lastEndpoint)
    await socket.receive()
    await measured(() => socket.receive())
  },
  async supply() {
    const socket = new Push()
    socket.connect(endpoint)
    for (;;) await socket.send(message)
  },
  async answer() {
    const socket = new Reply()
    await socket.bind("tcp://127.0.0.1:*")
    console.log(socket.lastEndpoint)
    for (;;) {
      const [question] = await socket.receive()
      await socket.send(question)
    }
  },
  async ask() {
    const socket = new Request()
    socket.connect(endpoint)
    const roundTrip = async () => {
      await socket.send(message)
      await socket.receive()
    }
    await roundTrip()
    await measured(roundTrip)
  },
}

roles[role]()
