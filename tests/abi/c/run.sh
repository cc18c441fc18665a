#!/usr/bin/env bash
# Tests the C ABI: include/zmq.h in all dialects of C and C++ and under cppzmq, and the built library under
# small C programs.
#
#   tests/abi/c/run.sh [LIBDIR]     LIBDIR: the folder of libzmq.so; by default the shared library of the suites
#   ABI_ROUNDS=1000 ...           number of runs in each of four crowded loops (20)
#   WAKE_DESCRIPTORS=2 ...        number of descriptors that wake a socket: 2 if the library has no eventfd (1)
# Ends with `abi: N passed, N failed, N skipped`; exit code 0 if every check passed or was skipped.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
libdir=${1:-$("$root/tests/lib/build.sh" library)} || exit
work=$target/abi
log=$work/log
mkdir -p "$work"

passed=0 failed=0 skipped=0

# check NAME COMMAND...: runs a command and counts its result. Prints the output only if the command fails.
check() {
    local name=$1
    shift
    echo "  $name"
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $name: $*"
        head -n 40 "$log"
        echo "again: tests/abi/c/run.sh"
    fi
}

skip() {
    skipped=$((skipped + 1))
    echo "skipped $1: $2"
}

# True if the compiler knows the dialect. Other dialects are skipped. $1: compiler, $2: language, $3: dialect
knows() {
    "$1" -x "$2" -std="$3" -fsyntax-only /dev/null >/dev/null 2>&1
}

warnings=(-Wall -Wextra -Wshadow -Werror -pedantic)

# compile NAME COMPILER LANGUAGE DIALECT [FLAG...]: compiles the header check with and without the draft interface.
compile() {
    local name=$1 compiler=$2 language=$3 dialect=$4 draft
    shift 4
    for draft in "" -DZMQ_BUILD_DRAFT_API; do
        if knows "$compiler" "$language" "$dialect"; then
            check "$name $dialect $draft" "$compiler" -x "$language" -std="$dialect" "${warnings[@]}" "$@" \
                $draft -I "$root/include" -c "$here/header.c" -o "$work/header.o"
        else
            skip "$name $dialect $draft" "$compiler does not know it"
        fi
    done
}

for dialect in c89 gnu89 c99 c11 c17 c2x gnu17; do
    compile C "${CC:-cc}" c "$dialect" -Wstrict-prototypes
done
for dialect in c++98 gnu++98 c++11 c++14 c++17 c++20 c++23; do
    compile C++ "${CXX:-c++}" c++ "$dialect"
done

# Unpacks cppzmq's headers only, because installing its Debian package would put another zmq.h into the default path.
cppzmq=$work/cppzmq
if [ ! -f "$cppzmq/include/zmq.hpp" ] && command -v apt-get >/dev/null; then
    mkdir -p "$cppzmq/include"
    (
        cd "$cppzmq" && { apt-get download cppzmq-dev || { apt-get update && apt-get download cppzmq-dev; }; } &&
            dpkg -x cppzmq-dev_*.deb unpacked && cp unpacked/usr/include/zmq*.hpp include/
    ) >"$log" 2>&1
fi
if [ -f "$cppzmq/include/zmq.hpp" ]; then
    for dialect in c++11 c++17 c++20; do
        for draft in "" -DZMQ_BUILD_DRAFT_API; do
            check "cppzmq $dialect $draft" "${CXX:-c++}" -std="$dialect" -Wall -Wextra -Werror $draft \
                -I "$root/include" -isystem "$cppzmq/include" -c "$here/cppzmq.cpp" -o "$work/cppzmq.o"
        done
    done
else
    skip cppzmq "its headers are not here and apt-get did not bring them"
fi

# Programs that test the header and the library together.
programs=("$here/check.c" "$here/runtime.c" "$here/handles.c" "$here/messages.c" "$here/traffic.c" "$here/fork.c" "$here/drafts.c"
    "$here/endings.c" "$here/routing_ids.c")
addresses=("$here/check.c" "$here/addresses.c" "$here/names.c" "$here/files.c" "$here/zones.c")
if [ -e "$libdir/libzmq.so" ]; then
    soname=$(readelf -d "$libdir/libzmq.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
    check soname test "$soname" = libzmq.so.5
    # Symbols of an ELF version node (type A) do not count.
    foreign=$(nm -D --defined-only "$libdir/libzmq.so" | awk '$2 != "A" && $3 !~ /^zmq_/ { print $3 }')
    check "only zmq_* is exported" test -z "$foreign"
    ln -sf "$(cd "$libdir" && pwd)/libzmq.so" "$work/libzmq.so.5"
    cp "$libdir/libzmq.so" "$work/stripped.so" && strip "$work/stripped.so"
    version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml")
    check "stripped, it still says its version" grep -qaP "\x00Tautline \Q$version\E\x00" "$work/stripped.so"
    check "runtime build" "${CC:-cc}" -std=c99 "${warnings[@]}" -I "$root/include" "${programs[@]}" \
        "$work/libzmq.so.5" -pthread -Wl,-rpath,"$work" -o "$work/runtime"
    check runtime "$work/runtime"
    mkdir -p "$work/observed" && chmod 700 "$work/observed"
    check "runtime, observed" env TAUT_OBSERVE=1 XDG_RUNTIME_DIR="$work/observed" "$work/runtime"
    check "runtime, crowded" "$here/crowded.sh" "${ABI_ROUNDS:-20}" "$work/runtime"
    check "resolver build" "${CC:-cc}" -std=c99 "${warnings[@]}" -I "$root/include" "$here/check.c" "$here/resolver.c" "$work/libzmq.so.5" \
        -pthread -ldl -Wl,-rpath,"$work" -o "$work/resolver"
    check "names that are looked up for long" "$work/resolver"
    check "descriptors build" "${CC:-cc}" -std=c99 "${warnings[@]}" -DWAKE_DESCRIPTORS="${WAKE_DESCRIPTORS:-1}" -I "$root/include" "$here/check.c" "$here/descriptors.c" "$work/libzmq.so.5" \
        -pthread -Wl,-rpath,"$work" -o "$work/descriptors"
    check "descriptors of sockets over inproc" "$work/descriptors"
    check "amounts build" "${CC:-cc}" -std=gnu99 "${warnings[@]}" -I "$root/include" "$here/check.c" "$here/handles.c" "$here/amounts.c" \
        "$work/libzmq.so.5" -pthread -Wl,-rpath,"$work" -o "$work/amounts"
    check "more than 64 GiB in one queue" "$work/amounts"
    check "exhausted build" "${CC:-cc}" -std=gnu99 "${warnings[@]}" -I "$root/include" "$here/check.c" "$here/handles.c" "$here/exhausted.c" \
        "$work/libzmq.so.5" -pthread -Wl,-rpath,"$work" -o "$work/exhausted"
    check "a receive where there is no memory" "$work/exhausted"
    check "module build" "${CC:-cc}" -std=c99 "${warnings[@]}" -fPIC -shared -I "$root/include" "$here/module.c" \
        "$work/libzmq.so.5" -Wl,-rpath,"$work" -o "$work/module.so"
    check "unload build" "${CC:-cc}" -std=c99 "${warnings[@]}" "$here/unload.c" -ldl -o "$work/unload"
    check "addresses build" "${CC:-cc}" -std=c99 "${warnings[@]}" -I "$root/include" "${addresses[@]}" \
        "$work/libzmq.so.5" -pthread -ldl -Wl,-rpath,"$work" -o "$work/addresses"
    for part in names files zones; do
        check "addresses: $part" "$work/addresses" "$part"
        while IFS=: read -r name reason; do skip "${name#skipped }" "${reason# }"; done < <(grep '^skipped ' "$log")
    done
    check "a library that ends its context while it is unloaded" timeout 60 "$work/unload" "$work/module.so"
    check "the same, observed" env TAUT_OBSERVE=1 XDG_RUNTIME_DIR="$work/observed" timeout 60 "$work/unload" "$work/module.so"
    check "a program that ends at once, observed" env TAUT_OBSERVE=1 XDG_RUNTIME_DIR="$work/observed" timeout 600 "$here/crowded.sh" "${ABI_ROUNDS:-20}" "$work/unload" "$work/module.so" exit
    check "nothing is left of what was observed" test -z "$(ls "$work/observed/tautline")"
else
    skip library "no libzmq.so in $libdir"
fi
if [ -e "$libdir/libzmq.a" ]; then
    check "static build" "${CC:-cc}" -std=c99 "${warnings[@]}" -I "$root/include" "${programs[@]}" \
        "$libdir/libzmq.a" -pthread -ldl -lm -o "$work/runtime-static"
    check "static runtime" "$work/runtime-static"
else
    skip "static library" "no libzmq.a in $libdir"
fi

echo "abi: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
