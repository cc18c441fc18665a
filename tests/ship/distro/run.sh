#!/usr/bin/env bash
# Builds the packages of packaging/systems, installs them into separate systems, uses them there and removes them.
#
#   tests/ship/distro/run.sh [SUITE...]   the systems: suites of Debian (by default trixie and bookworm), bionic (Ubuntu's, with glibc
#                                     2.27), alpine. `all`: all of these, and Debian's bullseye and forky
#
# LIBRARIES=DIR   the library for glibc, by default the library that the suites share
# MUSL=DIR        the library for musl. Without MUSL and PACKAGES, the checks of the package for Alpine run no program.
# PACKAGES=DIR    packages that build.sh or `cargo xtask dist` has made. The script then tries only these.
# ARCH=arm64      tries the .deb for 64-bit ARM in emulated systems. Needs LIBRARIES or PACKAGES.
#
# The first run fetches the systems, which stay in target/systems/roots. The script needs root.
# Ends with `systems: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cd "$root"
suites=("$@")
[[ ${#suites[@]} -gt 0 ]] || suites=(trixie bookworm)
[[ ${suites[*]} != all ]] || suites=(trixie bookworm bullseye forky bionic alpine)
arch=${ARCH:-$(dpkg --print-architecture 2>/dev/null || true)}
passed=0 failed=0 skipped=0
shopt -s extglob

if [[ $(id -u) -ne 0 ]] || ! command -v dpkg-deb >/dev/null; then
    echo "systems: skipped: the systems to install into need root and Debian's tools"
    echo "systems: 0 passed, 0 failed, 1 skipped"
    exit
fi
scripts/need.sh gcc:gcc cmake:cmake pkg-config:pkg-config lintian:lintian rpm:rpm pacman:pacman-package-manager readelf:binutils \
    mmdebstrap:mmdebstrap musl-gcc:musl-tools buildah:buildah >&2
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
if [[ $arch == arm64 && $(uname -m) != aarch64 ]]; then
    [[ -n ${LIBRARIES:-}${PACKAGES:-} ]] || { echo "systems: ARCH=$arch needs LIBRARIES=DIR or PACKAGES=DIR" >&2; exit 2; }
    [[ -n ${SYSTEMS_EMULATED:-} ]] || SYSTEMS_EMULATED=yes exec "$here/emulated.sh" "$here/run.sh" "$@"
fi
if [[ -z ${LIBRARIES:-}${PACKAGES:-} ]]; then LIBRARIES=$(tests/lib/build.sh library); fi
export LIBRARIES=${LIBRARIES:-$target/release}
work=$(mktemp -d "${TMPDIR:-/tmp}/systems-test.XXXXXX")
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT
packages=$work/packages
if [[ -n ${PACKAGES:-} ]]; then
    mkdir "$packages"
    for file in "$PACKAGES"/*; do
        case $arch/${file##*/} in
            amd64/*[_.-]@(amd64|x86_64).@(deb|rpm|apk|pkg.tar.zst) | arm64/*[_.-]@(arm64|aarch64).@(deb|rpm|apk|pkg.tar.zst)) cp "$file" "$packages" ;;
        esac
    done
fi
# A fixed date of the packages, so that a new commit between two builds does not change their bytes.
export SOURCE_DATE_EPOCH=1700000000

. tests/lib/check.sh
# check NAME COMMAND...: runs a check, and sets `result` to its exit code.
check() {
    local name=$1
    shift
    run_check systems "$name" "tests/ship/distro/run.sh ${suites[*]}" "$@"
}

# ---- built packages

built() {
    OUT=$packages packaging/systems/build.sh 0.1.0
    [[ -z ${ARCH:-} ]] || return 0
    OUT=$packages FORMATS=apk LIBRARIES=${MUSL:-$LIBRARIES} packaging/systems/build.sh 0.1.0
}
same_bytes() {
    OUT=$work/again packaging/systems/build.sh 0.1.0
    OUT=$work/again FORMATS=apk LIBRARIES=${MUSL:-$LIBRARIES} packaging/systems/build.sh 0.1.0
    diff -r "$packages" "$work/again"
}
lintian_is_content() { lintian --fail-on error,warning "$packages"/*.deb; }

# The packages have the CMake files that `make install` has. Programs that CMake builds run on the unpacked library.
tree=$work/tree triplet=$(gcc -print-multiarch)
[[ $arch != arm64 ]] || triplet=aarch64-linux-gnu
libdir=/usr/lib/$triplet
readme() { awk '/^```c$/ {inside = 1; next} /^```/ {inside = 0} inside' README.md; }
found_by_cmake() {
    local package
    for package in "$packages"/tautline{,-dev}_*.deb; do dpkg-deb -x "$package" "$tree"; done
    mkdir -p "$work/cmake"
    readme >"$work/cmake/hello.c"
    cat >"$work/cmake/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.10)
project(hello C)
find_package(ZeroMQ 4.3 REQUIRED)
add_executable(shared hello.c)
target_link_libraries(shared libzmq)
add_executable(static hello.c)
target_link_libraries(static libzmq-static)
add_executable(alone hello.c)
target_link_libraries(alone libzmq-static -static)
CMAKE
    cmake -S "$work/cmake" -B "$work/cmake/build" -DZeroMQ_DIR="$tree$libdir/tautline/cmake/ZeroMQ"
    cmake --build "$work/cmake/build"
    [[ $(loaded '' "$work/cmake/build/shared") == "$tree$libdir/tautline/libzmq.so"* ]]
    [[ -z $(loaded '' "$work/cmake/build/static") ]]
    "$work/cmake/build/alone" | grep '^answered: Tautline\.$'
}
symbols_found() { # finds the debug symbols by the build id, which the stripped library still has
    local id
    [[ -e $(echo "$packages"/tautline-dbgsym_*.deb) ]] || skip "the library has no debug symbols or no build id"
    id=$(readelf -n "$tree$libdir/tautline/libzmq.so.5" | sed -n 's/.*Build ID: //p')
    dpkg-deb -x "$packages"/tautline-dbgsym_*.deb "$tree"
    readelf -SW "$tree/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" | grep '\.debug_line '
}

# Builds an image from only our image, the C library and a program. RUN shows the output of the program.
image_runs() {
    local image box=$work/box file buildah=(buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs)
    image=$(OUT=$work/images packaging/systems/image.sh 0.1.0)
    cmp "$image" "$(OUT=$work/images-again packaging/systems/image.sh 0.1.0)"
    mkdir -p "$box"/system/{bin,etc,tmp}
    readme >"$work/hello.c"
    gcc "$work/hello.c" -o "$box/system/bin/hello" -I include -L "$tree$libdir/tautline" -lzmq
    for file in $(ldd "$tree$libdir/tautline/libzmq.so.5" | grep -o '/[^ ]*'); do install -D "$file" "$box/system$file"; done
    cp -L "$(PATH=$PATH:/usr/sbin:/sbin command -v ldconfig)" "$box/system/bin/ldconfig"
    echo 'include /etc/ld.so.conf.d/*.conf' >"$box/system/etc/ld.so.conf"
    printf '%s\n' 'FROM localhost/tautline:0.1.0 AS tautline' 'FROM scratch' 'COPY system/ /' 'COPY --from=tautline / /' \
        'RUN ["/bin/ldconfig"]' 'RUN ["/bin/hello"]' >"$box/Containerfile"
    "${buildah[@]}" pull --quiet "oci-archive:$image:tautline:0.1.0" || "${buildah[@]}" pull --quiet "oci-archive:$image"
    "${buildah[@]}" images
    "${buildah[@]}" bud --isolation chroot --tag hello "$box" 2>&1 | tee "$work/said"
    grep '^answered: Tautline\.$' "$work/said"
}

# ---- a system

# /lib is a link to /usr/lib, and the loader prints either path.
at_usr() { sed 's|^/lib|/usr/lib|'; }
# loaded ROOT COMMAND...: runs the command in the system at ROOT, or in this system if ROOT is empty. Prints the libzmq that the loader
# took.
loaded() {
    local inside=$1
    shift
    [[ -z $inside ]] || set -- chroot "$inside" "$@"
    # The loader finds the last file that it tries.
    LD_DEBUG=libs timeout 120 "$@" 2>&1 | sed -n 's/.*trying file=\(.*libzmq.*\)/\1/p' | tail -n 1 | at_usr
}
first_in_cache() { chroot "$1" ldconfig -p | sed -n 's/^\tlibzmq\.so\.5 .* => //p' | head -n 1 | at_usr; }
files() { # lists all files except the package managers' records and caches
    (cd "$1" && find . -path ./proc -prune -o -path ./sys -prune -o -path ./dev -prune -o -path ./tmp -prune -o \
        -path './var/lib/*' -prune -o -path './var/log/*' -prune -o -path './var/cache/*' -prune -o -name __pycache__ -prune -o \
        -type f ! -path ./etc/ld.so.cache -printf '%p %s %m\n' -o ! -type f -printf '%p %l %m\n' | sort)
}
# runs_on FOLDER: programs that ask for libzmq.so.5 run on the library in that folder of $system. The programs are a C program that was
# built with libzmq3-dev, and the distribution's pyzmq. Since Debian 13, pyzmq has a RUNPATH, which the loader searches before the cache of
# ldconfig and after LD_LIBRARY_PATH.
runs_on() {
    local given=() module
    [[ $(first_in_cache "$system") == "$1/libzmq.so.5" ]]
    [[ $(loaded "$system" /tmp/plain) == "$1/libzmq.so.5" ]]
    in_system /tmp/plain | grep '^answered: Tautline\.$'
    for module in "$system"/usr/lib/python3/dist-packages/zmq/backend/cython/*.so; do
        if readelf -dW "$module" | grep 'R.*PATH'; then given=(env "LD_LIBRARY_PATH=$1"); fi
    done
    in_system "${given[@]}" python3 /tmp/hello.py | grep '^Who is there? pyzmq\.$'
    [[ $(loaded "$system" "${given[@]}" python3 /tmp/hello.py) == "$1/libzmq.so.5" ]]
    [[ ${#given[@]} -eq 0 || $(loaded "$system" python3 /tmp/hello.py) == "$libdir/libzmq.so.5" ]]
}
goes_back() { # the files are as before, and programs run on the distribution's library
    files "$system" >"$work/after"
    diff "$work/before" "$work/after"
    runs_on "$libdir"
}
in_system() { chroot "$system" env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }

fits() { # the system's C library is new enough for the packaged library
    local wanted there
    wanted=$(dpkg-deb -f "$packages"/tautline_*.deb Depends | sed -n 's/.*libc6 (>= \([0-9.]*\)).*/\1/p')
    there=$(in_system dpkg-query -W -f '${Version}' libc6)
    dpkg --compare-versions "$there" ge "$wanted" || skip "the library needs glibc $wanted, and this system has $there: LIBRARIES=DIR"
}
deb_installed() {
    local folder
    cp "$packages"/*.deb "$here/hello.py" "$system/tmp/"
    readme >"$system/tmp/hello.c"
    in_system sh -c 'cc /tmp/hello.c -o /tmp/plain $(pkg-config --cflags --libs libzmq)'
    # Folders that every system with rpm or pacman has. rpm and pacman remove a folder with its last file, so each gets a file.
    for folder in lib/pkgconfig lib64/pkgconfig share/licenses; do
        mkdir -p "$system/usr/$folder"
        touch "$system/usr/$folder/another"
    done
    in_system dpkg --purge tautline-dbgsym tautline-dev tautline # left by an interrupted run
    runs_on "$libdir"
    files "$system" >"$work/before"
    in_system sh -c 'dpkg --install /tmp/tautline_*.deb /tmp/tautline-dev_*.deb'
    in_system dpkg --audit
    runs_on "$libdir/tautline"
}
deb_builds() { # builds the README's program in the ways that the manual page names
    local way
    in_system sh -c 'cc -Wall -Werror /tmp/hello.c -o /tmp/hello $(pkg-config --cflags --libs tautline)'
    [[ $(loaded "$system" /tmp/hello) == "$libdir/tautline/libzmq.so.5" ]]
    in_system /tmp/hello | grep '^answered: Tautline\.$'
    in_system sh -c 'cc -Wall -Werror /tmp/hello.c -o /tmp/hello-static -static $(pkg-config --static --cflags --libs tautline)'
    in_system /tmp/hello-static | grep '^answered: Tautline\.$'
    way=$(in_system env PKG_CONFIG_PATH="$libdir/tautline/pkgconfig" pkg-config --cflags libzmq-drafts)
    [[ $way == *-I*/usr/include/tautline* && $way == *-DZMQ_BUILD_DRAFT_API=1* ]]
    # libzmq3-dev is installed. Programs that do not name Tautline are still built with it.
    way=$(in_system pkg-config --cflags libzmq)
    [[ $way != *tautline* ]]
}
deb_left_aside() { [[ $(loaded "$system" env LD_LIBRARY_PATH="$libdir" /tmp/plain) == "$libdir/libzmq.so.5" ]]; }
deb_removed() {
    in_system dpkg --remove tautline-dev tautline
    goes_back
    # A program that was built with Tautline's headers also runs on libzmq.
    [[ $(loaded "$system" /tmp/hello) == "$libdir/libzmq.so.5" ]]
}

# rpm and pacman install their packages into the same Debian system. Its glibc, loader and shell are like those of their distributions.
rpm_in_and_out() {
    local at=/usr/lib64/tautline
    files "$system" >"$work/before"
    local rpm=(rpm --root "$system" --dbpath /var/lib/rpm)
    "${rpm[@]}" --initdb
    # The system's records belong to dpkg, so that rpm cannot know the installed packages.
    "${rpm[@]}" --install --nodeps "$packages"/*.rpm
    "${rpm[@]}" --verify --nodeps tautline tautline-devel
    runs_on "$at"
    in_system sh -c "cc /tmp/hello.c -o /tmp/hello-rpm \$(PKG_CONFIG_PATH=$at/pkgconfig pkg-config --cflags --libs libzmq)"
    [[ $(loaded "$system" /tmp/hello-rpm) == $at/libzmq.so.5 ]]
    "${rpm[@]}" --erase tautline tautline-devel
    goes_back
}
pacman_in_and_out() {
    local at=/usr/lib/tautline
    printf '[options]\nArchitecture = auto\nSigLevel = Never\nLocalFileSigLevel = Never\n' >"$work/pacman.conf"
    mkdir -p "$system/var/lib/pacman" "$system/var/cache/pacman/pkg"
    files "$system" >"$work/before"
    pacman --root "$system" --config "$work/pacman.conf" --noconfirm -Udd "$packages"/*.pkg.tar.zst
    pacman --root "$system" --config "$work/pacman.conf" -Qkk tautline
    runs_on "$at"
    pacman --root "$system" --config "$work/pacman.conf" --noconfirm -Rdd tautline
    goes_back
}

next() { # next NAME COMMAND...: runs a check if the check before it passed
    if [[ $result -eq 0 ]]; then check "$@"; fi
}
try_system() { # try_system SUITE
    local suite=$1
    system=$("$here/root.sh" "$suite" "${ARCH:-}")
    check "$suite: glibc" fits
    [[ $result -eq 0 ]] || return 0
    next "$suite: .deb: installed, unmodified programs run on it" deb_installed
    next "$suite: .deb: the README's program built there, shared and static, beside libzmq3-dev" deb_builds
    next "$suite: .deb: one program on libzmq5 by LD_LIBRARY_PATH" deb_left_aside
    next "$suite: .deb: removed, back on libzmq5, files as before" deb_removed
    if [[ -z ${ARCH:-} ]]; then
        next "$suite: .rpm: installed by rpm, used, removed" rpm_in_and_out
        next "$suite: Arch's package: installed by pacman, used, removed" pacman_in_and_out
    fi
    # If a check failed, the state of the system is unknown, and the next run makes the system again.
    [[ $result -eq 0 ]] || rm -f "$system.complete"
}

# Alpine, with its own apk. Alpine has no compiler, so that musl-gcc builds the program outside.
alpine_installed() {
    [[ -n ${MUSL:-}${PACKAGES:-} ]] || skip "no library for musl is given: MUSL=DIR"
    system=$("$here/root.sh" alpine)
    rm -f "$system"/tmp/*
    files "$system" >"$work/before"
    cp "$packages"/*.apk "$system/tmp/"
    in_system sh -c 'apk add --allow-untrusted --no-network /tmp/*.apk'
    in_system apk info --installed tautline tautline-dev
    readme >"$work/hello.c"
    musl-gcc -Wall -Werror "$work/hello.c" -o "$system/tmp/hello" -I "$system/usr/include/tautline" -L "$system/usr/lib/tautline" -lzmq
    in_system /tmp/hello | grep '^answered: Tautline\.$'
    in_system ldd /tmp/hello | grep 'libzmq\.so\.5 => /usr/lib/tautline/libzmq\.so\.5 '
}
alpine_removed() {
    system=$("$here/root.sh" alpine)
    in_system apk del --no-network tautline tautline-dev
    files "$system" >"$work/after"
    diff "$work/before" "$work/after"
    if in_system /tmp/hello; then false; fi # Alpine has no other libzmq
}
try_alpine() {
    check 'alpine: .apk: installed by apk, the README'"'"'s program runs on it' alpine_installed
    next 'alpine: .apk: removed, files as before' alpine_removed
    [[ $result -eq 0 || $result -eq 77 ]] || rm -f "$("$here/root.sh" alpine).complete"
}

# ---- musl

musl_system() { # makes a system of a loader, a shell and the package's files, because Debian has no apk
    local loader
    system=$work/musl
    loader=$(echo /lib/ld-musl-*.so.1)
    scripts/need.sh busybox:busybox-static
    mkdir -p "$system"/{lib,bin,etc,usr/lib,tmp}
    cp -L "$loader" "$system/lib/"
    cp "$(command -v busybox)" "$system/bin/busybox"
    chroot "$system" /bin/busybox --install -s /bin
    path=$system/etc/$(basename "$loader" .so.1).path
    # The package of the library is unpacked last, so that its .PKGINFO stays.
    for package in "$packages"/tautline{-dev,}_*.apk; do tar --warning=no-unknown-keyword -xzf "$package" -C "$system"; done
}
apk_is_whole() {
    musl_system
    grep -x 'pkgname = tautline' "$system/.PKGINFO"
    if grep -v '^#\|^[a-z]* = .' "$system/.PKGINFO"; then false; fi
    [[ -f $system/usr/lib/tautline/libzmq.so.5 && -f $system/usr/lib/tautline/libzmq.a && -x $system/.post-install ]]
    cmp "$system/.post-install" packaging/systems/scripts/musl-path.sh
    [[ ! -e $system/etc/ld.so.conf.d ]]
}
path_is() { [[ $(paste -sd: "$path") == "$1" ]]; }
musl_finds_it() {
    musl_system
    local given
    for given in '' /opt/lib:/usr/lib; do
        rm -f "$path"
        [[ -z $given ]] || echo "$given" >"$path"
        chroot "$system" /bin/sh /.post-install
        path_is "/usr/lib/tautline:${given:-/lib:/usr/local/lib:/usr/lib}"
        chroot "$system" /bin/sh /.post-install # as after an upgrade
        path_is "/usr/lib/tautline:${given:-/lib:/usr/local/lib:/usr/lib}"
        mv "$system/usr/lib/tautline" "$system/usr/lib/away"
        chroot "$system" /bin/sh /.post-deinstall
        if [[ -n $given ]]; then path_is "$given"; else [[ ! -e $path ]]; fi
        mv "$system/usr/lib/away" "$system/usr/lib/tautline"
    done
}
musl_runs() {
    [[ -n ${MUSL:-}${PACKAGES:-} ]] || skip "no library for musl is given: MUSL=DIR"
    musl_system
    rm -f "$path"
    chroot "$system" /bin/sh /.post-install
    readme >"$work/hello.c"
    musl-gcc "$work/hello.c" -o "$system/tmp/hello" -I include -L "$system/usr/lib/tautline" -lzmq
    chroot "$system" /tmp/hello | grep '^answered: Tautline\.$'
    mv "$system/usr/lib/tautline" "$system/usr/lib/away"
    chroot "$system" /bin/sh /.post-deinstall
    if chroot "$system" /tmp/hello; then false; fi # the system has no other libzmq
}

if [[ -z ${PACKAGES:-} ]]; then
    check 'packages built' built
    if [[ $result -ne 0 ]]; then
        echo "systems: $passed passed, $failed failed, $skipped skipped"
        exit 1
    fi
    [[ -n ${ARCH:-} ]] || check 'a second build has the same bytes' same_bytes
    check 'lintian' lintian_is_content
fi
if [[ -n ${ARCH:-} ]]; then
    for suite in "${suites[@]}"; do try_system "$suite"; done
    echo "systems: $passed passed, $failed failed, $skipped skipped"
    [[ $failed -eq 0 ]]
    exit
fi
check 'find_package(ZeroMQ), shared, static and without any shared library' found_by_cmake
check 'debug symbols by build id' symbols_found
if [[ -z ${PACKAGES:-} ]]; then check 'image: a second build is equal, and a program runs on it' image_runs; fi
for suite in "${suites[@]}"; do
    case $suite in alpine) try_alpine ;; *) try_system "$suite" ;; esac
done
check '.apk: its contents' apk_is_whole
check ".apk: its scripts set and restore the path of musl's loader" musl_finds_it
check ".apk: the README's program on musl" musl_runs
echo "systems: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
