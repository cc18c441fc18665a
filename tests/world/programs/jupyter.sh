#!/usr/bin/env bash
# A Jupyter kernel (ipykernel) executes a notebook for nbclient, over five sockets between two processes.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/python.sh"
start jupyter "$@"
python_environment
pyzmq_built

# Jupyter finds its kernels beside the interpreter. All its other files go to the empty folder.
export JUPYTER_PLATFORM_DIRS=1 HOME=$work IPYTHONDIR=$work/ipython JUPYTER_RUNTIME_DIR=$work/runtime
witness "$python" "$here/jupyter/execute.py" "$library" >"$work/execute.log" 2>&1 || true
cat "$work/execute.log"
count "$(grep -c '^ok ' "$work/execute.log" || true)" "$(grep -c '^not ok ' "$work/execute.log" || true)" 0
check "the program runs to its end" grep -q '^end$' "$work/execute.log"
check "both processes load only this libzmq" witnessed
finish
