// Correct uses of the types, and uses that the compiler must refuse. The file is compiled, but not run.
import * as zmq from "tautline"
import { Dealer, Publisher, Pull, Push, Request, Router, Subscriber, type Event, type Message } from "tautline"
import { Dish, Radio, Server } from "tautline/draft"

export async function allowed() {
  const push = new Push({ linger: 0, sendHighWaterMark: 10, context: new zmq.Context({ ioThreads: 2 }) })
  await push.bind("tcp://127.0.0.1:*")
  await push.send("text")
  await push.send(["text", Buffer.from("x"), null, 5, new Uint8Array(3)])
  const endpoint: string | null = push.lastEndpoint

  const body: Buffer = zmq.loan(1024 * 1024)
  await push.send(["body", body])

  const sent: number = push.statistics.messagesSent

  const pull = new Pull({ receiveTimeout: 5 })
  const [message]: Message[] = await pull.receive()
  for await (const [first, ...rest] of pull) console.log(first.toString(), rest.length, message, endpoint)

  const sub = new Subscriber()
  sub.subscribe("a", Buffer.from("b"))
  new Router({ mandatory: true, handover: true }).connect("inproc://x", { routingId: "me" })

  push.events.on("connect:retry", ({ interval, address }) => console.log(interval + 1, address.length))
  for await (const event of push.events) if (event.type === "bind:error") console.log(event.error.code)
  const event: Event = await push.events.receive()
  if (event.type === "disconnect") console.log(event.local, event.routingId?.length, event.reason)
  if (event.type === "handshake:error:auth") console.log(event.claim?.mechanism)
  const there: boolean = await push.waitForPeers(2, 100)
  if (await new Publisher().waitForSubscriptions(1)) console.log(there, push.peers[0].remote)

  const proxy = new zmq.Proxy(new Router(), new Dealer())
  proxy.frontEnd.mandatory = true
  await proxy.run()

  const [question, { routingId }] = await new Server().receive()
  await new Server().send("answer", { routingId })
  await new Radio().send("rain", { group: "weather" })
  new Dish().join("weather")

  class MyDealer extends Dealer {
    get own(): number {
      return this.getInt32Option(23)
    }
  }
  return [question, event, new MyDealer().own, zmq.curveKeyPair().publicKey, zmq.capability.curve, zmq.version, zmq.tautlineVersion, sent]
}

export function refused() {
  const pub = new Publisher()
  // @ts-expect-error a publisher does not receive
  pub.receive()
  // @ts-expect-error undefined cannot be sent
  pub.send(undefined)
  // @ts-expect-error an option that can only be read
  new Push({ lastEndpoint: "x" })
  // @ts-expect-error an option that does not exist
  new Push({ nonsense: 1 })
  // @ts-expect-error a number
  new Request().linger = "1"
  // @ts-expect-error abstract
  new zmq.Socket(1)
  // @ts-expect-error an event that does not exist
  pub.events.on("error", () => {})
}
