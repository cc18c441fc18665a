// Kinds of sockets that are drafts in ZeroMQ: require("tautline/draft").
"use strict"

const { Server, Client, Radio, Dish, Gather, Scatter, Datagram } = require("./kinds").draft

module.exports = { Server, Client, Radio, Dish, Gather, Scatter, Datagram }
