#!/usr/bin/env bash
# Builds the programs of languages: bench/languages/build.sh OUT LIBZMQ NAME...
#
# LIBZMQ is the prefix of the libzmq 4.3.5 to link and compile against. Each NAME is a folder here with a `language.toml` and
# a `build.sh`, which gets these variables:
#
#   ROOT     this repository
#   LIBZMQ   as above
#   CACHE    a separate folder for downloads from registries and for build output
#   OUT      output folder: the executables local_lat, remote_lat, local_thr and remote_thr, and versions.txt with lines
#            `name: version`. Each executable must become the measured process itself (`exec`).
#
# If a language cannot be built, the reason goes to OUT/NAME/failed. The language is skipped, and the report says so.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
ROOT=$(cd "$here/../.." && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
LIBZMQ=$(cd "$2" && pwd)
export ROOT LIBZMQ
for name in "${@:3}"; do
    echo "languages: building $name"
    rm -rf "${out:?}/$name"
    mkdir -p "$out/$name" "$out/cache/$name"
    if ! OUT=$out/$name CACHE=$out/cache/$name "$here/$name/build.sh" >"$out/$name/build.log" 2>&1; then
        tail -n 3 "$out/$name/build.log" | tr '\n' ' ' | cut -c1-300 >"$out/$name/failed"
        echo "languages: skipping $name: $(cat "$out/$name/failed")"
    fi
done
