#!/usr/bin/env bash
# Makes the packages for Linux distributions, and prints their paths:
#
#   [LIBRARIES=DIR] [OUT=DIR] [FORMATS="deb rpm ..."] [MAINTAINER="NAME <ADDRESS>"] packaging/systems/build.sh [VERSION]
#
# LIBRARIES is the folder of libzmq.so.5 (or libzmq.so) and libzmq.a, default target/release. OUT is the folder for the packages, default
# target/systems/packages. VERSION defaults to the version in Cargo.toml. A library built for glibc goes into deb, rpm and archlinux, a
# library built for musl into apk. The script reads the machine from the file. A library with debug symbols and a build id also gets a
# package of symbols for Debian.
#
# Equal inputs, SOURCE_DATE_EPOCH (default: date of the last commit) and VERSION produce equal bytes.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
libraries=$(realpath -m "${LIBRARIES:-$target/release}")
out=$(realpath -m "${OUT:-$target/systems/packages}")
cd "$root"
scripts/need.sh cargo:cargo python3:python3 py=ensurepip:python3-venv readelf:binutils strip:binutils gzip:gzip flock:util-linux >&2

fail() {
    echo "systems: $*" >&2
    exit 1
}

VERSION=${1:-$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)}
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1577836800)}
# Contact for these packages. The default is a placeholder: docs/develop/releasing.md.
MAINTAINER=${MAINTAINER:-The Tautline authors <tautline@users.noreply.github.com>}
export VERSION SOURCE_DATE_EPOCH MAINTAINER
export LC_ALL=C TZ=UTC
umask 022

# ---- properties of the library

library=$libraries/libzmq.so.5
[[ -e $library ]] || library=$libraries/libzmq.so
for file in "$library" "$libraries/libzmq.a"; do
    [[ -f $file ]] || fail "$(basename "$file") is missing in $libraries: run make build, or set LIBRARIES=DIR"
done
machine=$(readelf -h "$library" | sed -n 's/^ *Machine: *//p')
class=$(readelf -h "$library" | sed -n 's/^ *Class: *ELF//p')
case $machine/$class in
    *X86-64/64) machine=x86_64 ARCH=amd64 triplet=x86_64-linux-gnu ;;
    AArch64/64) machine=aarch64 ARCH=arm64 triplet=aarch64-linux-gnu ;;
    ARM/32) machine=arm ARCH=arm7 triplet=arm-linux-gnueabihf ;;
    RISC-V/64) machine=riscv64 ARCH=riscv64 triplet=riscv64-linux-gnu ;;
    'IBM S/390'/64) machine=s390x ARCH=s390x triplet=s390x-linux-gnu ;;
    *) fail "cannot make packages for $machine, $class bits, the machine of $library" ;;
esac
export ARCH
needed=$(readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if grep -qx 'libc\.so\.6' <<<"$needed"; then
    formats=${FORMATS:-deb rpm archlinux}
    glibc=$(readelf -VW "$library" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -Vu | tail -n 1)
else
    formats=${FORMATS:-apk} glibc=
fi
unwinder=$(grep -cx 'libgcc_s\.so\.1' <<<"$needed" || true)

tool() { # tool NAME: prints the path of the binutils program for the library's machine
    if [[ $machine == "$(uname -m)" ]]; then
        command -v "$1"
    else
        "$root/scripts/need.sh" "$triplet-$1:binutils-${triplet/_/-}" >&2
        command -v "$triplet-$1"
    fi
}
strip=$(tool strip) objcopy=$(tool objcopy)

# ---- the packer

mkdir -p "$out"
. packaging/tools.sh
pinned_tools "$target/systems/tools" "$here/requirements.txt"

work=$(mktemp -d "${TMPDIR:-/tmp}/systems.XXXXXX")
trap 'rm -rf "$work"' EXIT

# ---- the files

# fill TEMPLATE FILE SED-OPTION...: writes the template with these replacements. Fails if a placeholder remains.
fill() {
    local template=$1 file=$2
    shift 2
    mkdir -p "$(dirname "$file")"
    sed "$@" "$template" >"$file"
    ! grep -nE '@[A-Z_]+@' "$file" || fail "$template has unknown placeholders"
}

# module TEMPLATE FILE: fills a pkg-config or CMake template of `make install` for $libdir. The headers have their own folder.
module() {
    fill "packaging/$1.in" "$2" -e 's|@PREFIX@|/usr|g' -e "s|@LIBDIR@|${libdir#/usr/}/tautline|g" -e 's|@VERSION@|4.3.5|g' \
        -e 's|@DRAFT_FLAG@||g' -e 's|@DRAFTS@|FALSE|g' -e 's|^includedir=.*|includedir=${prefix}/include/tautline|' \
        -e "s|@INCLUDE_FROM_PACKAGE@|$(realpath -ms --relative-to="$libdir/tautline/cmake/ZeroMQ" /usr/include/tautline)|g" \
        -e 's|@SHARED@|libzmq.so|g' -e 's|@SONAME@|libzmq.so.5|' -e 's|@SYSTEM_LIST@|pthread;dl;rt;m|' \
        -e 's|@SYSTEM_FLAGS@|-lpthread -ldl -lrt -lm|'
}

manual() { # manual FORMAT FOLDER
    local how files
    if [[ $1 != apk ]]; then
        how="An entry in /etc/ld.so.conf.d puts this folder before the others in which the loader looks."
        files=".br\n.I $entry\nthe entry for the loader"
    else
        how="A line in /etc/ld\\\\-musl\\\\-$machine.path puts this folder before the others in which the loader looks."
        files=".br\n.I /etc/ld\\\\-musl\\\\-$machine.path\nsearch path of the loader"
    fi
    fill "$here/tautline.7.in" "$work/tautline.7" -e "s|@DATE@|$(date -d "@$SOURCE_DATE_EPOCH" +%F)|" -e "s|@VERSION@|$VERSION|" \
        -e "s|@LIBDIR@|$libdir|g" -e "s|@HOW@|$how|" -e "s|@SYSTEM@|$system|" -e "s|@FILES@|$files|"
    mkdir -p "$2"
    gzip -9nc "$work/tautline.7" >"$2/tautline.7.gz"
}

documents() { # documents FORMAT FOLDER: puts licences and changes into the distribution's folders
    local format=$1 stage=$2 doc=$2/usr/share/doc/tautline
    mkdir -p "$doc"
    cp packaging/THIRD-PARTY.txt "$work/THIRD-PARTY"
    if [[ $format == deb ]]; then
        install -m 644 "$here/copyright" "$doc/copyright"
        gzip -9nc "$work/THIRD-PARTY" >"$doc/THIRD-PARTY.gz"
        gzip -9nc CHANGELOG.md >"$doc/CHANGELOG.md.gz"
        printf 'tautline (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.gz for the changes.\n\n -- %s  %s\n' "$VERSION" \
            "$MAINTAINER" "$(date -R -d "@$SOURCE_DATE_EPOCH")" | gzip -9n >"$doc/changelog.gz"
        install -D -m 644 "$here/lintian-overrides" "$stage/usr/share/lintian/overrides/tautline"
    else
        install -D -m 644 -t "$stage/usr/share/licenses/tautline" LICENSE-MIT LICENSE-APACHE "$work/THIRD-PARTY"
        install -m 644 CHANGELOG.md "$doc/CHANGELOG.md"
    fi
}

# stage FORMAT: lays out the files of each package in $work/FORMAT/PACKAGE, as in the installed system.
stage() {
    local format=$1 main development id
    main=$work/$format/tautline development=$work/$format/tautline-dev
    case $format in
        deb) libdir=/usr/lib/$triplet system=$libdir ;;
        rpm) libdir=/usr/lib$([[ $class == 32 ]] || echo 64) system=$libdir ;;
        *) libdir=/usr/lib system=$libdir ;;
    esac
    entry=/etc/ld.so.conf.d/00-tautline-$triplet.conf
    [[ $format != archlinux ]] || development=$main # Arch does not split packages
    mkdir -p "$main$libdir/tautline" "$development$libdir"/{tautline,tautline/pkgconfig,pkgconfig}

    install -m 644 "$library" "$main$libdir/tautline/libzmq.so.5.2.5"
    [[ $format != rpm && $format != archlinux ]] || chmod 755 "$main$libdir/tautline/libzmq.so.5.2.5"
    "$strip" --strip-unneeded --remove-section=.comment "$main$libdir/tautline/libzmq.so.5.2.5"
    ln -s libzmq.so.5.2.5 "$main$libdir/tautline/libzmq.so.5"
    if [[ $format != apk ]]; then
        # Use a link: dpkg treats a file in /etc as the administrator's, and keeps it after the package is removed.
        mkdir -p "$main${entry%/*}"
        echo "$libdir/tautline" >"$main$libdir/tautline/ld.so.conf"
        ln -s "$libdir/tautline/ld.so.conf" "$main$entry"
    fi
    manual "$format" "$main/usr/share/man/man7"
    documents "$format" "$main"

    ln -s libzmq.so.5 "$development$libdir/tautline/libzmq.so"
    install -m 644 "$libraries/libzmq.a" "$development$libdir/tautline/libzmq.a"
    "$strip" --strip-debug --remove-section=.comment --enable-deterministic-archives "$development$libdir/tautline/libzmq.a"
    install -D -m 644 -t "$development/usr/include/tautline" include/*.h
    module libzmq.pc "$development$libdir/tautline/pkgconfig/libzmq.pc"
    module libzmq-drafts.pc "$development$libdir/tautline/pkgconfig/libzmq-drafts.pc"
    ln -s ../tautline/pkgconfig/libzmq.pc "$development$libdir/pkgconfig/tautline.pc"
    module ZeroMQConfig.cmake "$development$libdir/tautline/cmake/ZeroMQ/ZeroMQConfig.cmake"
    module ZeroMQConfigVersion.cmake "$development$libdir/tautline/cmake/ZeroMQ/ZeroMQConfigVersion.cmake"

    packages=(tautline tautline-dev)
    if [[ $format == archlinux ]]; then
        packages=(tautline)
    elif [[ $format == deb ]]; then
        mkdir -p "$development/usr/share/doc" && ln -s tautline "$development/usr/share/doc/tautline-dev"
        id=$(readelf -nW "$library" | sed -n 's/.*Build ID: //p')
        if [[ -n $id ]] && readelf -SW "$library" | grep -q '\.debug_line'; then
            packages+=(tautline-dbgsym)
            mkdir -p "$work/$format/tautline-dbgsym/usr/lib/debug/.build-id/${id:0:2}" "$work/$format/tautline-dbgsym/usr/share/doc"
            "$objcopy" --only-keep-debug --compress-debug-sections "$library" "$work/debug"
            install -m 644 "$work/debug" "$work/$format/tautline-dbgsym/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
            ln -s tautline "$work/$format/tautline-dbgsym/usr/share/doc/tautline-dbgsym"
        fi
    fi
    find "$work/$format" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# contents FOLDER: prints nfpm's list of its files and links, and of the folders that belong to the package.
contents() {
    local path at
    find "$1" -mindepth 1 | sort | while IFS= read -r path; do
        at=${path#"$1"}
        if [[ -L $path ]]; then
            echo "  - { src: '$(readlink "$path")', dst: '$at', type: symlink }"
        elif [[ -f $path ]]; then
            echo "  - { src: '$path', dst: '$at', file_info: { mode: 0$(stat -c %a "$path") } }"
        elif [[ $at == */tautline* ]]; then
            echo "  - { dst: '$at', type: dir, file_info: { mode: 0755 } }"
        fi
    done
}

# relations FORMAT: sets the dependencies, with the package names of the distribution.
relations() {
    DEVELOPMENT=tautline-dev DEPENDS_UNWINDER=
    case $1 in
        deb) DEPENDS_LIBC="libc6 (>= $glibc)" DEPENDS_TAUTLINE="tautline (= $VERSION)" ;;
        rpm) DEPENDS_LIBC="glibc >= $glibc" DEPENDS_TAUTLINE="tautline = $VERSION-1" DEVELOPMENT=tautline-devel ;;
        archlinux) DEPENDS_LIBC="glibc>=$glibc" DEPENDS_TAUTLINE= ;;
        apk) DEPENDS_LIBC=musl DEPENDS_TAUTLINE="tautline=$VERSION" ;;
    esac
    if [[ $unwinder -ne 0 ]]; then
        case $1 in
            deb) DEPENDS_UNWINDER='libgcc-s1 | libgcc1' ;;
            archlinux) DEPENDS_UNWINDER=gcc-libs ;;
            *) DEPENDS_UNWINDER=libgcc ;;
        esac
    fi
    export DEVELOPMENT DEPENDS_LIBC DEPENDS_UNWINDER DEPENDS_TAUTLINE
}

# A package contains the dates of its scripts. Set them, because the dates in a clone are arbitrary.
cp -r "$here/scripts" "$work"
find "$work/scripts" -exec touch -d "@$SOURCE_DATE_EPOCH" {} +

for format in $formats; do
    stage "$format"
    relations "$format"
    for package in "${packages[@]}"; do
        mkdir -p "$work/made"
        # Some formats have only one line for a description.
        short=$([[ $format != apk && $format != archlinux ]] || echo 1)
        awk -v short="$short" -v scripts="$work/scripts" '
            { sub(/packaging\/systems\/scripts/, scripts) }
            /^[a-z]/ { line = 0; text = /^description/ } { line++ } !(short && text && line > 2)' "$here/$package.yaml" >"$work/$package.yaml"
        contents "$work/$format/$package" >>"$work/$package.yaml"
        "$tools/bin/nfpm" package --config "$work/$package.yaml" --packager "$format" --target "$work/made/" >"$work/log" 2>&1 ||
            { cat "$work/log" >&2; fail "nfpm could not make $package as $format"; }
        for file in "$work/made"/*; do
            mv "$file" "$out/"
            echo "$out/$(basename "$file")"
        done
    done
done
