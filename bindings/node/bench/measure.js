// One process of the benchmark: measure.js LIBRARY ROLE [ENDPOINT] BYTES SECONDS. A role that binds first prints its endpoint. A role
// that measures prints the number of messages or round trips per second.
"use strict"

const [library, role, ...given] = process.argv.slice(2)
const seconds = Number(given.pop())
const message = Buffer.alloc(Number(given.pop()), "x")
const [endpoint] = given
const { Pull, Push, Reply, Request } = require(library)

// Warm-up before the measurement, as a fraction of SECONDS. In this time, compilers, queues and buffers reach their steady state.
const WARM_UP = 0.3

const now = () => Number(process.hrtime.bigint()) / 1e9

// Prints how many calls of `step` complete per second.
async function measured(step) {
  const start = now() + WARM_UP * seconds
  while (now() < start) await step()
  const begin = now()
  let count = 0
  let end = begin
  // Read the clock only once per 8 steps, because a reading takes time as well.
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
