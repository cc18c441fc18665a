"""Sends embeddings of a prompt to the engine of vLLM, one request after the other, and prints one line of JSON.

    embeddings.py MIB REQUESTS

Each request has a tensor of MIB MiB in place of token ids (`prompt_embeds`) and generates one token. Requests with as many token ids show what the
model alone takes. The rows of the tensor are as long as those of a model with 70 billion parameters.
"""

import asyncio
import json
import statistics
import sys
import time

import tiny
from processes import processor

HIDDEN = 8192
WARM_UP = 2


async def main():
    import torch
    from vllm import TokensPrompt
    from vllm.inputs import EmbedsPrompt

    size, requests = int(sys.argv[1]), int(sys.argv[2])
    rows = (size << 20) // (HIDDEN * 2)
    engine = tiny.engine(
        enable_prompt_embeds=True,
        enable_prefix_caching=False,
        max_model_len=rows + 8,
        max_num_batched_tokens=rows + 8,
        max_num_seqs=2,
        hf_overrides={"hidden_size": HIDDEN, "max_position_embeddings": rows + 8},
    )
    parameters = tiny.parameters(1)
    tensor = torch.randn(rows, HIDDEN, dtype=torch.bfloat16)

    async def measure(kind, prompt):
        """Returns the median time, and the processor time of client and core, of a request in milliseconds."""
        times = []
        for number in range(WARM_UP + requests):
            if number == WARM_UP:
                client, core = tiny.processes()
                client_used, core_used = processor([client]), processor(core)
            start = time.perf_counter()
            async for output in engine.generate(prompt(number), parameters, f"{kind} {number}"):
                assert len(output.outputs[0].token_ids) == 1
            times.append(time.perf_counter() - start)
        used = processor([client]) - client_used, processor(core) - core_used
        return [round(seconds * 1e3, 1) for seconds in (statistics.median(times[WARM_UP:]), *(part / requests for part in used))]

    ids = await measure("ids", lambda number: TokensPrompt(prompt_token_ids=[(number * 7 + position) % 1000 + 3 for position in range(rows)]))
    embeddings = await measure("embeddings", lambda number: EmbedsPrompt(prompt_embeds=tensor))
    print(
        json.dumps(
            {
                "ms": embeddings[0],
                "client ms": embeddings[1],
                "core ms": embeddings[2],
                "token ids ms": ids[0],
                "token ids client ms": ids[1],
                "token ids core ms": ids[2],
                "libraries": tiny.checked_libraries(2),
            }
        ),
        flush=True,
    )
    engine.shutdown()


if __name__ == "__main__":
    asyncio.run(main())
