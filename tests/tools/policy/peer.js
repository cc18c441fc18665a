// The version of peer.py for the npm package zeromq: peer.js bind|connect TYPE ENDPOINT [OPTION=VALUE ...].
"use strict"

const readline = require("readline")

const TYPES = { PULL: "Pull", PUSH: "Push", PUB: "Publisher", SUB: "Subscriber", XPUB: "XPublisher" }
const OPTIONS = {
  CURVE_SERVER: ["curveServer", value => value === "1"],
  CURVE_SECRETKEY: ["curveSecretKey", String],
  CURVE_PUBLICKEY: ["curvePublicKey", String],
  CURVE_SERVERKEY: ["curveServerKey", String],
}

async function main() {
  const [how, kind, endpoint, ...options] = process.argv.slice(2)
  let socket
  try {
    const zmq = require("zeromq")
    socket = new zmq[TYPES[kind]]({ linger: 0 })
    for (const option of options) {
      const at = option.indexOf("=")
      const [name, read] = OPTIONS[option.slice(0, at)] || ["SUBSCRIBE", String]
      if (name === "SUBSCRIBE") socket.subscribe(option.slice(at + 1))
      else socket[name] = read(option.slice(at + 1))
    }
    if (how === "bind") await socket.bind(endpoint)
    else socket.connect(endpoint)
  } catch (error) {
    // If the package cannot be loaded, only its message gives the reason.
    console.error(error.message)
    console.log(`failed ${error.errno ?? 0}`)
    process.exit(1)
  }
  console.log(`at ${socket.lastEndpoint}`)
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const [word, ...rest] = line.split(" ")
    if (word === "send") await socket.send(rest.join(" "))
    else if (word === "receive") console.log(`received ${(await socket.receive())[0]}`)
    else break
  }
  process.exit(0)
}

main()
