#!/usr/bin/env bash
# Makes a container image, as an archive in OCI's layout, and prints its path:
#
#   [LIBRARIES=DIR] [OUT=DIR] [TAUT=FILE] packaging/systems/image.sh [VERSION]
#
# The image holds the library for glibc, its headers and its licences, in the folders of the Arch package. If TAUT names a static
# program, the image contains it as /usr/bin/taut and runs it. Without TAUT, the image has no program, and other images copy from it:
#
#   COPY --from=tautline / /
#   RUN ldconfig
#
# The other variables are those of build.sh. The script needs no registry and no running service. Equal inputs produce equal bytes.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
cd "$root"
scripts/need.sh buildah:buildah zstd:zstd tar:tar readelf:binutils >&2
out=$(realpath -m "${OUT:-${CARGO_TARGET_DIR:-target}/systems/packages}")
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1577836800)}
work=$(mktemp -d "${TMPDIR:-/tmp}/image.XXXXXX")
trap 'rm -rf "$work"' EXIT
umask 022

mkdir -p "$work/tree" "$out"
package=$(OUT=$work FORMATS=archlinux "$here/build.sh" "$@")
version=${package#"$work/tautline-"} version=${version%%-*}
tar -C "$work/tree" --exclude=.PKGINFO --exclude=.MTREE -xf "$package"
case $(readelf -h "$work/tree/usr/lib/tautline/libzmq.so.5" | sed -n 's/^ *Machine: *//p') in
    *X86-64) arch=amd64 ;;
    AArch64) arch=arm64 ;;
    ARM) arch=arm ;;
    RISC-V) arch=riscv64 ;;
    *) arch=s390x ;;
esac
{
    echo FROM scratch
    echo COPY tree/ /
    if [[ -n ${TAUT:-} ]]; then
        install -D -m 755 "$TAUT" "$work/tree/usr/bin/taut"
        echo 'ENTRYPOINT ["/usr/bin/taut"]'
    fi
} >"$work/Containerfile"

buildah=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs)
"${buildah[@]}" bud --quiet --isolation chroot --timestamp "$SOURCE_DATE_EPOCH" --os linux --arch "$arch" --identity-label=false \
    --label org.opencontainers.image.title=Tautline --label "org.opencontainers.image.version=$version" \
    --label 'org.opencontainers.image.licenses=MIT OR Apache-2.0' --tag "tautline:$version" "$work" >&2
"${buildah[@]}" push --quiet --format oci "tautline:$version" "oci:$work/layout:tautline:$version" >&2
# buildah's own archive contains the current time, so make the archive here.
tar --create --file "$out/tautline-$version-$arch.oci.tar" --directory "$work/layout" --sort=name --mtime="@$SOURCE_DATE_EPOCH" \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX .
echo "$out/tautline-$version-$arch.oci.tar"
