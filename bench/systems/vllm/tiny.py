"""The engine of vLLM with a model of one layer and without trained weights, so that little time is spent in the model.

Import this module before vLLM. The API's side is the process that calls `engine`, the core of the engine another one; ZeroMQ over ipc connects them.
"""

import os
import pathlib

from processes import libraries, tree

os.environ.update(VLLM_CPU_KVCACHE_SPACE="1", VLLM_LOGGING_LEVEL="ERROR", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1")


def engine(**options):
    """Starts the engine. `options` are arguments of vLLM's AsyncEngineArgs."""
    from vllm import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    model = str(pathlib.Path(__file__).parent / "model")
    defaults = {"load_format": "dummy", "skip_tokenizer_init": True, "enforce_eager": True, "max_model_len": 512, "max_num_seqs": 64, "dtype": "bfloat16"}
    return AsyncLLM.from_engine_args(AsyncEngineArgs(model=model, **{**defaults, **options}))


def parameters(tokens):
    """Returns the parameters of a request that generates this number of tokens."""
    from vllm import SamplingParams

    return SamplingParams(max_tokens=tokens, ignore_eos=True, detokenize=False)


def processes():
    """Returns this process, and a list of the processes that it has started."""
    client, *started = tree(os.getpid())
    return client, started


def checked_libraries(least):
    """Returns the files of ZeroMQ of this process and of its children. At least `least` processes must have them, and all must have the same ones.

    In the mode `library`, they also map the file of pyzmq's own libzmq. Only libzmq runs the thread ZMQbg/Reaper.
    """
    found = {process: files for process in tree(os.getpid()) if (files := libraries([process]))}
    first = next(iter(found.values()))
    assert len(found) >= least, f"only {len(found)} processes use ZeroMQ"
    assert all(files == first for files in found.values()), f"the processes use different libraries: {found}"
    is_ours = any("tautline_zmq/" in file for file in first)
    reapers = [process for process in found if any(path.read_text().strip() == "ZMQbg/Reaper" for path in pathlib.Path(f"/proc/{process}/task").glob("*/comm"))]
    assert not reapers if is_ours else len(reapers) >= least, f"libzmq runs in {reapers} of {found}"
    return first
