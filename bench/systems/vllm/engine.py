"""Generates tokens with the engine of vLLM, and prints one line of JSON.

    engine.py REQUESTS TOKENS

All requests begin at once, and each generates TOKENS tokens.
"""

import asyncio
import json
import statistics
import sys
import time

import tiny
from processes import processor

PROMPT = 32


async def main():
    from vllm import TokensPrompt

    requests, tokens = int(sys.argv[1]), int(sys.argv[2])
    engine = tiny.engine()
    parameters = tiny.parameters(tokens)
    firsts = []

    async def generate(number):
        prompt = TokensPrompt(prompt_token_ids=[(number * 7 + position) % 1000 + 3 for position in range(PROMPT)])
        start, first, count = time.perf_counter(), None, 0
        async for output in engine.generate(prompt, parameters, f"request {number}"):
            first = first or time.perf_counter() - start
            count = len(output.outputs[0].token_ids)
        firsts.append(first)
        return count

    # The first round is a warm-up.
    await asyncio.gather(*map(generate, range(requests, 2 * requests)))
    firsts.clear()
    client, core = tiny.processes()
    client_used, core_used, start = processor([client]), processor(core), time.perf_counter()
    count = sum(await asyncio.gather(*map(generate, range(requests))))
    seconds = time.perf_counter() - start
    client_used, core_used = processor([client]) - client_used, processor(core) - core_used
    assert count == requests * tokens
    print(
        json.dumps(
            {
                "tokens/s": round(count / seconds),
                "first token p50 ms": round(statistics.median(firsts) * 1e3, 2),
                "client us a token": round(client_used / count * 1e6, 1),
                "core us a token": round(core_used / count * 1e6, 1),
                "libraries": tiny.checked_libraries(2),
            }
        ),
        flush=True,
    )
    engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
