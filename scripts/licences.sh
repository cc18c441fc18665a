#!/usr/bin/env bash
# Makes packaging/THIRD-PARTY.txt, the licences of the crates that are linked into the library and must be shipped with it, and
# packaging/THIRD-PARTY-TAUT.txt, the same for `taut`.
#
#   scripts/licences.sh            prints them, from the sources that Cargo has fetched
#   scripts/licences.sh --write    writes them
#   scripts/licences.sh --check    fails if they do not name the crates of Cargo.lock; needs no sources
set -euo pipefail

cd "$(dirname "$0")/.."

# of library|taut: sets the variables for one of the two.
of() {
    case $1 in
        library)
            file=packaging/THIRD-PARTY.txt package=tautline-libzmq features=(--features "tls,names") target=x86_64-unknown-linux-gnu
            what='libzmq.so.5 and libzmq.a of Tautline' ;;
        taut)
            file=packaging/THIRD-PARTY-TAUT.txt package=tautline-cli features=(--features "bridge,tls") target=x86_64-unknown-linux-musl
            what='taut' ;;
    esac
}

# Prints NAME VERSION LICENCE of each crate that is linked in. Procedural macros and build scripts are left out.
crates() {
    cargo tree -q -p "$package" ${features[@]+"${features[@]}"} --locked -e normal,no-proc-macro --target "$target" --prefix none -f '{p} | {l}' |
        sed -n 's/ (\*)$//; s/^\([^ ]*\) v\([^ ]*\) | /\1 \2 /p' | sort -u
}

text() {
    echo "The crates that are linked into $what, beside Rust's standard library (MIT or Apache-2.0, the Rust"
    echo "Project's contributors), and their licences. Where there is a choice, it is MIT, or else Apache 2.0."
    local name version licence folder chosen
    while read -r name version licence; do
        for folder in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$name-$version"; do break; done
        for chosen in LICENSE-MIT LICENSE LICENSE.md LICENSE.txt LICENSE-APACHE; do
            [[ ! -e $folder/$chosen ]] || break
        done
        chosen=$folder/$chosen
        # The text of Apache 2.0 is the same everywhere. Other licences contain names.
        if [[ ! -e $chosen && $licence == Apache-2.0 ]]; then chosen=LICENSE-APACHE; fi
        [[ -e $chosen ]] || { echo "licences: $name $version has no licence text" >&2; return 1; }
        printf '\n%s\n%s %s: %s\n\n' "$(printf '=%.0s' {1..79})" "$name" "$version" "$licence"
        tr -d '\r' <"$chosen" | sed 's/[[:space:]]*$//'
    done < <(crates)
}

for each in library taut; do
    of "$each"
    case ${1:-} in
        '') text ;;
        --write) made=$(text) && printf '%s\n' "$made" >"$file" ;;
        --check)
            diff <(crates | awk '{ print $1, $2 }') <(sed -n 's/^\([^ ]* [0-9][^ ]*\): .*/\1/p' "$file") ||
                { echo "licences: $file does not match Cargo.lock; update it: scripts/licences.sh --write"; exit 1; } ;;
        *) echo "usage: scripts/licences.sh [--write|--check]" >&2; exit 2 ;;
    esac
done
