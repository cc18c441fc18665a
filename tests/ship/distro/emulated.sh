#!/usr/bin/env bash
# Runs a command for which programs for 64-bit ARM start under qemu-user: tests/ship/distro/emulated.sh COMMAND...
#
# The command runs in a user namespace with the same users as outside. Since Linux 6.7, a user namespace has its own table of
# interpreters (binfmt_misc), so that the rest of the machine stays unchanged. Needs root.
set -euo pipefail

if [[ ${1:-} == --inside ]]; then
    read -r _ <"$2" # waits until the users are mapped
    mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
    # Flag F: the kernel opens the emulator now, so that a later root folder need not contain it.
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
