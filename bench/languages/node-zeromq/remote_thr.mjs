// Sends messages as fast as it can.
import { Push } from "zeromq"
import { departure, make, parseArguments, security } from "./messages.mjs"

const { endpoint, size, count, warmUp } = parseArguments()
const socket = new Push(security)
const left = departure(socket)
socket.connect(endpoint)

for (let number = 0; number < warmUp + count; number++) await socket.send(make(size, number))
await left
socket.close()
