# Helpers that the scripts of this folder share. Each script begins with
#
#   . "$(dirname "$0")/common.sh"
#   start NAME "$@"
#
# `start` takes the script's own argument: a prefix with an installed libzmq, or `baseline` for libzmq 4.3.5. Without an
# argument it builds our library and installs it under target/programs. It sets
#
#   prefix   the installation; `library` is its libzmq.so.5, resolved
#   cache    the pinned downloads from registries, which stay there; `fetch` fills it
#   work     an empty directory, removed at the end
#
# and LD_LIBRARY_PATH to the installation. A script counts with `check` or `count`, checks the loaded library with
# `witnessed`, and ends with `finish`, which prints `NAME: N passed, N failed, N skipped`.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
cache=$target/programs/cache
passed=0 failed=0 skipped=0
processes=()

start() {
    name=$1
    # The script runs itself again under `timeout`, so that the time limit covers all its processes.
    if [[ ${LIMITED:-} != "$name" ]]; then
        LIMITED=$name exec timeout -k 10 "${LIMIT:-2000}" "$0" "${@:2}"
    fi
    mkdir -p "$cache"
    work=$(mktemp -d "${TMPDIR:-/tmp}/$name.XXXXXX")
    trap clean_up EXIT
    trap 'echo "$name: stopped (a time limit of ${LIMIT:-2000} s, or by hand)"; exit 1' TERM INT
    case ${2:-} in
        baseline)
            "$root/scripts/libzmq-baseline.sh" >&2
            prefix=$target/baseline/libzmq ;;
        '')
            prefix=$target/programs/prefix
            install_library >"$work/install.log" 2>&1 || { cat "$work/install.log"; exit 1; } ;;
        *) prefix=$(cd "$2" && pwd) ;;
    esac
    library=$(readlink -f "$prefix/lib/libzmq.so.5")
    mkdir "$work/loader"
    witnessing=(LD_DEBUG=libs LD_DEBUG_OUTPUT="$work/loader/process")
    export LD_LIBRARY_PATH=$prefix/lib
    echo "$name: with $library"
}

# install_library: installs the library that the suites share into $prefix. Two suites may do so at the same time.
install_library() {
    mkdir -p "${prefix%/*}"
    LIBRARIES=$("$root/tests/lib/build.sh" library) PREFIX=$prefix flock "$prefix.lock" "$root/packaging/install.sh" install
}

clean_up() {
    [[ ${#processes[@]} -eq 0 ]] || kill -KILL "${processes[@]}" 2>/dev/null || true
    wait 2>/dev/null
    rm -rf "$work"
}

# fetch KEY COMMAND...: runs the command in the empty folder $cache/KEY, once. KEY names the pinned version. If the command
# fails, for example without the registry, the script prints the reason, counts itself as skipped and ends.
fetch() {
    local folder=$cache/$1
    shift
    exec 8>"$folder.lock"
    flock 8
    if [[ ! -e $folder/.complete ]]; then
        rm -rf "$folder"
        mkdir -p "$folder"
        if ! (cd "$folder" && "$@") >"$folder.log" 2>&1; then
            tail -n 15 "$folder.log"
            give_up "${folder##*/} could not be fetched"
        fi
        touch "$folder/.complete"
    fi
    flock -u 8
}

# unpack_debs PACKAGE...: downloads and unpacks Debian packages, for `fetch`. It does not install them, because several of
# them put their own libzmq into the loader's default path.
unpack_debs() {
    local deb
    apt-get download "$@" || { apt-get update && apt-get download "$@"; } || return 1
    for deb in *.deb; do dpkg -x "$deb" . || return 1; done
}

# php_packages: prints the packages of the system's PHP, whose names have its version, and of the libraries that PHP needs.
php_packages() {
    local version package
    apt-cache show php-cli >/dev/null 2>&1 || apt-get update >/dev/null
    version=$(apt-cache depends php-cli | sed -n 's/.*Depends: \(php[0-9.]*\)-cli$/\1/p' | head -n 1)
    for package in "$version"-{cli,zmq,common} libedit2 libbsd0 libmd0 libargon2-1 libsodium23 libmagic1 libmagic1t64; do
        ! apt-cache show "$package" >/dev/null 2>&1 || echo "$package"
    done
}

# need TOOL:PACKAGE ...: runs scripts/need.sh, and skips the program if a tool stays missing.
need() {
    "$root/scripts/need.sh" "$@" >&2 || give_up "needs $*"
}

give_up() {
    echo "skipped $name: $1"
    skipped=$((skipped + 1))
    finish
}

# check NAME COMMAND...: runs the command and counts it as passed or failed. Prints its output if it fails.
check() {
    local what=$1
    shift
    if "$@" >"$work/check.log" 2>&1; then
        count 1 0 0
    else
        count 0 1 0
        echo "FAILED $what"
        tail -n 40 "$work/check.log"
    fi
}

count() {
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

# witness COMMAND...: runs the command. The loader logs the libraries that each process loads, for `witnessed`.
witness() {
    env "${witnessing[@]}" "$@"
}

# alone COMMAND...: as `witness`, for a program with fixed ports. The program runs in a new network namespace, in which all ports
# are free. If no namespace can be made, the programs with fixed ports run one after the other.
alone() {
    local enter=()
    if unshare -n true 2>/dev/null; then enter=(unshare -n); elif unshare -rn true 2>/dev/null; then enter=(unshare -rn); fi
    if [[ ${#enter[@]} -gt 0 ]] && command -v ip >/dev/null; then
        witness "${enter[@]}" sh -c 'ip link set lo up && exec "$@"' sh "$@"
    else
        witness flock "$cache/fixed-ports" "$@"
    fi
}

# witnessed [PID]: true if process PID loaded the libzmq under test, and no other libzmq. Without PID, checks all processes together.
witnessed() {
    local loaded
    loaded=$(cat "$work"/loader/process.${1:-*} | sed -n 's/.*calling init: \(.*\/libzmq[^/]*\)$/\1/p' | sort -u | xargs -r -d '\n' realpath | sort -u)
    [[ $loaded == "$library" ]] || { echo "the loader took: ${loaded:-no libzmq}; wanted: $library"; return 1; }
}

# pytest_counts LOG: adds the numbers of pytest's closing line to the counters.
pytest_counts() {
    local line
    line=$(grep -E '^=* ?[0-9].* in [0-9.]+s' "$1" | tail -n 1)
    number() { grep -oE "[0-9]+ $1" <<<"$line" | cut -d' ' -f1 || true; }
    local p f e s
    p=$(number passed) f=$(number failed) e=$(number error) s=$(number skipped)
    count "${p:-0}" $((${f:-0} + ${e:-0})) "${s:-0}"
    # Prints a line for each skipped test.
    sed -nE 's/^SKIPPED \[([0-9]+)\] /\1 /p' "$1" | awk '{ n = $1; sub(/^[0-9]+ /, ""); while (n-- > 0) print "skipped " $0 }'
}

finish() {
    if [[ $((passed + failed + skipped)) -eq 0 ]]; then failed=1; fi
    echo "$name: $passed passed, $failed failed, $skipped skipped"
    [[ $failed -eq 0 ]]
    exit
}
