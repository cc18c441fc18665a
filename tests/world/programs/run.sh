#!/usr/bin/env bash
# Real programs, unmodified, on our library. Each script of this folder is one program and also runs alone.
#
#   tests/world/programs/run.sh                 all, on our library: builds and installs it under target/programs
#   tests/world/programs/run.sh node php        some
#   PREFIX=DIR tests/world/programs/run.sh      on the libzmq installed in DIR; PREFIX=baseline: on libzmq 4.3.5
#
# What the programs are made of comes from the registries, in pinned versions, and is kept in target/programs/cache; a
# program whose parts cannot be had is skipped, with the reason. JOBS=2 at a time. The outputs are in target/programs/log.
# One line for each program, then the sum: `programs: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
# The longest first.
all=(pyzmq wheel gozmq goczmq rustzmq jupyter locust rsyslog cppzmq pmacct php node)
[[ $# -gt 0 ]] || set -- "${all[@]}"

export here logs=$target/programs/log prefix=${PREFIX:-$target/programs/prefix}
rm -rf "$logs"
mkdir -p "$logs"
if [[ -z ${PREFIX:-} ]]; then
    LIBRARIES=$("$root/tests/lib/build.sh" library) PREFIX=$prefix "$root/packaging/install.sh" install
elif [[ $PREFIX == baseline ]]; then
    "$root/scripts/libzmq-baseline.sh"
fi

# The shell may report a process that was killed at the end behind the result.
result() { grep -E "^$1: [0-9]+ passed" "$logs/$1.log" | tail -n 1; }

program() {
    local code=0 start=$SECONDS
    echo "  $1: running"
    "$here/$1.sh" "$prefix" >"$logs/$1.log" 2>&1 || code=$?
    if [[ $code -ne 0 ]]; then
        echo "--- $1"
        tail -n 60 "$logs/$1.log" | sed "s/^/    /"
        echo "again: tests/world/programs/$1.sh${PREFIX:+ $PREFIX}"
        echo ---
    else
        grep '^skipped ' "$logs/$1.log" || true
    fi
    # A script that broke before its last line has failed.
    if ! result "$1" >/dev/null || [[ $code -ne 0 && $(result "$1") == *" 0 failed"* ]]; then
        printf '\n%s: 0 passed, 1 failed, 0 skipped\n' "$1" >>"$logs/$1.log"
    fi
    echo "  $(result "$1") ($((SECONDS - start)) s)"
}
export -f program result
printf '%s\n' "$@" | xargs -P "${JOBS:-2}" -I{} bash -c 'program {}'

for name in "$@"; do result "$name"; done | awk '
    { passed += $2; failed += $4; skipped += $6 }
    END { printf "programs: %d passed, %d failed, %d skipped\n", passed, failed, skipped; exit failed > 0 }'
