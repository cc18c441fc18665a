// Contexts: I/O threads, inproc names, and limits that sockets share.
"use strict"

const { addon, runtime } = require("./native")
const { checkResult, optionError } = require("./errors")
const options = require("./options")

class Context {
  #native

  // `shared` is for this module only.
  constructor(values = {}, shared = undefined) {
    this.#native = new addon.NativeContext(runtime, shared === SHARED)
    options.assign(this, values)
  }

  getInt32Option(number) {
    return checkResult(this.#native.get(number))
  }

  setInt32Option(number, value) {
    this.#set(number, options.wantNumber(value))
  }

  getBoolOption(number) {
    return this.getInt32Option(number) !== 0
  }

  setBoolOption(number, value) {
    this.#set(number, options.wantBool(value) ? 1 : 0)
  }

  #set(number, value) {
    const result = this.#native.set(number, value)
    if (result < 0) throw optionError(-result, () => `${nameOf(number)} does not take the value ${value}`)
  }

  static native(context) {
    if (!(context instanceof Context)) throw new TypeError("Context must be a context object")
    return context.#native
  }
}

const nameOf = number => {
  const row = options.context.find(([, code, , access]) => code === number && access !== "get")
  return row === undefined ? `option ${number}` : row[0]
}

const SHARED = Symbol("shared")
const { native } = Context
delete Context.native

options.define(Context.prototype, options.context)

// The default context of sockets, shared by all threads of the process.
const context = new Context({}, SHARED)

module.exports = { Context, context, native }
