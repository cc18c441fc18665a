// The draft socket types of ZeroMQ: require("tautline/draft").
"use strict"

const { Server, Client, Radio, Dish, Gather, Scatter, Datagram } = require("./sockets").draft

module.exports = { Server, Client, Radio, Dish, Gather, Scatter, Datagram }
