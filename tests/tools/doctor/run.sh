#!/usr/bin/env bash
# Runs 28 systems of real programs (pyzmq, Node.js, C), each with a fault that operators meet. The first finding of `taut doctor` must
# name the cause. The same systems without their faults, and six busy systems, must have no warnings and no trouble.
# NOT_YET in causes.py lists the systems that `taut doctor` gets wrong. If it gets one of them right, the suite fails.
#
#   tests/tools/doctor/run.sh                  all systems
#   tests/tools/doctor/run.sh linger wrong_id  some of them
#   WRITE=1 tests/tools/doctor/run.sh          also on libzmq 4.3.5, to write docs/results/doctor.md
#
# Each system has its own network and mount namespaces, for its ports and host names, and its own XDG_RUNTIME_DIR. JOBS (default 8) cases
# run in parallel. Ends with the score, and `doctor: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
. "$root/tests/lib/tools.sh"
begin_on_linux doctor cc:gcc ip:iproute2 node:nodejs npm:npm unshare:util-linux
use_node_zeromq
LIBRARY=$("$root/tests/lib/build.sh" library)
[[ ${WRITE:-} != 1 ]] || BASELINE=$("$root/tests/lib/build.sh" baseline)

PROGRAMS=$(mktemp -d /tmp/taut-doctor.XXXXXX)
trap 'rm -rf "$PROGRAMS"' EXIT
for source in "$here"/systems/*/*.c; do
    folder=$PROGRAMS/$(basename "$(dirname "$source")")
    mkdir -p "$folder"
    # LD_LIBRARY_PATH chooses the library at run time.
    "${CC:-cc}" -std=c99 -Wall -Wextra -Werror -I "$root/include" "$source" "$LIBRARY/libzmq.so.5" -o "$folder/$(basename "$source" .c)"
done
export LIBRARY BASELINE="${BASELINE:-}" PROGRAMS
words=()
for word in "$@"; do words+=(--word "$word"); done
run_pytest doctor tests/tools/doctor/run.sh "$here" --basetemp "$PROGRAMS/cases" -n "${JOBS:-8}" --dist worksteal ${words[@]+"${words[@]}"}
