#!/usr/bin/env bash
# A CURVE server under attack by raw peers; see attack.c. `make attack`.
#
#   tests/attacks/run.sh            our library beside libzmq 4.3.5, for SECONDS_EACH (4) in each measurement
#   tests/attacks/run.sh LIBDIR...  the libzmq.so.5 in these folders
#
# The figures say little on a machine that has other things to do; nothing fails because of them.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
"$root/scripts/need.sh" cargo:cargo gcc:gcc
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

libraries=("$@")
if [ ${#libraries[@]} -eq 0 ]; then
    (cd "$root" && cargo build --release -p tautline-libzmq)
    mkdir "$work/tautline"
    ln -s "$(realpath "${CARGO_TARGET_DIR:-$root/target}/release/libzmq.so")" "$work/tautline/libzmq.so.5"
    "$root/scripts/libzmq-baseline.sh" >&2
    libraries=("$work/tautline" "$root/target/baseline/libzmq/lib")
fi
gcc -std=gnu99 -O2 -Wall -Wextra -I "$root/include" "$here/attack.c" "${libraries[0]}/libzmq.so.5" -o "$work/attack"
for library in "${libraries[@]}"; do
    echo "$library"
    {
        printf 'beside\tmessages/s\t%% of quiet\t%% of elsewhere\t%% of burner\tattacks/s\tcores\tserver KiB\n'
        LD_LIBRARY_PATH=$library "$work/attack" "${SECONDS_EACH:-4}" || true
    } | column -t -s "$(printf '\t')"
done
