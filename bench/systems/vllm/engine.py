"""Generates tokens with the engine of vLLM, and prints one line of JSON.

    engine.py REQUESTS TOKENS

The API's side is this process, the core of the engine another one; ZeroMQ over ipc connects them. The model has one layer and no trained
weights, so little time is spent in it. All requests begin at once, and each generates TOKENS tokens.
"""

import asyncio
import json
import os
import pathlib
import statistics
import sys
import time

from processes import libraries, processor, tree

os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", VLLM_LOGGING_LEVEL="ERROR", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1")
PROMPT = 32


async def main():
    from vllm import AsyncEngineArgs, SamplingParams, TokensPrompt
    from vllm.v1.engine.async_llm import AsyncLLM

    requests, tokens = int(sys.argv[1]), int(sys.argv[2])
    engine = AsyncLLM.from_engine_args(
        AsyncEngineArgs(
            model=str(pathlib.Path(__file__).parent / "model"),
            load_format="dummy",
            skip_tokenizer_init=True,
            enforce_eager=True,
            max_model_len=512,
            max_num_seqs=64,
            dtype="bfloat16",
        )
    )
    parameters = SamplingParams(max_tokens=tokens, ignore_eos=True, detokenize=False)
    firsts = []

    async def generate(number):
        prompt = TokensPrompt(prompt_token_ids=[(number * 7 + position) % 1000 + 3 for position in range(PROMPT)])
        start, first, count = time.perf_counter(), None, 0
        async for output in engine.generate(prompt, parameters, f"request {number}"):
            first = first or time.perf_counter() - start
            count = len(output.outputs[0].token_ids)
        firsts.append(first)
        return count

    await generate(requests)
    firsts.clear()
    processes = tree(os.getpid())
    used, start = processor(processes), time.perf_counter()
    count = sum(await asyncio.gather(*map(generate, range(requests))))
    seconds, used = time.perf_counter() - start, processor(processes) - used
    assert count == requests * tokens
    print(
        json.dumps(
            {
                "tokens/s": round(count / seconds),
                "first token p50 ms": round(statistics.median(firsts) * 1e3, 2),
                "first token worst ms": round(max(firsts) * 1e3, 2),
                "processor us a token": round(used / count * 1e6, 1),
                "libraries": libraries(processes),
            }
        ),
        flush=True,
    )
    engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
