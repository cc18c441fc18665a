// The texts of errors: the text of `zeromq`, the reason, and the endpoint. `zeromq` is installed in the folder `TOOLS`
// (`tests/ship/node/run.sh` does it).
import assert from "node:assert/strict"
import { createRequire } from "node:module"
import { join } from "node:path"
import { test } from "node:test"
import * as tautline from "../lib/index.js"

const tools = process.env.TOOLS

function refused(zmq, operation, address) {
  const socket = new zmq.Pull({ linger: 0 })
  try {
    socket[operation](address)
  } catch (reason) {
    return reason
  } finally {
    socket.close()
  }
  assert.fail(`${operation} of ${address} has succeeded`)
}

for (const [address, reason] of [
  ["tcp://localhost", "there is no port, as in host:port"],
  ["tcp://localhost:", "there is no port, as in host:port"],
  ["tcp://[::1]", "there is no port, as in host:port"],
  ["ws://localhost/path:5", "there is no port, as in host:port"],
  ["tcp://:5555", "there is no host before the port"],
  ["tcp://localhost:http", "the port is not a number"],
  ["tcp://localhost:65536", "the port is above 65535"],
  ["tcp://*:5555", "* and port 0 are for bind"],
  ["tcp://localhost:*", "* and port 0 are for bind"],
  ["localhost:5555", "it does not begin with a transport, as in tcp://host:port"],
  ["", "it does not begin with a transport, as in tcp://host:port"],
  ["ipc://", "there is no address after the transport"],
]) {
  test(`connect to "${address}"`, () => {
    const { code, message, address: told } = refused(tautline, "connect", address)
    assert.deepEqual([code, message, told], ["EINVAL", `Invalid argument, ${reason}: ${address}`, address])
  })
}

test("an error of bind names the reason and the endpoint", () => {
  const { code, message } = refused(tautline, "bindSync", "tcp://[::1:5555")
  assert.equal(code, "ENODEV")
  assert.match(message, /, there is no interface or host of this name: tcp:\/\/\[::1:5555$/)
})

test("codes and texts are those of zeromq", { skip: tools === undefined && "TOOLS is not set" }, () => {
  const zeromq = createRequire(join(tools, "_"))("zeromq")
  const bound = new tautline.Pull()
  bound.bindSync("tcp://127.0.0.1:*")
  for (const [operation, address] of [
    ["bindSync", bound.lastEndpoint],
    ["connect", "tcp://localhost"],
    ["connect", "foo://localhost"],
    ["connect", "udp://127.0.0.1:5555"],
    ["connect", `ipc://${"a".repeat(200)}`],
    ["disconnect", "tcp://127.0.0.1:5555"],
    ["bindSync", "tcp://192.0.2.1:5555"],
  ]) {
    const [theirs, ours] = [zeromq, tautline].map(zmq => refused(zmq, operation, address))
    assert.deepEqual([ours.code, ours.errno, ours.address], [theirs.code, theirs.errno, theirs.address])
    assert(ours.message.startsWith(theirs.message) && ours.message.endsWith(`: ${address}`), `${ours.message} beside ${theirs.message}`)
  }
  bound.close()
})
