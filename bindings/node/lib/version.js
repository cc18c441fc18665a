// Versions and capabilities of the library.
"use strict"

const { addon } = require("./native")

// The version of libzmq whose interface and behaviour this package has.
const version = "4.3.5"

// The version of Tautline.
const tautlineVersion = addon.tautlineVersion()

const capability = { ipc: true, curve: true, draft: true, names: true, tautline: true, tls: true }

module.exports = { capability, tautlineVersion, version }
