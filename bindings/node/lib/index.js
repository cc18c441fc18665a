// ZeroMQ for Node.js: the exports of the package.
"use strict"

const { context, Context } = require("./context")
const { curveKeyPair } = require("./curve")
const { loan } = require("./loan")
const { Observer } = require("./observer")
const { Proxy } = require("./proxy")
const { Socket } = require("./socket")
const { stable } = require("./sockets")
const { capability, tautlineVersion, version } = require("./version")

const { Pair, Publisher, Subscriber, Request, Reply, Dealer } = stable
const { Router, Pull, Push, XPublisher, XSubscriber, Stream } = stable

module.exports = {
  capability,
  context,
  curveKeyPair,
  loan,
  tautlineVersion,
  version,
  Context,
  Observer,
  Proxy,
  Socket,
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
