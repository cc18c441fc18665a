// A last value cache: a new subscriber gets the latest value of its topic at once.
//
//   node examples/last-value.mjs [ENDPOINT]
//
// An XPublisher is a Publisher that also receives the subscriptions: a 1 for a new one or a 0 for
// an ended one, and the topic. With "allSubs" it receives every subscription, otherwise only the
// first one of each topic.
import { Subscriber, XPublisher } from "tautline"

const latest = new Map()
const publisher = new XPublisher({ verbosity: "allSubs" })
await publisher.bind(process.argv[2] ?? "tcp://127.0.0.1:*")

async function publish(topic, value) {
  latest.set(topic, value)
  await publisher.send([topic, value])
}

async function welcome() {
  for await (const [subscription] of publisher) {
    const topic = subscription.toString("utf8", 1)
    if (subscription[0] === 1 && latest.has(topic)) await publisher.send([topic, latest.get(topic)])
  }
}
const welcoming = welcome()

// There is no subscription yet, so these values are only stored.
await publish("price.tea", 3)
await publish("price.tea", 4)
await publish("price.coffee", 7)

const subscriber = new Subscriber()
subscriber.connect(publisher.lastEndpoint)
for (const topic of ["price.tea", "price.coffee"]) {
  subscriber.subscribe(topic)
  const [, value] = await subscriber.receive()
  console.log(`${topic} is ${value}`)
}
await publish("price.tea", 5)
const [topic, value] = await subscriber.receive()
console.log(`${topic} is now ${value}`)

subscriber.close()
publisher.close()
await welcoming
