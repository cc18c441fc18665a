#!/usr/bin/env bash
# Runs a language's own binding on Tautline, and prints its speed (`make try LANGUAGE=go`):
#
#   scripts/try.sh LANGUAGE     cpp, dotnet, go, java, mono, node, python, rust, or another folder of bench/languages
#
# Two processes exchange 64 B over tcp. The script uses the library in PREFIX, or else the one in target/release, which it builds if
# necessary. Before it measures, it reads in the memory map of the program that this library is loaded. The binding is downloaded once
# from its registry. This is a first impression: `make languages` compares with libzmq carefully.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
name=${1:-}
case $name in node | rust) name=$name-tautline ;; esac
descriptor=bench/languages/$name/language.toml
if [[ -z $name || ! -f $descriptor ]]; then
    sed -n '2,/^set /p' "$0" | sed '/^set /d; s/^# \{0,1\}//'
    exit 2
fi
field() { sed -n "s/^$1 = \"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p" "$descriptor"; }
swap=$(field swap) slow=$(field slow)
count=$((1000000 / ${slow:-1})) rounds=20000
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
work=$(mktemp -d "${TMPDIR:-/tmp}/try.XXXXXX")
pids=()
trap '[[ ${#pids[@]} -eq 0 ]] || kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

fail() {
    echo "try: $*" >&2
    exit 1
}

# is_tautline FILE: true if the file contains Tautline. The library and the addon contain a version string, Rust programs names of functions.
is_tautline() { grep -qaE "Tautline ${version//./\\.}|tautline_core" "$1" 2>/dev/null; }

prefix=${PREFIX:-/usr/local}
if [[ $swap == built-in ]]; then
    prefix=$work/none
elif ! is_tautline "$prefix/lib/libzmq.so.5"; then
    [[ -e $target/release/libzmq.so ]] || make --no-print-directory build >&2
    prefix=$target/try/usr
    CARGO_TARGET_DIR=$target PREFIX=$prefix packaging/install.sh install >"$work/install.log" 2>&1 || { cat "$work/install.log" >&2; exit 1; }
fi
mkdir -p "$target/try/programs" "$work/none"
echo "try: $(field title), $(field binding): getting and building it" >&2
bench/languages/build.sh "$target/try/programs" "$prefix" "$name" >&2
programs=$target/try/programs/$name
[[ ! -e $programs/failed ]] || { cat "$programs/build.log" >&2; fail "$(cat "$programs/failed")"; }

run() { # run PROGRAM ARGUMENT...: runs it on Tautline
    local environment=()
    case $swap in
        loader) environment=(LD_LIBRARY_PATH="$prefix/lib") ;;
        preload | bundled) environment=(LD_PRELOAD="$prefix/lib/libzmq.so.5") ;;
    esac
    exec env ${environment[@]+"${environment[@]}"} "$programs/$1" "${@:2}"
}

# runs_on PID: prints the file with Tautline in the memory map of the process.
runs_on() {
    local file
    while IFS= read -r file; do
        if is_tautline "$file"; then
            echo "$file"
            return
        fi
    done < <(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* [^ ]* *\(\/.*\(zmq\|tautline\|local_\).*\)$/\1/p' "/proc/$1/maps" 2>/dev/null | sort -u)
    return 1
}

# Prints a TCP port without a listener.
port() {
    local port
    for port in $(shuf -i 20000-30000 -n 50); do
        if ! (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
            echo "$port"
            return
        fi
    done
}

# measure KIND COUNT: runs local_KIND and remote_KIND, and writes one JSON line of figures from each to $work/figures.
measure() {
    local endpoint there here tries=0
    endpoint=tcp://127.0.0.1:$(port)
    (run "local_$1" "$endpoint" 64 "$2" 1000) >"$work/here" 2>"$work/log" &
    here=$! pids+=($!)
    until library=$(runs_on "$here"); do
        kill -0 "$here" 2>/dev/null || { cat "$work/log" >&2; fail "local_$1 ended too early"; }
        tries=$((tries + 1))
        [[ $tries -lt 600 ]] || fail "local_$1 did not load Tautline, but: $(grep -o '/.*zmq.*' "/proc/$here/maps" | sort -u | paste -sd ' ')"
        sleep 0.1
    done
    (run "remote_$1" "$endpoint" 64 "$2" 1000) >"$work/there" 2>>"$work/log" &
    there=$! pids+=($!)
    wait "$there" && wait "$here" || { cat "$work/log" >&2; fail "local_$1 or remote_$1 failed"; }
    pids=()
    cat "$work/here" "$work/there" >"$work/figures"
}
figure() { # figure NAME
    local value
    value=$(sed -n "s/.*\"$1\": *\([0-9.]*\).*/\1/p" "$work/figures" | head -n 1)
    [[ -n $value ]] || fail "the output has no $1: $(cat "$work/figures")"
    echo "$value"
}

measure thr "$count"
rate=$(figure messages_per_second)
echo "$(field title), $(field binding), runs on Tautline $version: $library"
awk -v n="$rate" 'BEGIN { printf "  64 B, PUSH to PULL over tcp   %9.2f million messages a second\n", n / 1e6 }'
measure lat "$rounds"
half=$(figure p50_us)
awk -v n="$half" 'BEGIN { printf "  64 B, REQ to REP and back     %9.1f µs\n", 2 * n }'
[[ $swap == built-in ]] || echo "comparison with libzmq 4.3.5, in a few minutes: make languages ONLY=$name QUICK=1"
