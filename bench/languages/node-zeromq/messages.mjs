// Shared code of the four programs: the messages, and the arguments.

// Returns a message of `size` bytes that carries its number in the first 8, little-endian.
export function make(size, number) {
  const message = Buffer.allocUnsafe(size)
  message.writeUInt32LE(number >>> 0, 0)
  message.writeUInt32LE(Math.floor(number / 4294967296), 4)
  return message
}

// Ends the program if `message` is not the one with this number.
export function verify(message, size, number) {
  const carried = message.length === size ? message.readUInt32LE(0) + message.readUInt32LE(4) * 4294967296 : -1
  if (carried !== number) {
    console.error(`expected message ${number} of ${size} bytes, got ${carried} of ${message.length}`)
    process.exit(1)
  }
}

// Resolves when the peer of `socket` has disconnected. A sender waits for that before it exits, because
// `zeromq` sends buffers by reference. If the process exits earlier, the memory of queued buffers is freed,
// and the peer receives a message of the right length that contains zeros.
export function departure(socket) {
  return new Promise(resolve => socket.events.on("disconnect", resolve))
}

// The socket's options for CURVE, if the environment has keys (../curve.sh). A program that knows the key of a server
// is a client.
const { CURVE_SECRET, CURVE_PUBLIC, CURVE_SERVER } = process.env
export const security = !CURVE_SECRET
  ? {}
  : CURVE_SERVER
    ? { curveServerKey: CURVE_SERVER, curvePublicKey: CURVE_PUBLIC, curveSecretKey: CURVE_SECRET }
    : { curveServer: true, curveSecretKey: CURVE_SECRET }

// Prints the figures. `curve` is true if the socket encrypts.
export function report(socket, figures) {
  console.log(JSON.stringify({ ...figures, curve: socket.securityMechanism === "curve", verified: true }))
}

// ENDPOINT SIZE COUNT [WARM-UP]
export function parseArguments() {
  const [endpoint, ...numbers] = process.argv.slice(2)
  const [size, count, warmUp = 1000] = numbers.map(Number)
  if (!endpoint || !(size >= 8) || !(count >= 1) || !(warmUp >= 0)) {
    console.error("usage: PROGRAM ENDPOINT SIZE COUNT [WARM-UP]; SIZE is at least 8")
    process.exit(2)
  }
  return { endpoint, size, count, warmUp }
}
