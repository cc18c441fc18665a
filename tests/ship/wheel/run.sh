#!/usr/bin/env bash
# Builds the wheel tautline-zmq without the native module for this machine, checks its contents, and uses it in empty virtual
# environments with PyPI's pyzmq. With CPython 3.11 or later, also builds a wheel with the module, for the tests of class Native.
#
#   tests/ship/wheel/run.sh                     all
#   tests/ship/wheel/run.sh Switch Broken...    classes or tests of tests.py by name
#   WHEEL=FILE tests/ship/wheel/run.sh          with an existing wheel, for example from a release
#   NATIVE=FILE tests/ship/wheel/run.sh         with an existing wheel for class Native; NATIVE= skips these tests
#
# tests/world/programs/wheel.sh runs pyzmq's own test suite on the wheel. Downloads from PyPI and Debian are kept
# in target/wheels/cache. Ends with `wheel: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
library=$(tests/lib/build.sh library)/libzmq.so
built=$(TAGS=py3-none LIBRARY=$library packaging/python/build.sh)
if [[ -z ${NATIVE+set}${WHEEL:-} ]] && python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    NATIVE=$(TAGS=cp311-abi3 LIBRARY=$library MODULE=$(tests/lib/build.sh module)/lib_native.so packaging/python/build.sh)
fi
wheels=$(dirname "$built") WHEEL=$(realpath "${WHEEL:-$built}")
TOOLS=$(echo "$wheels"/tools/*/bin)
export WHEEL NATIVE=${NATIVE:-} TOOLS ROOT=$root CACHE=$wheels/cache PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
unset "${!TAUTLINE_@}" "${!TAUT_@}" "${!PYTHON@}" LD_PRELOAD LD_LIBRARY_PATH
mkdir -p "$CACHE"

# have FOLDER COMMAND...: the command fills the empty folder once. If it fails, there is no folder, and the tests that need it are skipped.
have() {
    local folder=$CACHE/$1
    shift
    [[ ! -e $folder ]] || return 0
    rm -rf "$folder.part"
    mkdir "$folder.part"
    if (cd "$folder.part" && "$@") >"$folder.log" 2>&1; then
        mv "$folder.part" "$folder"
    else
        echo "wheel: ${folder##*/} could not be fetched: $(tail -n 1 "$folder.log")"
    fi
}
pyzmq() { "$TOOLS/pip" download --quiet --no-deps --only-binary :all: "pyzmq==$1"; }
# Unpacks Debian's packages. An installation would put a libzmq into the loader's default path.
debian() {
    local deb packages=(python3-zmq libzmq5 libsodium23 libpgm-5.3-0 libnorm1)
    apt-get download "${packages[@]}" || { apt-get update && apt-get download "${packages[@]}"; } || return 1
    for deb in *.deb; do dpkg -x "$deb" . || return 1; done
}
have pyzmq-27.1.0 pyzmq 27.1.0
# The last version that has many extension modules.
have pyzmq-25.1.2 pyzmq 25.1.2
have debian debian
"$TOOLS/python" "$here/tests.py" "$@"
