#!/usr/bin/env bash
# The pager test: ten systems of real programs (pyzmq, Node.js, C), each with a fault of those that one is woken for at night. `taut doctor` must
# name the cause first, with its evidence, and find nothing in the same system without the fault. With WRITE=1 the same systems on
# libzmq 4.3.5 show what is to be seen of them from outside, and docs/results/pager.md is written.
#
#   tests/tools/doctor/run.sh                  all of them
#   tests/tools/doctor/run.sh linger wrong_id  some of them
#
# Each system has a network of its own, for its ports: where the system gives none, everything is skipped. JOBS=4 at a time. Each has LIMIT=300
# seconds: what is not found until then is not found. Ends with `pager: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$target/pager
export PYTHONDONTWRITEBYTECODE=1

skip() {
    echo "skipped: $1"
    echo "pager: 0 passed, 0 failed, 1 skipped"
    exit 0
}

if unshare -n true 2>/dev/null; then enter=(unshare -n)
elif unshare -rn true 2>/dev/null; then enter=(unshare -rn)
else skip "no network of its own can be had"; fi
"$root/scripts/need.sh" cargo:cargo cc:gcc ip:iproute2 node:nodejs npm:npm
. "$root/tests/lib/venv.sh"
zeromq=$target/programs/cache/node-zeromq-6.8.0
if [[ ! -e $zeromq/.complete ]]; then
    rm -rf "$zeromq"
    mkdir -p "$zeromq"
    (cd "$zeromq" && npm install --ignore-scripts --no-save --prefix . zeromq@6.8.0) >"$zeromq.log" 2>&1 ||
        { tail -n 5 "$zeromq.log"; skip "the package zeromq could not be had"; }
    touch "$zeromq/.complete"
fi
[[ ${WRITE:-} != 1 ]] || "$root/scripts/libzmq-baseline.sh"
(cd "$root" && cargo build --release -p tautline-libzmq && cargo whole-programs)

rm -rf "$out"
mkdir -p "$out/library" "$out/results"
ln -s "$(realpath "$target/release/libzmq.so")" "$out/library/libzmq.so.5"
for source in "$here"/systems/*/*.c; do
    folder=$out/programs/$(basename "$(dirname "$source")")
    mkdir -p "$folder"
    # Linked with neither of the two: LD_LIBRARY_PATH decides.
    "${CC:-cc}" -std=c99 -Wall -Wextra -Werror -I "$root/include" "$source" "$out/library/libzmq.so.5" -o "$folder/$(basename "$source" .c)"
done
export PAGER_PROGRAMS=$out/programs PAGER_LIBZMQ=$target/baseline/libzmq/lib PAGER_NODE=$zeromq/node_modules

if [[ $# -gt 0 ]]; then names=("$@")
else mapfile -t names < <(sed -n 's/^        "\([a-z_]*\)",$/\1/p' "$here/systems.py"); fi
system() {
    local code=0
    timeout -k 10 "${LIMIT:-300}" "${enter[@]}" sh -c 'ip link set lo up && exec "$@"' sh "$venv/bin/python" "$here/pager.py" run "$1" \
        "$target/debug/taut" "$out/library" "$out/results/$1.json" >"$out/results/$1.log" 2>&1 || code=$?
    echo "  $1: done"
    [[ $code -eq 0 ]] || sed 's/^/    /' "$out/results/$1.log"
}
for name in "${names[@]}"; do
    while [[ $(jobs -rp | wc -l) -ge ${JOBS:-4} ]]; do wait -n || true; done
    system "$name" &
done
wait
results=()
for name in "${names[@]}"; do results+=("$out/results/$name.json"); done
exec "$venv/bin/python" "$here/pager.py" report "${results[@]}"
