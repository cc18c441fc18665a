// The socket classes, with the methods and options that only some of them have.
"use strict"

const { checkResult } = require("./errors")
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
  constructor(options) {
    super(0, options)
  }
}

class Publisher extends Socket {
  constructor(options) {
    super(1, options)
  }
}

class Subscriber extends Socket {
  constructor(options) {
    super(2, options)
  }

  subscribe(...prefixes) {
    for (const prefix of prefixes.length === 0 ? [""] : prefixes) this.setStringOption(SUBSCRIBE, prefix)
  }

  unsubscribe(...prefixes) {
    for (const prefix of prefixes.length === 0 ? [""] : prefixes) this.setStringOption(UNSUBSCRIBE, prefix)
  }
}

class Request extends Socket {
  constructor(options) {
    super(3, options)
  }
}

class Reply extends Socket {
  constructor(options) {
    super(4, options)
  }
}

class Dealer extends Socket {
  constructor(options) {
    super(5, options)
  }
}

// Socket types that can set the routing id of the peer that they connect to.
const withConnectRoutingId = Base =>
  class extends Base {
    connect(address, { routingId } = {}) {
      if (routingId !== undefined) this.setStringOption(CONNECT_ROUTING_ID, routingId)
      super.connect(address)
    }
  }

class Router extends withConnectRoutingId(Socket) {
  constructor(options) {
    super(6, options)
  }
}

class Pull extends Socket {
  constructor(options) {
    super(7, options)
  }
}

class Push extends Socket {
  constructor(options) {
    super(8, options)
  }
}

class XPublisher extends Socket {
  constructor(options) {
    super(9, options)
  }

  set verbosity(value) {
    const level = [null, "allSubs", "allSubsUnsubs"].indexOf(value)
    if (level < 0) throw new TypeError('Verbosity must be null, "allSubs" or "allSubsUnsubs"')
    if (level < 2) this.setBoolOption(XPUB_VERBOSER, false)
    this.setBoolOption(level === 2 ? XPUB_VERBOSER : XPUB_VERBOSE, level > 0)
  }
}

class XSubscriber extends Socket {
  constructor(options) {
    super(10, options)
  }
}

class Stream extends withConnectRoutingId(Socket) {
  constructor(options) {
    super(11, options)
  }
}

// Draft types.

class Server extends Socket {
  constructor(options) {
    super(12, options)
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
  constructor(options) {
    super(13, options)
  }
}

class Radio extends Socket {
  constructor(options) {
    super(14, options)
  }

  send(message, { group } = {}) {
    return internals.sendAddressed(this, message, { group: bytes(group ?? null) })
  }
}

class Dish extends Socket {
  constructor(options) {
    super(15, options)
  }

  join(...groups) {
    for (const group of groups) checkResult(internals.native(this).join(bytes(group), true))
  }

  leave(...groups) {
    for (const group of groups) checkResult(internals.native(this).join(bytes(group), false))
  }

  async receive() {
    const parts = await super.receive()
    return [...parts, { group: internals.native(this).lastGroup() }]
  }
}

class Gather extends Socket {
  constructor(options) {
    super(16, options)
  }
}

class Scatter extends Socket {
  constructor(options) {
    super(17, options)
  }
}

class Datagram extends Socket {
  constructor(options) {
    super(18, options)
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
