#!/usr/bin/env bash
# Runs libzmq 4.3.5's own behaviour tests on a libzmq.so.5.
#
#   tests/wire/upstream/run.sh                        the library that the suites share
#   tests/wire/upstream/run.sh LIBDIR                 the library in LIBDIR (libzmq.so.5, or else libzmq.so)
#   tests/wire/upstream/run.sh baseline               libzmq 4.3.5 itself, for reference
#   tests/wire/upstream/run.sh LIBDIR test_name       one program, its output shown
#   tests/wire/upstream/run.sh LIBDIR 'test_re*' ...  several programs, by shell pattern
#
# There are two sets of programs. The set stable is built without libzmq's draft interface, the set draft with it. Names of the
# second set begin with draft/. SETS=stable or SETS=draft runs one set.
#
# Each program runs in its own network namespace (for fixed ports) and in an empty directory, with a time limit.
# Results go to target/upstream/results.tsv (program, status, seconds, last assertion). The exit code is 0 if expected.tsv
# lists each failed program with its reason.
#
# EXPECTED="file..." replaces that list (paths from the root), and RESULTS=file the file for the results.
# JOBS=4 sets the number of parallel programs, LIMIT=300 the seconds for each. If at most RETRY=5 programs fail, each of them
# runs alone up to three more times. It counts as "flaky" if it passes then.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$target/upstream
sets=${SETS:-stable draft}
results=${RESULTS:-$out/results.tsv}
expected=()
for file in ${EXPECTED:-tests/wire/upstream/expected.tsv}; do expected+=("$root/$file"); done
logs=$out/log
export LIMIT=${LIMIT:-300}
jobs=${JOBS:-4}
. "$here/rows.sh"

# shellcheck disable=SC2086 # a list of words
"$here/build.sh" $sets

library_dir() { # prints the directory that has the wanted library as libzmq.so.5
    case ${1:-} in
        '') set -- "$("$root/tests/lib/build.sh" library)" || return 1 ;;
    esac
    local dir
    dir=$(cd "$1" && pwd) || return 1
    if [[ ! -e $dir/libzmq.so.5 ]]; then
        [[ -e $dir/libzmq.so ]] || { echo "upstream: no libzmq.so.5 in $dir" >&2; return 1; }
        ln -sf "$dir/libzmq.so" "$WORK/libzmq.so.5"
        dir=$WORK
    fi
    echo "$dir"
}

WORK=$(mktemp -d "${TMPDIR:-/tmp}/upstream.XXXXXX")
trap 'rm -rf "$WORK"' EXIT
BASELINE='' LIBDIR='' SCRIPT=tests/wire/upstream/run.sh GIVEN=${1:-}
if [[ ${1:-} == baseline ]]; then BASELINE=yes; else LIBDIR=$(library_dir "${1:-}"); fi
export BASELINE LIBDIR WORK SCRIPT GIVEN
shift || true

# library_of SET: prints the directory of the library for the programs of a set.
library_of() {
    if [[ -n $BASELINE ]]; then echo "$OUT/$1/lib"; else echo "$LIBDIR"; fi
}
export OUT=$out
export -f library_of

for set in $sets; do
    wanted=$(library_of "$set")
    loaded=$(LD_LIBRARY_PATH=$wanted ldd "$out/$set/bin/test_pair_tcp" |
        sed -n 's/.*libzmq\.so\.5 => \(.*\) (0x[0-9a-f]*)$/\1/p')
    [[ $loaded == "$wanted/libzmq.so.5" ]] || { echo "upstream: the loader would take $loaded, not $wanted" >&2; exit 1; }
done

namespaces

program() {
    local name=${1#draft/} set=stable
    [[ $1 == "$name" ]] || set=draft
    cd "$(mktemp -d "$WORK/run.XXXXXX")"
    ulimit -c 0
    within "$name" "export LD_LIBRARY_PATH='$(library_of "$set")'; exec '$OUT/$set/bin/$name'"
}
export -f program

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
[[ $# -eq 0 ]] || results=''
names=$(chosen "$names" "$@")

echo "upstream: $(wc -w <<<"$names") programs on $(readlink -f "$loaded"), $jobs at a time, $LIMIT s each"
run_all "$names"
