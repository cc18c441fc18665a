#!/usr/bin/env bash
# Makes a Debian, or an Ubuntu (bionic, which has glibc 2.27), to install packages into, with a C compiler, the development files of libzmq and a program that uses libzmq5, and prints
# its folder: tests/systems/root.sh SUITE. It is kept in target/systems/roots; a second call only prints.
set -euo pipefail

suite=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
roots=$(realpath -m "${CARGO_TARGET_DIR:-target}/systems/roots")
mkdir -p "$roots"
exec 9>"$roots/$suite.lock"
flock 9
if [[ ! -e $roots/$suite.complete ]]; then
    scripts/need.sh mmdebstrap:mmdebstrap >&2
    rm -rf "${roots:?}/$suite" # what an earlier call did not finish
    sources=()
    if [[ $suite == bionic ]]; then
        # Debian has no keys of Ubuntu's archive: they are known by their hash.
        keys=ubuntu-keyring_2018.02.28_all.deb mirror=http://archive.ubuntu.com/ubuntu
        curl -fsS -o "$roots/$keys" "$mirror/pool/main/u/ubuntu-keyring/$keys" >&2
        sha256sum --quiet --check <<<"c0763889cec4196839354d99b71f3c369dfa51ff17f59cabea87d1c7d55fe5e0  $roots/$keys" >&2
        dpkg-deb -x "$roots/$keys" "$roots/ubuntu-keyring"
        sources=("deb [signed-by=$roots/ubuntu-keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg] $mirror bionic main universe")
    fi
    # Suites that are not released yet may lie in a mirror that is behind: their date is not checked, their signature is.
    mmdebstrap --quiet --mode=root --variant=apt --include=gcc,libc6-dev,pkg-config,libzmq3-dev,python3-zmq \
        --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*/*' \
        --dpkgopt='path-include=/usr/share/doc/tautline*/*' "$suite" "$roots/$suite" "${sources[@]}" >&2 9>&-
    touch "$roots/$suite.complete"
fi
echo "$roots/$suite"
