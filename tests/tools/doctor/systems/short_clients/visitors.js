// Five visitors at a time. A visitor asks three questions through its own socket, and leaves.
"use strict"
const { Request } = require("zeromq")

let visits = 0

async function visit() {
  const search = new Request()
  search.connect("tcp://127.0.0.1:5657")
  for (const question of ["apples", "plums", "pears"]) {
    await search.send(question)
    await search.receive()
  }
  search.close()
  if (++visits === 50) console.log("working")
}

async function visitor() {
  for (;;) {
    await visit()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

for (let number = 0; number < 5; number++) visitor()
