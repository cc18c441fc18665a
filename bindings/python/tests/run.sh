#!/usr/bin/env bash
# Builds the native Python module and runs its tests.
#
#   bindings/python/tests/run.sh [NAME...]   all tests, or these: `test_misuse`, `test_misuse.ForkTest`
#
# `test_native_*` are the tests of the native API; the others use the module under pyzmq.
#
# Needs Python 3.11 or later (PYTHON, by default python3). A Python without a global lock gets the module of its kind. The tests of
# packages that the Python Package Index does not have for this Python are skipped. pyzmq comes from the index, or from PYZMQ, a
# folder that contains `zmq`. MODULE names a module that is built already. Ends with `python: N passed, N failed, N skipped`.
set -euo pipefail

root=$(cd "$(dirname "$0")/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
python=${PYTHON:-python3}
pyzmq=27.1.0

give_up() {
    echo "skipped: $1"
    echo "python: 0 passed, 0 failed, 1 skipped"
    exit 0
}

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || give_up "$python is older than 3.11"
kind=$("$python" -c 'import sys, sysconfig
print("%d.%d" % sys.version_info[:2] + ("t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""))')
name=_native.abi3.so
if [[ $kind == *t ]]; then
    name=_native.so
    export PYO3_CONFIG_FILE=$root/bindings/python/interpreters/cp${kind//[.t]/}-cp${kind/./}
    [[ -e $PYO3_CONFIG_FILE ]] || give_up "there is no module for Python $kind"
fi
[[ -n ${MODULE:-} ]] || MODULE=$("$root/tests/lib/build.sh" module)/lib_native.so
work=$(mktemp -d "${TMPDIR:-/tmp}/python.XXXXXX")
trap 'rm -rf "$work"' EXIT

# packages NAME REQUIREMENT...: installs packages into a folder for this Python, and prints the folder. Fails without the index,
# or without wheels for this Python.
packages() {
    local place=$target/python/$1-$kind
    shift
    if [[ ! -d $place ]]; then
        rm -rf "$place.part"
        "$python" -m pip --disable-pip-version-check install --quiet --root-user-action=ignore --only-binary :all: \
            --target "$place.part" "$@" >&2 || return
        mv "$place.part" "$place"
    fi
    echo "$place"
}
[[ -n ${PYZMQ:-} ]] || PYZMQ=$(packages "pyzmq-$pyzmq" --no-deps "pyzmq==$pyzmq") || give_up "pyzmq could not be fetched"
PYZMQ_25=$(packages pyzmq-25.1.2 --no-deps pyzmq==25.1.2) || PYZMQ_25=
export PYZMQ_25
extras=
for set in "loops anyio==4.11.0 trio==0.32.0" "uvloop uvloop==0.22.1" "numpy numpy==2.3.5" "arrow pyarrow==26.0.1" "gevent gevent==26.9.0"; do
    # shellcheck disable=SC2086
    if place=$(packages $set); then extras+=:$place; fi
done
cp -r "$root/packaging/python/tautline_zmq" "$work/"
rm -f "$work/tautline_zmq/_native".*
cp "$MODULE" "$work/tautline_zmq/$name"

cd "$root/bindings/python/tests"
code=0
PYTHONPATH=$work:$PYZMQ$extras PYZMQ_BACKEND=tautline_zmq.backend PYTHONDONTWRITEBYTECODE=1 "$python" -m summary "$@" || code=$?
case $code in
    10) exit 0 ;; # PASSED of summary.py. A run that was cut off may end with 0.
    1) exit 1 ;;
    *) echo "the tests ended with exit code $code before their end"
       echo "python: 0 passed, 1 failed, 0 skipped"
       exit 1 ;;
esac
