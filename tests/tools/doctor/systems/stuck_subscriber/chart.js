// Draws the prices: chart.js [--window]. It draws only once its window is open.
"use strict"
const { Subscriber } = require("zeromq")

const opened = process.argv.includes("--window") ? Promise.resolve() : new Promise(() => {})

async function draw(price) {
  await opened
  return price.length
}

async function main() {
  const prices = new Subscriber()
  prices.connect("tcp://127.0.0.1:5603")
  prices.subscribe()
  let drawn = 0
  for await (const [price] of prices) {
    await draw(price)
    if (++drawn === 100) console.log("working")
  }
}

// Node.js exits if only promises are pending.
setInterval(() => {}, 1000)
main()
