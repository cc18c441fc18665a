"""Kills a subscriber of vLLM's KV-cache events, starts it again, and prints one line of JSON about the second one.

    events.py engine REQUESTS TOKENS     the engine publishes while it generates; the first subscriber is killed after a quarter of the tokens, and
                                         the second one starts after half of them
    events.py publisher BATCHES          vLLM's publisher alone; BATCHES batches are published while there is no subscriber

Both use vLLM's ZmqEventPublisher without a change: a PUB socket for the batches, and a ROUTER that sends the last 10,000 batches again.
"""

import asyncio
import json
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

import tiny

BLOCK = 32
LIVE = 500
# Ends this program if a subscriber hangs.
LIMIT_SECONDS = 240


class Subscriber:
    """A process of subscriber.py."""

    def __init__(self, addresses, file):
        command = [sys.executable, str(pathlib.Path(__file__).parent / "subscriber.py"), *addresses, str(file)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.watchdog = threading.Timer(LIMIT_SECONDS, self.process.kill)
        self.watchdog.daemon = True
        self.watchdog.start()
        self.wait("subscribed")

    def wait(self, word):
        line = self.process.stdout.readline().strip()
        assert line == word, f"the subscriber printed {line!r}, not {word!r}"

    def silent(self):
        """True if the subscriber has received no batch within a tenth of a second."""
        return not select.select([self.process.stdout], [], [], 0.1)[0]

    def kill(self):
        self.wait("received")
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def report(self, processes):
        """Prints the subscriber's counts, with the libraries of at least `processes` processes, and ends it."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.wait("received")
        result = json.loads(self.process.stdout.readline())
        used = tiny.checked_libraries(processes)
        assert result.pop("libraries") == used, "the subscriber uses another library"
        print(json.dumps({**result, "libraries": used}), flush=True)
        self.process.communicate()


async def with_engine(addresses, file, requests, tokens):
    from vllm import TokensPrompt
    from vllm.config import KVEventsConfig

    config = KVEventsConfig(enable_kv_cache_events=True, publisher="zmq", endpoint=addresses[0], replay_endpoint=addresses[1])
    engine = tiny.engine(kv_events_config=config, block_size=BLOCK)
    generated = 0

    async def generate(number):
        nonlocal generated
        # Prompts of different lengths fill their blocks at different steps.
        prompt = TokensPrompt(prompt_token_ids=[(number * 7 + position) % 1000 + 3 for position in range(BLOCK + number % BLOCK)])
        async for _ in engine.generate(prompt, tiny.parameters(tokens), f"request {number}"):
            generated += 1

    async def until(share):
        while generated < requests * tokens * share:
            await asyncio.sleep(0.01)

    first = await asyncio.to_thread(Subscriber, addresses, file)
    work = asyncio.gather(*map(generate, range(requests)))
    await until(1 / 4)
    await asyncio.to_thread(first.kill)
    await until(1 / 2)
    second = await asyncio.to_thread(Subscriber, addresses, file)
    await work
    await asyncio.to_thread(second.report, 3)
    engine.shutdown()


def with_publisher(addresses, file, batches):
    from vllm.distributed.kv_events import BlockStored, KVEventBatch, ZmqEventPublisher

    publisher = ZmqEventPublisher(0, endpoint=addresses[0], replay_endpoint=addresses[1])
    tokens = list(range(BLOCK))

    def publish(count):
        for number in range(count):
            stored = BlockStored([number], None, tokens, BLOCK, None, "CPU", None)
            publisher.publish(KVEventBatch(ts=time.time(), events=[stored]))
        publisher._event_queue.join()

    first = Subscriber(addresses, file)
    publish(LIVE)
    while first.silent():
        publish(LIVE)
    first.kill()
    publish(batches)
    second = Subscriber(addresses, file)
    publish(LIVE)
    while second.silent():
        publish(LIVE)
    second.report(2)
    publisher.shutdown()


def main():
    kind, *numbers = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        addresses = [f"ipc://{folder}/events", f"ipc://{folder}/replay"]
        file = pathlib.Path(folder) / "numbers"
        if kind == "engine":
            asyncio.run(with_engine(addresses, file, *map(int, numbers)))
        else:
            with_publisher(addresses, file, *map(int, numbers))


if __name__ == "__main__":
    main()
