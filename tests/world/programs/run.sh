#!/usr/bin/env bash
# Runs real programs, unmodified, on our library. Each script of this folder runs one program and can be called alone.
#
#   tests/world/programs/run.sh                 all programs on our library, which it builds and installs under target/programs
#   tests/world/programs/run.sh node php        only these programs
#   PREFIX=DIR tests/world/programs/run.sh      on the libzmq installed in DIR; PREFIX=baseline: on libzmq 4.3.5
#
# The programs and their packages come from the registries, in pinned versions, and stay in target/programs/cache. If they
# cannot be fetched, the program is skipped with the reason. JOBS programs run at a time, by default 2. The outputs are in
# target/programs/log. Prints a line for each program, then the sum: `programs: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
# The programs with the longest runs come first.
all=(pyzmq wheel backend gozmq goczmq rustzmq jupyter locust rsyslog cppzmq pmacct php node)
[[ $# -gt 0 ]] || set -- "${all[@]}"

export here logs=$target/programs/log prefix=${PREFIX:-$target/programs/prefix}
rm -rf "$logs"
mkdir -p "$logs"
if [[ -z ${PREFIX:-} ]]; then
    LIBRARIES=$("$root/tests/lib/build.sh" library) PREFIX=$prefix flock "$prefix.lock" "$root/packaging/install.sh" install
elif [[ $PREFIX == baseline ]]; then
    "$root/scripts/libzmq-baseline.sh"
fi

# The result may not be the last line, because the shell may report a killed process after it.
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
    # A script that ended before its last line has failed.
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
