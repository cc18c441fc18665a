#!/usr/bin/env bash
# Runs libzmq 4.3.5's own behaviour tests on a libzmq.so.5.
#
#   tests/upstream/run.sh                        ours: builds (with wss) and uses target/release/libzmq.so
#   tests/upstream/run.sh LIBDIR                 the library in LIBDIR (libzmq.so.5, or else libzmq.so)
#   tests/upstream/run.sh baseline               libzmq 4.3.5 itself, for reference
#   tests/upstream/run.sh LIBDIR test_name       one program, its output shown
#   tests/upstream/run.sh LIBDIR 'test_re*' ...  several programs, by shell pattern
#
# There are two sets of programs: one built without libzmq's draft interface, and one built with it, whose programs are
# called draft/test_name here. SETS=stable or SETS=draft runs one of them.
#
# Each program runs in a network namespace of its own (fixed ports) and in an empty directory, with a time limit.
# Results go to target/upstream/results.tsv (program, status, seconds, last assertion). The exit code is 0 when every
# program that failed is listed, with its reason, in expected.tsv.
#
# EXPECTED="file..." instead of that list, from the root; RESULTS=file instead of those results.
# JOBS=4 programs at a time, LIMIT=300 seconds each; RETRY=5: up to so many failures are run up to three times
# more, each alone ("flaky" if it passes then).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$target/upstream
sets=${SETS:-stable draft}
results=${RESULTS:-$out/results.tsv}
expected=()
for file in ${EXPECTED:-tests/upstream/expected.tsv}; do expected+=("$root/$file"); done
export LIMIT=${LIMIT:-300}
jobs=${JOBS:-4}

# shellcheck disable=SC2086 # a list of words
"$here/build.sh" $sets

library_dir() { # prints the directory in which libzmq.so.5 is the wanted library
    case ${1:-} in
        '')
            (cd "$root" && cargo build --release -p tautline-libzmq --features wss) || return 1
            set -- "$target/release" ;;
    esac
    local dir
    dir=$(cd "$1" && pwd) || return 1
    if [[ ! -e $dir/libzmq.so.5 ]]; then
        [[ -e $dir/libzmq.so ]] || { echo "upstream: no libzmq.so.5 in $dir" >&2; return 1; }
        ln -sf "$dir/libzmq.so" "$work/libzmq.so.5"
        dir=$work
    fi
    echo "$dir"
}

work=$(mktemp -d "${TMPDIR:-/tmp}/upstream.XXXXXX")
trap 'rm -rf "$work"' EXIT
BASELINE='' LIBDIR='' GIVEN=${1:-}
if [[ ${1:-} == baseline ]]; then BASELINE=yes; else LIBDIR=$(library_dir "${1:-}"); fi
export BASELINE LIBDIR GIVEN
shift || true

# The directory of the library for the programs of a set.
library_of() {
    if [[ -n $BASELINE ]]; then echo "$OUT/$1/lib"; else echo "$LIBDIR"; fi
}
export OUT=$out
export -f library_of

for set in $sets; do
    wanted=$(library_of "$set")
    loaded=$(LD_LIBRARY_PATH=$wanted ldd "$out/$set/bin/test_pair_tcp" | awk '/libzmq.so.5/ {print $3}')
    [[ $loaded == "$wanted/libzmq.so.5" ]] || { echo "upstream: the loader would take $loaded, not $wanted" >&2; exit 1; }
done

# A namespace each, where the kernel lets us; without it, fixed ports allow only one program at a time.
enter=()
if unshare -n true 2>/dev/null; then enter=(unshare -n)
elif unshare -rn true 2>/dev/null; then enter=(unshare -rn)
else jobs=1; fi
if [[ ${#enter[@]} -gt 0 ]]; then "$root/scripts/need.sh" ip:iproute2 >&2; fi
export ENTER="${enter[*]}"

# One program: `program NAME` prints its output; the exit code is the program's (124, 137: time limit).
program() {
    local name=${1#draft/} set=stable dir
    [[ $1 == "$name" ]] || set=draft
    dir=$(mktemp -d "$WORK/run.XXXXXX")
    cd "$dir"
    ulimit -c 0
    local command="export LD_LIBRARY_PATH=$(library_of "$set"); exec '$OUT/$set/bin/$name'"
    if [[ -n $ENTER ]]; then
        # Multicast needs an interface that is not the loopback, with a route and somebody at its other end.
        local multicast='ip link add eth0 type veth peer name eth1; ip addr add 198.51.100.1/24 dev eth0
            ip link set eth0 up; ip link set eth1 up; ip route add 224.0.0.0/4 dev eth0'
        [[ $name == test_radio_dish ]] || multicast=:
        timeout -k 2 "$LIMIT" $ENTER bash -c "ip link set lo up; $multicast; $command" 2>&1
    else
        timeout -k 2 "$LIMIT" bash -c "$command" 2>&1
    fi
}

# Runs one program and writes its row: name, status, seconds, last assertion.
row() {
    local name=$1 log=$WORK/${1/\//.}.log start=$EPOCHREALTIME code=0 status=pass why='' seconds
    program "$name" >"$log" || code=$?
    seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}')
    case $code in
        0) status=pass; all_ignored "$log" && status=skip ;;
        77) status=skip ;;
        124) status=timeout ;;
        137) status=fail; awk -v s="$seconds" -v l="$LIMIT" 'BEGIN {exit !(s >= l)}' && status=timeout ;;
        *) status=fail ;;
    esac
    if [[ $status != pass ]]; then
        why=$(grep -aE ':FAIL|Assertion|panicked|symbol lookup|terminate called|skipping' "$log" | tail -1 || true)
        [[ -n $why ]] || why=$(grep -av '^-*$' "$log" | tail -1 || true)
        [[ $code -gt 128 && $status == fail ]] && why="signal $((code - 128)); $why"
        [[ -n $why || $name != *_fuzzer ]] || why='no fuzzing corpus'
        why=$(sed -E 's#/[^ ]*/(tests|src)/##g; s/\t/ /g' <<<"$why" | cut -c1-160)
    fi
    printf '%s\t%s\t%s\t%s\n' "$name" "$status" "$seconds" "$why" >"$WORK/${name/\//.}.row"
    echo "$status $name $seconds s $why" >&2
    [[ $status != fail && $status != timeout ]] || echo "again: tests/upstream/run.sh '$GIVEN' $name" >&2
}

all_ignored() {
    awk '/ Tests .* Failures .* Ignored/ {t += $1; i += $5} END {exit !(t > 0 && t == i)}' "$1"
}
export WORK=$work
export -f program row all_ignored

programs() { # prints the names of all programs
    for set in $sets; do
        if [[ $set == stable ]]; then ls "$out/stable/bin"; else (cd "$out" && ls -d draft/bin/* | sed 's#/bin/#/#'); fi
    done
}
names=$(programs)
if [[ $# -eq 1 ]]; then
    for name in "$1" "draft/$1"; do
        grep -qxF "$name" <<<"$names" || continue
        code=0
        program "$name" || code=$?
        echo "upstream: $name on $(readlink -f "$loaded"): exit code $code"
        exit "$code"
    done
fi
if [[ $# -gt 0 ]]; then
    names=$(for name in $names; do
        for pattern in "$@"; do
            # shellcheck disable=SC2053 # a pattern
            if [[ $name == $pattern ]]; then echo "$name"; break; fi
        done
    done)
fi

echo "upstream: $(wc -w <<<"$names") programs on $(readlink -f "$loaded"), $jobs at a time, $LIMIT s each"
xargs -P "$jobs" -I{} bash -c 'row {}' <<<"$names"

# A machine under load makes a few fail by chance: test_security_zap attaches its client's monitor after zmq_connect, when what it
# waits for may be over. When there are many, another try tells nothing.
failures=$(awk -F'\t' '$2 == "fail" || $2 == "timeout" {print $1}' "$work"/*.row |
    grep -vxFf <(grep -hv '^#' "${expected[@]}" | cut -f1) || true)
if [[ $(wc -w <<<"$failures") -le ${RETRY:-5} ]]; then
    for name in $failures; do
        file=$work/${name/\//.}.row
        first=$(cut -f4 "$file")
        for _ in 1 2 3; do
            row "$name"
            if [[ $(cut -f2 "$file") == pass ]]; then break; fi
        done
        if [[ $(cut -f2 "$file") == pass ]]; then
            sed -i -E "s#\tpass\t([^\t]*)\t.*#\tflaky\t\1\t#" "$file"
            printf '%s\n' "$(cat "$file")$first" >"$file"
        fi
    done
fi

sort "$work"/*.row >"$work/results.tsv"
[[ $# -gt 0 ]] || cp "$work/results.tsv" "$results"
rm -rf "$out/log" && mkdir -p "$out/log" && cp "$work"/*.log "$out/log/"
awk -F'\t' '{printf "%-8s %6.1f s  %-36s %s\n", $2, $3, $1, $4}' "$work/results.tsv"

# The verdict: known failures do not count as failed, but are named.
awk -F'\t' -v results="$work/results.tsv" '
    FILENAME != results { if ($0 !~ /^#/ && NF) known[$1] = 1; next }
    $2 == "skip" { skipped++; next }
    $2 == "pass" || $2 == "flaky" { passed++; if ($1 in known) fixed = fixed " " $1; if ($2 == "flaky") flaky = flaky " " $1; next }
    $1 in known { expected = expected " " $1; k++; next }
    { failed++; new = new " " $1 }
    END {
        if (flaky) print "flaky:" flaky
        if (expected) print "known failures:" expected
        if (fixed) print "listed in expected.tsv, but pass:" fixed
        if (new) print "failed:" new
        printf "upstream: %d passed, %d failed, %d skipped, %d known failures\n", passed, failed, skipped, k
        exit failed > 0
    }' "${expected[@]}" "$work/results.tsv"
