#!/usr/bin/env bash
# Compares build profiles: builds Tautline in several ways and runs the builds side by side, on the benchmark's own
# programs. docs/results/build-profiles.md has the results.
#
#   scripts/profiles.sh [ARGUMENTS OF THE HARNESS]      for example --pairs 5 --only transport=tcp
#
# The reference is the shipped profile. `abort` may not be shipped: a library must not end its caller's process. `native` runs
# on this machine only. `pgo` and `fat-pgo` are trained with the scenario's own cells, message objects and fan-out, and left out
# if there is no llvm-profdata of the compiler's version (rustup component add llvm-tools). BUILD_ONLY=1 does not run them.
# ONLY="plain native" builds and runs these profiles; the first in the order below is the reference.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
mkdir -p "$target"
work=$target/profiles
mkdir -p "$work/peers" "$work/bin"
host=$(rustc -vV | sed -n 's/^host: //p')

scripts/need.sh cargo:cargo cc:gcc baseline
. scripts/step.sh
step "profiles: building the harness" "$work/harness.log" cargo build -p tautline-bench
scripts/libzmq-baseline.sh "$target/baseline"
bench/peers/c/build.sh include "$target/baseline/libzmq/lib" "$work/bin"

# is_wanted NAME: false if ONLY has other profiles. The trained profiles need `train`.
is_wanted() {
    [ -n "${ONLY:-}" ] || return 0
    [[ " $ONLY " == *" $1 "* || ($1 == train && "$ONLY " == *"pgo "*) ]]
}

# variant NAME TITLE LTO UNITS PANIC FLAGS...
names=()
variant() {
    local name=$1 title=$2 lto=$3 units=$4 panic=$5
    shift 5
    is_wanted "$name" || return 0
    # With --target, cargo does not apply the flags to build scripts.
    step "profiles: building $name ($title)" "$work/$name.log" \
        env RUSTFLAGS="$*" CARGO_PROFILE_RELEASE_LTO="$lto" CARGO_PROFILE_RELEASE_CODEGEN_UNITS="$units" \
        CARGO_PROFILE_RELEASE_PANIC="$panic" cargo build --release -p tautline-libzmq --target "$host" \
        --target-dir "$work/build-$name"
    mkdir -p "$work/$name"
    cp "$work/build-$name/$host/release/libzmq.so" "$work/$name/libzmq.so.5"
    printf 'title = "%s"\nprogram = "zmq-bench"\nlibrary = "%s"\n' "$name" "$name" >"$work/peers/$name.toml"
    names+=("$name")
}

variant plain "-O3, 16 units" off 16 unwind
variant unit "one unit" off 1 unwind
variant thin "thin LTO, one unit" thin 1 unwind
variant fat "fat LTO, one unit" fat 1 unwind
variant abort "thin LTO, panic=abort" thin 1 abort
variant native "thin LTO, target-cpu=native" thin 1 unwind -Ctarget-cpu=native

profdata=$(rustc --print sysroot)/lib/rustlib/$host/bin/llvm-profdata
if ! is_wanted train; then
    : # No trained profile is wanted.
elif [ -x "$profdata" ]; then
    variant train "thin LTO, with counters" thin 1 unwind "-Cprofile-generate=$work/counts"
    rm -rf "$work/counts"
    echo "profiles: training"
    train() {
        LD_LIBRARY_PATH=$work/train "$work/bin/zmq-bench" "$@" --timeout 60 >/dev/null
    }
    for transport in tcp ipc inproc; do
        for size in 64 1024 8192 65536; do
            count=$((size < 8192 ? 200000 : 20000))
            for pattern in push_pull router_router pub_sub; do
                for api in buffers messages; do
                    train --pattern $pattern --transport $transport --size $size --count $count --api $api
                done
            done
            train --pattern req_rep --transport $transport --size $size --count 20000
        done
        train --pattern fan_out --subscribers 4 --transport $transport --size 64 --count 100000
    done
    "$profdata" merge -o "$work/counts.profdata" "$work/counts"
    variant pgo "thin LTO, trained" thin 1 unwind "-Cprofile-use=$work/counts.profdata"
    variant fat-pgo "fat LTO, trained" fat 1 unwind "-Cprofile-use=$work/counts.profdata"
else
    echo "profiles: $profdata is missing, so the trained variants are skipped"
fi

# Without ONLY, the peers are those of the scenario.
libraries=() peers=()
for name in "${names[@]}"; do
    libraries+=(--library "$name=$work/$name")
    [ -z "${ONLY:-}" ] || [ "$name" = train ] || peers+=(--peer "$name")
done
if [ "${BUILD_ONLY:-0}" = 1 ]; then exit 0; fi
exec "$target/debug/tautline-bench" run --scenario bench/scenarios/profiles.toml "${libraries[@]}" ${peers[@]+"${peers[@]}"} --peers "$work/peers" \
    --programs "$work/bin" --out "$target/bench/profiles" "$@"
