// Shows the trades of market.py: ticker.js TOPIC.
"use strict"
const { Subscriber } = require("zeromq")

async function main() {
  const trades = new Subscriber()
  trades.connect("tcp://127.0.0.1:5622")
  trades.subscribe(process.argv[2])
  let shown = 0
  for await (const [] of trades) if (++shown === 20) console.log("working")
}

main()
