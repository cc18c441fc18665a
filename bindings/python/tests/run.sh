#!/usr/bin/env bash
# Builds the native Python module and runs its tests.
#
#   bindings/python/tests/run.sh [NAME...]   all tests, or these: `test_misuse`, `test_misuse.ForkTest`
#
# `test_native_*` are the tests of the native API; the others use the module under pyzmq.
#
# Needs Python 3.11 or later (PYTHON, by default python3). pyzmq comes from the Python Package Index, or from PYZMQ, a folder that
# contains `zmq`. MODULE names a module that is built already. Ends with `python: N passed, N failed, N skipped`.
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
[[ -n ${MODULE:-} ]] || MODULE=$("$root/tests/lib/build.sh" module)/lib_native.so
work=$(mktemp -d "${TMPDIR:-/tmp}/python.XXXXXX")
trap 'rm -rf "$work"' EXIT
if [[ -z ${PYZMQ:-} ]]; then
    PYZMQ=$target/python/pyzmq-$pyzmq-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    [[ -d $PYZMQ/zmq ]] || "$python" -m pip --disable-pip-version-check install --quiet \
        --root-user-action=ignore --no-deps --only-binary :all: --target "$PYZMQ" "pyzmq==$pyzmq" || give_up "pyzmq could not be fetched"
fi
# Without the Python Package Index, or for a Python without a wheel of it, the tests of pyzmq 25 are skipped.
PYZMQ_25=$target/python/pyzmq-25.1.2-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [[ ! -d $PYZMQ_25 ]]; then
    "$python" -m pip --disable-pip-version-check install --quiet --root-user-action=ignore --no-deps --only-binary :all: \
        --target "$PYZMQ_25.part" pyzmq==25.1.2 && mv "$PYZMQ_25.part" "$PYZMQ_25" || rm -rf "$PYZMQ_25.part"
fi
[[ -d $PYZMQ_25 ]] || PYZMQ_25=
export PYZMQ_25
# Some tests of the native API use these. Without the Python Package Index, they are skipped.
extras=$target/python/extras-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if [[ ! -d $extras ]]; then
    "$python" -m pip --disable-pip-version-check install --quiet --only-binary :all: --target "$extras.part" \
        anyio==4.11.0 trio==0.32.0 uvloop==0.22.1 numpy==2.3.5 && mv "$extras.part" "$extras" || rm -rf "$extras.part"
fi
cp -r "$root/packaging/python/tautline_zmq" "$work/"
rm -f "$work/tautline_zmq/_native".*
cp "$MODULE" "$work/tautline_zmq/_native.abi3.so"

cd "$root/bindings/python/tests"
code=0
PYTHONPATH=$work:$PYZMQ:$extras PYZMQ_BACKEND=tautline_zmq.backend PYTHONDONTWRITEBYTECODE=1 "$python" -m summary "$@" || code=$?
case $code in
    10) exit 0 ;; # PASSED of summary.py. A run that was cut off may end with 0.
    1) exit 1 ;;
    *) echo "the tests ended with exit code $code before their end"
       echo "python: 0 passed, 1 failed, 0 skipped"
       exit 1 ;;
esac
