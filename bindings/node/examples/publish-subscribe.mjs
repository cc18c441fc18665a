// Publish and subscribe: a subscriber gets the messages that begin with one of its topics.
//
//   node examples/publish-subscribe.mjs [ENDPOINT]
//
// A publisher sends with and without subscribers. A subscriber misses the messages sent before its
// subscription arrives. This publisher therefore repeats its news until both subscribers have all of
// theirs. last-value.mjs has a publisher that receives each subscription.
import { setTimeout } from "node:timers/promises"
import { Publisher, Subscriber } from "tautline"

const NEWS = {
  "sport.football": "no goals",
  "sport.tennis": "fifteen all",
  "traffic.rail": "on time",
  "weather.rain": "until noon",
}

const publisher = new Publisher()
await publisher.bind(process.argv[2] ?? "tcp://127.0.0.1:*")

// Receives `count` different messages of these topics.
async function hear(count, ...topics) {
  const subscriber = new Subscriber()
  subscriber.connect(publisher.lastEndpoint)
  subscriber.subscribe(...topics)
  const heard = new Map()
  for await (const [topic, text] of subscriber) {
    heard.set(topic.toString(), text.toString())
    if (heard.size === count) break
  }
  subscriber.close()
  return heard
}

let listening = true
async function publish() {
  while (listening) {
    for (const [topic, text] of Object.entries(NEWS)) await publisher.send([topic, text])
    await setTimeout(20)
  }
}
const publishing = publish()

const [fan, traveller] = await Promise.all([hear(2, "sport."), hear(2, "traffic.", "weather.rain")])
listening = false
await publishing
publisher.close()

for (const topic of [...fan.keys()].sort()) console.log(`fan: ${topic}, ${fan.get(topic)}`)
for (const topic of [...traveller.keys()].sort()) console.log(`traveller: ${topic}, ${traveller.get(topic)}`)
