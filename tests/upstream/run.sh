#!/usr/bin/env bash
# Runs libzmq 4.3.5's own behaviour tests on a libzmq.so.5.
#
#   tests/upstream/run.sh                        ours: builds and uses target/release/libzmq.so
#   tests/upstream/run.sh LIBDIR                 the library in LIBDIR (libzmq.so.5, or else libzmq.so)
#   tests/upstream/run.sh baseline               libzmq 4.3.5 itself, for reference
#   tests/upstream/run.sh LIBDIR test_name       one program, its output shown
#   tests/upstream/run.sh LIBDIR 'test_re*' ...  several programs, by shell pattern
#
# Each program runs in a network namespace of its own (fixed ports) and in an empty directory, with a time limit.
# Results go to target/upstream/results.tsv (program, status, seconds, last assertion). The exit code is 0 when every
# program that failed is listed, with its reason, in expected.tsv.
#
# VERBOSE=1 shows each result when it comes, too.
# JOBS=4 programs at a time, LIMIT=60 seconds each; RETRY=5: up to so many failures are run once more, each alone
# ("flaky" if it passes then).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=$root/target/upstream
build=$out/build
export LIMIT=${LIMIT:-60}
jobs=${JOBS:-4}

"$here/build.sh"

library_dir() { # prints the directory in which libzmq.so.5 is the wanted library
    case ${1:-} in
        baseline) echo "$build/lib"; return ;;
        '')
            (cd "$root" && cargo build --release --quiet -p tautline-libzmq) || return 1
            set -- "${CARGO_TARGET_DIR:-$root/target}/release" ;;
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
LIBDIR=$(library_dir "${1:-}")
export LIBDIR
shift || true

loaded=$(LD_LIBRARY_PATH=$LIBDIR ldd "$build/bin/test_pair_tcp" | awk '/libzmq.so.5/ {print $3}')
[[ $loaded == "$LIBDIR/libzmq.so.5" ]] || { echo "upstream: the loader would take $loaded, not $LIBDIR" >&2; exit 1; }

# A namespace each, where the kernel lets us; without it, fixed ports allow only one program at a time.
enter=()
if unshare -n true 2>/dev/null; then enter=(unshare -n)
elif unshare -rn true 2>/dev/null; then enter=(unshare -rn)
else jobs=1; fi
if [[ ${#enter[@]} -gt 0 ]]; then "$root/scripts/need.sh" ip:iproute2 >&2; fi
export ENTER="${enter[*]}"

# One program: `program NAME` prints its output; the exit code is the program's (124, 137: time limit).
program() {
    local name=$1 dir
    dir=$(mktemp -d "$WORK/run.XXXXXX")
    cd "$dir"
    ulimit -c 0
    local command="export LD_LIBRARY_PATH=$LIBDIR; exec '$BUILD/bin/$name'"
    if [[ -n $ENTER && $name != test_radio_dish ]]; then # that one needs a multicast route
        timeout -k 2 "$LIMIT" $ENTER bash -c "ip link set lo up; $command" 2>&1
    else
        timeout -k 2 "$LIMIT" bash -c "$command" 2>&1
    fi
}

# Runs one program and writes its row: name, status, seconds, last assertion.
row() {
    local name=$1 log=$WORK/$1.log start=$EPOCHREALTIME code=0 status=pass why='' seconds
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
    printf '%s\t%s\t%s\t%s\n' "$name" "$status" "$seconds" "$why" >"$WORK/$name.row"
    [[ -z ${VERBOSE:-} ]] || echo "$status $name $seconds s $why" >&2
}

all_ignored() {
    awk '/ Tests .* Failures .* Ignored/ {t += $1; i += $5} END {exit !(t > 0 && t == i)}' "$1"
}
export WORK=$work BUILD=$build
export -f program row all_ignored

names=$(cd "$build/bin" && ls)
if [[ $# -gt 0 ]]; then
    if [[ $# -eq 1 && -x $build/bin/$1 ]]; then
        code=0
        program "$1" || code=$?
        echo "upstream: $1 on $(readlink -f "$loaded"): exit code $code"
        exit "$code"
    fi
    names=$(cd "$build/bin" && for pattern in "$@"; do compgen -G "$pattern"; done | sort -u)
fi

echo "upstream: $(wc -w <<<"$names") programs on $(readlink -f "$loaded"), $jobs at a time, $LIMIT s each"
xargs -P "$jobs" -I{} bash -c 'row {}' <<<"$names"

# A machine under load makes a few fail by chance; when there are many, a second try tells nothing.
failures=$(awk -F'\t' '$2 == "fail" || $2 == "timeout" {print $1}' "$work"/*.row |
    grep -vxFf <(grep -v '^#' "$here/expected.tsv" | cut -f1) || true)
if [[ $(wc -w <<<"$failures") -le ${RETRY:-5} ]]; then
    for name in $failures; do
        first=$(cut -f4 "$work/$name.row")
        row "$name"
        if [[ $(cut -f2 "$work/$name.row") == pass ]]; then
            sed -i -E "s#\tpass\t([^\t]*)\t.*#\tflaky\t\1\t#" "$work/$name.row"
            printf '%s\n' "$(cat "$work/$name.row")$first" >"$work/$name.row"
        fi
    done
fi

sort "$work"/*.row >"$work/results.tsv"
[[ $# -gt 0 ]] || cp "$work/results.tsv" "$out/results.tsv"
rm -rf "$out/log" && mkdir -p "$out/log" && cp "$work"/*.log "$out/log/"
awk -F'\t' '{printf "%-8s %6.1f s  %-36s %s\n", $2, $3, $1, $4}' "$work/results.tsv"

# The verdict: known failures do not count as failed, but are named.
awk -F'\t' '
    NR == FNR { if ($0 !~ /^#/ && NF) known[$1] = 1; next }
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
    }' "$here/expected.tsv" "$work/results.tsv"
