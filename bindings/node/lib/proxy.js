// Forwards messages between two sockets in a thread of the addon.
"use strict"

const { addon } = require("./native")
const { checkResult, errnoError, makeError } = require("./errors")
const contexts = require("./context")
const { stable } = require("./sockets")
const { internals } = require("./socket")

let proxies = 0

class Proxy {
  #frontEnd
  #backEnd
  // The PAIR that controls the thread. `null` if the proxy does not run.
  #control = null

  constructor(frontEnd, backEnd) {
    this.#frontEnd = frontEnd
    this.#backEnd = backEnd
    // Throw if an argument is not a socket.
    internals.native(frontEnd)
    internals.native(backEnd)
  }

  get frontEnd() {
    return this.#frontEnd
  }

  get backEnd() {
    return this.#backEnd
  }

  async run() {
    const ends = [this.#frontEnd, this.#backEnd]
    for (const end of ends) {
      if (end.closed) throw makeError("EBADF", "Socket is closed")
      if (internals.isBusy(end)) throw makeError("EBUSY", "Socket is busy")
    }
    if (this.#control !== null) throw makeError("EBUSY", "The proxy is running")
    const { context } = this.#frontEnd
    const name = `inproc://tautline.proxy.${process.pid}.${threadNumber()}.${++proxies}`
    const control = new stable.Pair({ context, linger: 0 })
    this.#control = control
    try {
      control.bindSync(name)
      // Forward the messages that were received here earlier first.
      for (const [from, to] of [ends, [...ends].reverse()]) {
        for (const message of internals.leftover(from)) await to.send(message)
      }
      const [front, back] = ends.map(internals.native)
      checkResult(addon.startProxy(front, back, contexts.native(context), name))
      internals.native(control).endProxyAtExit()
      for (const end of ends) internals.lend(end, true)
      const [outcome] = await control.receive()
      const errno = outcome.readInt32LE(0)
      if (errno !== 0) throw errnoError(errno)
    } finally {
      this.#control = null
      control.close()
      for (const end of ends) end.close()
    }
  }

  pause() {
    this.#steer("PAUSE")
  }

  resume() {
    this.#steer("RESUME")
  }

  terminate() {
    this.#steer("TERMINATE")
  }

  #steer(command) {
    if (this.#control === null) throw makeError("EINVAL", "The proxy is not running")
    this.#control.send(command).catch(() => {})
  }
}

const threadNumber = () => require("node:worker_threads").threadId

module.exports = { Proxy }
