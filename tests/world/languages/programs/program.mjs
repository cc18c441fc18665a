import { Pull, Push } from "zeromq"

const push = new Push()
const pull = new Pull()
await pull.bind("tcp://127.0.0.1:*")
push.connect(pull.lastEndpoint)
for (let number = 0; number < 1000; number++) {
  await push.send(`x${number}`)
  const [message] = await pull.receive()
  if (message.toString() !== `x${number}`) throw new Error(message.toString())
}
push.close()
pull.close()
console.log("ok")
