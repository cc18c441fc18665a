#!/usr/bin/env bash
# Builds the peers that are crates or have a build script: bench/peers/build.sh OUT_DIR NAME...
#
# NAME is a peer file. Its `build` names a folder here, which has a build.sh, or is a crate with its own
# workspace and Cargo.lock, and optional features. The script gets OUT_DIR and the name of the file's `program`,
# and LIBRARY, the libzmq.so under test. The result goes to OUT_DIR under the name of the program, or as
# OUT_DIR/LIBRARY/libzmq.so.5. If a build fails, its reason goes to PROGRAM.failed (LIBRARY.failed) there, and
# the report shows it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$1
shift
mkdir -p "$out"
out=$(cd "$out" && pwd)

# value FILE KEY: prints a string of a peer file.
value() { sed -n "s/^$2 *= *\"\(.*\)\"/\1/p" "$1"; }

place=$out/build # shared by all crates, because they have most dependencies in common

# crate FOLDER FEATURES: builds a crate.
crate() {
    local options=(--release --locked --target-dir "$place")
    [[ -z $2 ]] || options+=(--no-default-features --features "$2")
    (cd "$1" && cargo build "${options[@]}")
}

for name in "$@"; do
    file=$here/$name.toml
    folder=$(value "$file" build)
    [[ -n $folder ]] || continue
    features=$(value "$file" features)
    program=$(value "$file" program)
    library=$(value "$file" library)
    # This one is the library under test, which exists.
    [[ $library != ours ]] || library=
    built=${library:-$program}
    rm -f "$out/$built.failed"
    echo "peers: building $name"
    build=("$here/$folder/build.sh" "$out" "$program")
    if [[ ! -e ${build[0]} ]]; then build=(crate "$here/$folder" "$features"); fi
    if ! "${build[@]}" >"$out/$built.log" 2>&1; then
        echo "it could not be built: $(grep -m1 -iE '^error' "$out/$built.log" || echo "see $out/$built.log")" >"$out/$built.failed"
        cat "$out/$built.failed"
    elif [[ -n $library ]]; then
        mkdir -p "$out/$library"
        cp "$place/release/libzmq.so" "$out/$library/libzmq.so.5"
    elif [[ ${build[0]} == crate ]]; then
        cp "$place/release/bench-$folder" "$out/$program"
    fi
done
