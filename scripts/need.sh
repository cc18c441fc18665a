#!/usr/bin/env bash
# Makes sure that tools are there: scripts/need.sh WHAT:DEBIAN-PACKAGE ...
#
# WHAT is one of
#   NAME           a command on the PATH
#   lib=NAME       a pkg-config module
#   py=NAME        a module of python3
#   file=PATH      a file
#
# What is missing is installed with apt-get when run as root (and said); otherwise the command to run is
# printed and the exit code is 1.
set -euo pipefail

present() {
    case $1 in
        lib=*) command -v pkg-config >/dev/null && pkg-config --exists "${1#lib=}" ;;
        py=*) command -v python3 >/dev/null && python3 -c "import ${1#py=}" 2>/dev/null ;;
        file=*) [[ -e ${1#file=} ]] ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

packages=() missing=()
for want in "$@"; do
    what=${want%:*} package=${want##*:}
    present "$what" && continue
    missing+=("$what")
    packages+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

echo "need: missing ${missing[*]}" >&2
if [[ $(id -u) -ne 0 ]] || ! command -v apt-get >/dev/null; then
    echo "need: please install first, for example: sudo apt-get install -y ${packages[*]}" >&2
    exit 1
fi
echo "need: installing ${packages[*]} (apt-get)" >&2
export DEBIAN_FRONTEND=noninteractive
install=(apt-get install -y --no-install-recommends "${packages[@]}")
# Several scripts may ask at once: wait for the package manager's lock.
lock=(-o DPkg::Lock::Timeout=300)
# Not from the terminal, which stops it for good where it is in the background.
if ! "${install[@]}" "${lock[@]}" </dev/null >/dev/null 2>&1; then
    apt-get update "${lock[@]}" </dev/null >/dev/null
    "${install[@]}" "${lock[@]}" </dev/null >/dev/null
fi
for what in "${missing[@]}"; do
    present "$what" && continue
    # A fresh python package may land in another python3 than the one on the PATH: say so, do not loop.
    echo "need: $what is still missing after installing ${packages[*]}" >&2
    exit 1
done
