// The socket classes, with the methods and options that only some of them have.
"use strict"

const { checked } = require("./errors")
const { plain } = require("./messages")
const options = require("./options")
const { Socket, internals } = require("./socket")

const { named } = options

const SNDTIMEO = 28
const RCVTIMEO = 27
const SUBSCRIBE = 6
const UNSUBSCRIBE = 7
const CONNECT_ROUTING_ID = 61
const XPUB_VERBOSE = 40
const XPUB_VERBOSER = 78

class Pair extends Socket {
  constructor(given) {
    super(0, given)
  }
}

class Publisher extends Socket {
  constructor(given) {
    super(1, given)
  }
}

class Subscriber extends Socket {
  constructor(given) {
    super(2, given)
  }

  subscribe(...prefixes) {
    for (const prefix of prefixes.length === 0 ? [""] : prefixes) this.setStringOption(SUBSCRIBE, prefix)
  }

  unsubscribe(...prefixes) {
    for (const prefix of prefixes.length === 0 ? [""] : prefixes) this.setStringOption(UNSUBSCRIBE, prefix)
  }
}

class Request extends Socket {
  constructor(given) {
    super(3, given)
  }
}

class Reply extends Socket {
  constructor(given) {
    super(4, given)
  }
}

class Dealer extends Socket {
  constructor(given) {
    super(5, given)
  }
}

// Socket types that can set the routing id of the peer that they connect to.
const naming = Base =>
  class extends Base {
    connect(address, { routingId } = {}) {
      if (routingId !== undefined) this.setStringOption(CONNECT_ROUTING_ID, routingId)
      super.connect(address)
    }
  }

class Router extends naming(Socket) {
  constructor(given) {
    super(6, given)
  }
}

class Pull extends Socket {
  constructor(given) {
    super(7, given)
  }
}

class Push extends Socket {
  constructor(given) {
    super(8, given)
  }
}

class XPublisher extends Socket {
  constructor(given) {
    super(9, given)
  }

  set verbosity(value) {
    const level = [null, "allSubs", "allSubsUnsubs"].indexOf(value)
    if (level < 0) throw new TypeError('Verbosity must be null, "allSubs" or "allSubsUnsubs"')
    if (level < 2) this.setBoolOption(XPUB_VERBOSER, false)
    this.setBoolOption(level === 2 ? XPUB_VERBOSER : XPUB_VERBOSE, level > 0)
  }
}

class XSubscriber extends Socket {
  constructor(given) {
    super(10, given)
  }
}

class Stream extends naming(Socket) {
  constructor(given) {
    super(11, given)
  }
}

// Draft kinds.

class Server extends Socket {
  constructor(given) {
    super(12, given)
  }

  send(message, { routingId } = {}) {
    return internals.sendAddressed(this, message, { routingId })
  }

  async receive() {
    const parts = await super.receive()
    return [...parts, { routingId: internals.native(this).lastRoutingId() }]
  }
}

class Client extends Socket {
  constructor(given) {
    super(13, given)
  }
}

class Radio extends Socket {
  constructor(given) {
    super(14, given)
  }

  send(message, { group } = {}) {
    return internals.sendAddressed(this, message, { group: bytes(group ?? null) })
  }
}

class Dish extends Socket {
  constructor(given) {
    super(15, given)
  }

  join(...groups) {
    for (const group of groups) checked(internals.native(this).join(bytes(group), true))
  }

  leave(...groups) {
    for (const group of groups) checked(internals.native(this).join(bytes(group), false))
  }

  async receive() {
    const parts = await super.receive()
    return [...parts, { group: internals.native(this).lastGroup() }]
  }
}

class Gather extends Socket {
  constructor(given) {
    super(16, given)
  }
}

class Scatter extends Socket {
  constructor(given) {
    super(17, given)
  }
}

class Datagram extends Socket {
  constructor(given) {
    super(18, given)
  }
}

const bytes = value => {
  const part = plain(value)
  return typeof part === "string" ? Buffer.from(part) : part
}

const stable = {
  Pair,
  Publisher,
  Subscriber,
  Request,
  Reply,
  Dealer,
  Router,
  Pull,
  Push,
  XPublisher,
  XSubscriber,
  Stream,
}
const draft = { Server, Client, Radio, Dish, Gather, Scatter, Datagram }

// Defines a timeout. The engine has it as an option as well, but the waiting is in JavaScript.
function timeout(prototype, name, number) {
  const [get, set] = internals[name]
  Object.defineProperty(prototype, name, {
    configurable: true,
    enumerable: true,
    get() {
      return get(this)
    },
    set(value) {
      this.setInt32Option(number, value)
      set(this, value)
    },
  })
}

for (const kind of [Pair, Publisher, Request, Reply, Dealer, Router, Push, XPublisher, XSubscriber, Stream]) {
  options.define(kind.prototype, options.writable)
  timeout(kind.prototype, "sendTimeout", SNDTIMEO)
}
for (const kind of [Pair, Subscriber, Request, Reply, Dealer, Router, Pull, XPublisher, XSubscriber, Stream]) {
  options.define(kind.prototype, options.readable)
  timeout(kind.prototype, "receiveTimeout", RCVTIMEO)
}
for (const kind of [Server, Client, Radio, Scatter, Datagram]) {
  options.define(kind.prototype, options.writable)
  timeout(kind.prototype, "sendTimeout", SNDTIMEO)
}
for (const kind of [Server, Client, Dish, Gather, Datagram]) {
  options.define(kind.prototype, options.readable)
  timeout(kind.prototype, "receiveTimeout", RCVTIMEO)
}

const { conflate, correlate, handover, invertMatching, mandatory, manual } = named
const { noDrop, notify, probeRouter, relaxed, routingId, welcomeMessage } = named

for (const [kind, rows] of [
  [Publisher, [conflate, noDrop, invertMatching]],
  [Subscriber, [conflate, invertMatching]],
  [Request, [routingId, probeRouter, correlate, relaxed]],
  [Reply, [routingId]],
  [Dealer, [routingId, probeRouter, conflate]],
  [Router, [routingId, mandatory, probeRouter, handover]],
  [Pull, [conflate]],
  [Push, [conflate]],
  [XPublisher, [noDrop, manual, welcomeMessage, invertMatching]],
  [Stream, [notify]],
  [Gather, [conflate]],
  [Scatter, [conflate]],
]) {
  options.define(kind.prototype, rows)
}

module.exports = { draft, stable }
