"""Remote procedure calls: a client calls functions of a service by name, with JSON, on asyncio.

    python rpc.py

The client has many calls on the way at the same time. The service answers each when it is done, in any order.
"""

import asyncio
import itertools
import json
from typing import Any, Awaitable, Callable, Dict

from tautline_zmq import DEALER, ROUTER, aio

Function = Callable[..., Awaitable[Any]]


async def add(a: float, b: float) -> float:
    return a + b


async def divide(a: float, b: float) -> float:
    await asyncio.sleep(0.01)
    return a / b


async def serve(socket: aio.Socket, functions: Dict[str, Function]) -> None:
    async def answer(caller: bytes, number: bytes, body: bytes) -> None:
        try:
            name, arguments = json.loads(body)
            reply = {"result": await functions[name](*arguments)}
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        await socket.send_multipart([caller, number, json.dumps(reply).encode()])

    tasks: "set[asyncio.Task[None]]" = set()
    while True:
        parts = await socket.recv_multipart()
        if len(parts) != 3:
            # Any program can connect and send any message.
            continue
        task = asyncio.ensure_future(answer(*parts))
        tasks.add(task)
        task.add_done_callback(tasks.discard)


class Client:
    def __init__(self, socket: aio.Socket) -> None:
        self._socket = socket
        self._numbers = itertools.count()
        self._waiting: "Dict[bytes, asyncio.Future[Dict[str, Any]]]" = {}
        self._task = asyncio.ensure_future(self._receive())

    async def _receive(self) -> None:
        while True:
            number, body = await self._socket.recv_multipart()
            # A call that has timed out no longer waits.
            if future := self._waiting.pop(number, None):
                future.set_result(json.loads(body))

    async def call(self, name: str, *arguments: Any, timeout: float = 5) -> Any:
        number = b"%d" % next(self._numbers)
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self._socket.send_multipart([number, json.dumps([name, arguments]).encode()])
            reply = await asyncio.wait_for(future, timeout)
        finally:
            self._waiting.pop(number, None)
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return reply["result"]

    def close(self) -> None:
        self._task.cancel()


async def main() -> None:
    async with aio.Context() as context:
        with context.socket(ROUTER) as service, context.socket(DEALER) as socket:
            socket.connect(service.bind("tcp://127.0.0.1:*"))
            server = asyncio.ensure_future(serve(service, {"add": add, "divide": divide}))
            client = Client(socket)
            print("2 + 3 =", await client.call("add", 2, 3))
            print("sums:", sum(await asyncio.gather(*(client.call("add", n, n) for n in range(100)))))
            try:
                await client.call("divide", 1, 0)
            except RuntimeError as error:
                print("error:", error)
            client.close()
            server.cancel()


if __name__ == "__main__":
    asyncio.run(main())
