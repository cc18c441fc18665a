"""Stops the core of a vLLM engine while it has requests, and writes the output of `taut`.

    stopped.py TAUT FILE

The client sends requests before and after the core's process is stopped by SIGSTOP. FILE gets the output of `taut`; standard output gets one line of
JSON. At the end, the core continues, and all requests must end.
"""

import asyncio
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import tiny
from processes import libraries

REQUESTS = 8
TOKENS = 200


async def main():
    from vllm import TokensPrompt

    taut, file = sys.argv[1:]
    engine = tiny.engine()
    begun = asyncio.Event()

    async def generate(number):
        prompt = TokensPrompt(prompt_token_ids=list(range(3 + number, 35 + number)))
        async for output in engine.generate(prompt, tiny.parameters(TOKENS), f"request {number}"):
            begun.set()
        return len(output.outputs[0].token_ids)

    used = tiny.checked_libraries(2)
    client, started = tiny.processes()
    # The core is the parent of its worker, so it comes first.
    core = next(process for process in started if libraries([process]))
    requests = [asyncio.create_task(generate(number)) for number in range(REQUESTS)]
    await begun.wait()
    os.kill(core, signal.SIGSTOP)
    requests += [asyncio.create_task(generate(number)) for number in range(REQUESTS, 2 * REQUESTS)]
    lines = []
    try:
        for words in (["doctor"], ["ps"], ["show", str(client)], ["show", str(core)]):
            shown = await asyncio.create_subprocess_exec(taut, *words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            text, _ = await asyncio.wait_for(shown.communicate(), 60)
            lines.append(f"$ taut {' '.join(words)}\n{text.decode()}exit code {shown.returncode}\n")
    finally:
        os.kill(core, signal.SIGCONT)
    pathlib.Path(file).write_text("\n".join(lines), encoding="utf-8")
    assert await asyncio.wait_for(asyncio.gather(*requests), 120) == [TOKENS] * len(requests)
    named = f"{core}" in lines[0] and "stopped" in lines[0]
    print(json.dumps({"the doctor names the core": int(named), "libraries": used}), flush=True)
    engine.shutdown()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(TAUT_OBSERVE="1", XDG_RUNTIME_DIR=folder, TAUT_COUNTERS=f"{folder}/tautline")
        asyncio.run(main())
