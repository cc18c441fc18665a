// Key pairs for CURVE.
"use strict"

const crypto = require("node:crypto")
const { addon } = require("./native")

// Returns a new secret key and its public key, 40 characters of Z85 each.
function curveKeyPair() {
  const [publicKey, secretKey] = addon.curveKeys(crypto.randomBytes(32))
  return { publicKey, secretKey }
}

module.exports = { curveKeyPair }
