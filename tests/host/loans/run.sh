#!/usr/bin/env bash
# Loans: large bodies over ipc that stay in the sender's memory. The programs use only the C interface, which does not show loans. They
# check every byte of each body, kill processes, and keep messages.
#
#   tests/host/loans/run.sh              the library that the suites share
#   tests/host/loans/run.sh --long       a million bodies and a thousand kills of each kind
#   LIBDIR=DIR tests/host/loans/run.sh   the libzmq.so.5 in DIR
#
# Ends with `loans: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
"$root/scripts/need.sh" cargo:cargo gcc:gcc >&2
libdir=${LIBDIR:-}
[[ -n $libdir ]] || libdir=$("$root/tests/lib/build.sh" library)
bodies=6000 kills=40 seeds=(1 2) readers=4 messages=80 length=1000000
if [[ ${1:-} == --long ]]; then
    # Five readers want more than the budget of all slabs.
    bodies=1000000 kills=1000 seeds=($RANDOM) readers=5 messages=40 length=8000000
fi

work=$target/loans-test
passed=0 failed=0 skipped=0
mkdir -p "$work"
. "$root/tests/lib/check.sh"
for program in verify kills hoard ways; do
    gcc -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Werror -I "$root/include" "$here/bodies.c" "$here/$program.c" -o "$work/$program" -pthread \
        -L"$libdir" -l:libzmq.so.5
done

# This program loads and unloads the library itself.
gcc -std=gnu11 -O2 -g -Wall -Wextra -Wshadow -Werror -I "$root/include" "$here/unload.c" -o "$work/unload" -ldl

# on_loans PROGRAM ARGUMENT...
on_loans() { LD_LIBRARY_PATH=$libdir "$work/$1" "${@:2}"; }

# With and without loans, a socket admits the same number of bodies before EAGAIN, except for the bytes in the ring: a whole body in
# place of a part.
check_limits() {
    local lengths=(100000 262144 1000000 3000000 8000000) hwm=10 length loans plain
    while read -r length loans <&3 && read -r _ plain <&4; do
        echo "$length bytes: $loans bodies with loans, $plain without"
        [[ $loans -ge $hwm && $loans -ge $((plain - 1)) && $loans -le $((plain + 1)) ]]
    done 3< <(on_loans hoard limit $hwm "${lengths[@]}") 4< <(TAUT_IPC_LOANS=0 on_loans hoard limit $hwm "${lengths[@]}")
}

# check NAME COMMAND...
check() {
    run_check loans "$1" "tests/host/loans/run.sh $*" "${@:2}"
    cat "$work/log"
}

for how in plainly locked addresses=300 addresses=64 descriptors; do check "writing and forwarding, $how" on_loans ways $how; done
for seed in "${seeds[@]}"; do
    check "$bodies bodies with seed $seed" on_loans verify "$bodies" "$seed"
    for kind in readers subscribers senders; do
        check "$kills killed $kind with seed $seed" on_loans kills "$kind" "$kills" "$seed"
    done
done
check "a library that is unloaded" "$work/unload" "$libdir/libzmq.so.5"
check "$readers readers keep $messages bodies" on_loans hoard keep "$readers" "$messages" "$length"
check "high-water marks" check_limits
echo "loans: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
