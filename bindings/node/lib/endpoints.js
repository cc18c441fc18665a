// Explains why an endpoint was refused, for the text of the error.
"use strict"

// The longest path of an ipc endpoint.
const PATH_MAX = process.platform === "linux" || process.platform === "android" ? 107 : 103

function describeError(code, address) {
  switch (code) {
    case "EADDRNOTAVAIL":
      return "this machine does not have this address"
    case "ENODEV":
      return "there is no interface or host of this name"
    case "EINVAL":
      return describeInvalid(address)
    case "EPROTONOSUPPORT":
      return address.startsWith("name://") ? "set TAUT_NAMES to the path of a names file" : undefined
    case "ENAMETOOLONG":
      return `a path has at most ${PATH_MAX} bytes`
  }
}

function describeInvalid(address) {
  const [, transport, rest] = /^([^:]*):\/\/(.*)$/s.exec(address) ?? []
  if (!transport) return "it does not begin with a transport, as in tcp://host:port"
  if (rest === "") return "there is no address after the transport"
  if (transport === "name") return "the name is not valid, or the names file has a fault, which is on standard error"
  if (!["tcp", "tls+tcp", "udp", "ws", "wss", "vsock"].includes(transport)) return undefined
  const place = transport.startsWith("ws") ? rest.split("/", 1)[0] : rest
  // A colon within brackets belongs to an IPv6 address.
  const port = /:([^:\]]*)$/.exec(place)?.[1]
  if (!port) return "there is no port, as in host:port"
  if (place.length === port.length + 1) return "there is no host before the port"
  if (!/^(\*|\d+)$/.test(port)) return "the port is not a number"
  if (transport !== "vsock" && Number(port) > 65535) return "the port is above 65535"
  if (port === "*" || port === "0" || place.startsWith("*:")) return "* and port 0 are for bind"
  return undefined
}

module.exports = { describeError }
