#!/usr/bin/env bash
# Runs a command where programs for 64-bit ARM are started under qemu-user: tests/ship/distro/emulated.sh COMMAND...
#
# That is within a user namespace, in which the same users are as outside. Its table of interpreters (binfmt_misc) is its own since
# Linux 6.7, so that nothing changes for the rest of the machine. Takes root.
set -euo pipefail

if [[ ${1:-} == --inside ]]; then
    read -r _ <"$2" # until the users are there
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
    # F: the emulator is opened now, and needs not be in the folder that is the root later.
    line=$(</usr/lib/binfmt.d/qemu-aarch64.conf)
    echo "${line%:*}:OPF" >/proc/sys/fs/binfmt_misc/register
    shift 2
    exec "$@"
fi

root=$(cd "$(dirname "$0")/../../.." && pwd)
"$root/scripts/need.sh" qemu-aarch64-static:qemu-user-static unshare:util-linux >&2
work=$(mktemp -d "${TMPDIR:-/tmp}/emulated.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkfifo "$work/ready"
outside=$(readlink /proc/self/ns/user)
unshare --user --mount bash "$0" --inside "$work/ready" "$@" &
until [[ $(readlink "/proc/$!/ns/user") != "$outside" ]]; do kill -0 "$!"; done
for map in uid_map gid_map; do echo "0 0 65536" >"/proc/$!/$map"; done
echo >"$work/ready"
wait "$!"
