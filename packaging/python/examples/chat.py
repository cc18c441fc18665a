"""A chat: a server that passes each line on to everybody, on asyncio.

    python chat.py server tcp://127.0.0.1:5555
    python chat.py tcp://127.0.0.1:5555 Alice        reads lines from standard input
"""

import asyncio
import sys

from tautline_zmq import DEALER, ROUTER, aio


async def serve(endpoint: str) -> None:
    async with aio.Context() as context:
        with context.socket(ROUTER) as room:
            print("serving", room.bind(endpoint), flush=True)
            members: "set[bytes]" = set()
            while True:
                parts = await room.recv_multipart()
                if len(parts) != 2:
                    # Any program can connect and send any message.
                    continue
                sender, text = parts
                members.add(sender)
                if not text:
                    members.discard(sender)
                for member in members:
                    await room.send_multipart([member, sender + b": " + (text or b"leaves")])


async def join(endpoint: str, name: str) -> None:
    async with aio.Context() as context:
        with context.socket(DEALER) as line:
            line.routing_id = name.encode()
            line.linger = 1000
            line.connect(endpoint)

            async def show() -> None:
                async for text in line:
                    print(text.decode(), flush=True)

            task = asyncio.ensure_future(show())
            loop = asyncio.get_running_loop()
            await line.send(b"joins")
            # Reading standard input blocks, so a thread of the loop does it.
            while text := await loop.run_in_executor(None, sys.stdin.readline):
                await line.send_string(text.rstrip("\n") or " ")
            await line.send(b"")
            await asyncio.sleep(0.1)
            task.cancel()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    if sys.argv[1] == "server":
        asyncio.run(serve(sys.argv[2]))
    else:
        asyncio.run(join(sys.argv[1], sys.argv[2]))
