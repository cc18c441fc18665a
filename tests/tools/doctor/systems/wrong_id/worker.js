// A worker of boss.py: worker.js NAME.
"use strict"
const { Dealer } = require("zeromq")

async function main() {
  const boss = new Dealer({ routingId: process.argv[2] })
  boss.connect("tcp://127.0.0.1:5606")
  await boss.send("here I am")
  for await (const [job] of boss) await boss.send(["done", job])
}

main()
