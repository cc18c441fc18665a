# shellcheck shell=bash
# Functions for the suites that run `taut` with Python and Node.js programs: `. tests/lib/tools.sh`. The caller has set $root and $target.

# begin_on_linux SUITE TOOL...: installs missing tools (scripts/need.sh), sets $venv, and exports $TAUT. On systems other than Linux it
# ends the suite.
begin_on_linux() {
    local suite=$1
    shift
    if [[ $(uname) != Linux ]]; then
        echo "skipped all: $suite needs Linux"
        echo "$suite: 0 passed, 0 failed, 1 skipped"
        exit
    fi
    "$root/scripts/need.sh" cargo:cargo "$@"
    . "$root/tests/lib/venv.sh"
    TAUT=$("$root/tests/lib/build.sh" programs)/taut
    export TAUT
}

# use_library [FILE]: exports $LIBRARY. It is FILE, or by default the library under test.
use_library() {
    local file=${1:-}
    [[ -n $file ]] || file=$("$root/tests/lib/build.sh" library)/libzmq.so
    LIBRARY=$(realpath "$file")
    export LIBRARY
}

# use_node_zeromq: downloads the npm package zeromq once, and exports $NODE_PATH for Node.js to find it.
use_node_zeromq() {
    local node=$target/programs/cache/node-zeromq-6.8.0
    mkdir -p "$node"
    (
        # Several suites may call this at once.
        flock 9
        [[ ! -e $node/.complete ]] || exit 0
        cd "$node" || exit
        npm install --silent --ignore-scripts --no-save --prefix . zeromq@6.8.0 >&2
        touch .complete
    ) 9>"$node.lock"
    export NODE_PATH=$node/node_modules
}
