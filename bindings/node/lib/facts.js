// Versions and capabilities of the library, and key pairs.
"use strict"

const crypto = require("node:crypto")
const { addon } = require("./native")

// The version of libzmq whose interface and behaviour this package has.
const version = "4.3.5"

// The version of Tautline.
const tautlineVersion = addon.tautlineVersion()

const capability = { ipc: true, curve: true, draft: true, names: true, tautline: true, tls: true }

// Returns a new secret key and its public key, 40 characters of Z85 each.
function curveKeyPair() {
  const [publicKey, secretKey] = addon.curveKeys(crypto.randomBytes(32))
  return { publicKey, secretKey }
}

module.exports = { capability, curveKeyPair, tautlineVersion, version }
