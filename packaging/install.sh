#!/usr/bin/env bash
# Installs the built files where programs look for libzmq, and uninstalls them: `make install` and `make uninstall`.
#
#   packaging/install.sh install|uninstall
#
# The script does not build or fetch files. It reads PREFIX, LIBDIR, DESTDIR, DRAFTS and CARGO_TARGET_DIR from the environment, as in
# the Makefile. SYSTEM names the target system of the libraries as `uname -s` prints it (Darwin for macOS); the default is this system.
# The script runs in bash 3.2, the version of macOS.
#
# PREFIX/share/tautline/manifest lists the installed files and the folders created for them: uninstalling removes only these. Files
# that were changed later stay. A conflicting libzmq is kept in share/tautline/replaced and restored on uninstalling. If a package of
# the distribution owns the conflicting file, the script changes no file and fails.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
command=${1:-}
prefix=${PREFIX:-/usr/local} libdir=${LIBDIR:-lib} destination=${DESTDIR:-}
prefix=${prefix%/}
# Folder of the libraries: LIBRARIES, or the folder that `make build` writes to.
libraries=${LIBRARIES:-${CARGO_TARGET_DIR:-$root/target}/release}
interface=4.3.5
# The built file, its installed name, and the two links to it: the soname, which programs load, and the plain name for linkers.
case ${SYSTEM:-$(uname -s)} in
    Darwin) built=libzmq.dylib library=libzmq.5.dylib name=libzmq.5.dylib plain=libzmq.dylib loader=DYLD_LIBRARY_PATH system_libraries= ;;
    *)
        # The list omits the stack unwinder: the compiler adds the right one, and libgcc_s conflicts with -static.
        built=libzmq.so library=libzmq.so.5.2.5 name=libzmq.so.5 plain=libzmq.so loader=LD_LIBRARY_PATH
        system_libraries='pthread dl rt m' ;;
esac
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' "$root/Cargo.toml")

fail() {
    local line
    for line in "$@"; do echo "$command: $line" >&2; done
    exit 1
}

case $command in install | uninstall) ;; *) echo "usage: packaging/install.sh install|uninstall" >&2; exit 2 ;; esac
[[ $prefix == /* || -z $prefix ]] || fail "PREFIX=$prefix does not begin with /"
[[ $libdir != /* && /$libdir/ != */../* && $libdir != *$'\n'* ]] || fail "LIBDIR=$libdir is not a folder below PREFIX, like lib64 or lib/x86_64-linux-gnu"

base=$destination$prefix
manifest=share/tautline/manifest
replaced=share/tautline/replaced
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/stage

hash() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi <"$1" | cut -d' ' -f1; }

# known TYPE VALUE PATH: true if PATH is unchanged since the manifest recorded TYPE and VALUE for it.
known() {
    local file=$base/$3
    case $1 in
        link) [[ -L $file && $(readlink "$file") == "$2" ]] ;;
        file) [[ ! -L $file && -f $file ]] && [[ $(hash "$file") == "$2" ]] ;;
        *) false ;;
    esac
}

# owner FILE: prints the package of the distribution that owns the file, if any.
owner() {
    local file
    file=$(cd "$(dirname "$1")" && pwd -P)/$(basename "$1")
    if command -v dpkg-query >/dev/null; then
        { dpkg-query -S "$1" || dpkg-query -S "$file"; } 2>/dev/null | sed -n '1s/: .*//p'
    elif command -v rpm >/dev/null; then
        rpm -qf --queryformat '%{NAME}\n' "$file" 2>/dev/null | head -n 1
    elif command -v pacman >/dev/null; then
        pacman -Qqo "$file" 2>/dev/null | head -n 1
    elif command -v apk >/dev/null; then
        apk info -q --who-owns "$file" 2>/dev/null | head -n 1
    fi || true
}

run_ldconfig() {
    [[ -z $destination && $(id -u) -eq 0 ]] || return 0
    local PATH=$PATH:/usr/sbin:/sbin
    ! command -v ldconfig >/dev/null || ldconfig 2>/dev/null || true
}

# ---- install

# fill TEMPLATE FILE
fill() {
    local text depth up=../..
    text=$(<"$root/packaging/$1")
    # From the CMake package to the prefix: one level up for each folder of LIBDIR, and two for cmake/ZeroMQ.
    IFS=/ read -ra depth <<<"$libdir"
    for _ in "${depth[@]}"; do [[ -z $_ ]] || up+=/..; done
    text=${text//@PREFIX@/"$prefix"}
    text=${text//@LIBDIR@/"$libdir"}
    text=${text//@VERSION@/"$interface"}
    text=${text//@INCLUDE_FROM_PACKAGE@/"$up/include"}
    text=${text//@SHARED@/"$plain"}
    text=${text//@SONAME@/"$name"}
    text=${text//@SYSTEM_FLAGS@/"${system_libraries:+-l${system_libraries// / -l}}"}
    text=${text//@SYSTEM_LIST@/"${system_libraries// /;}"}
    # Every build has the draft interface. With DRAFTS=1, pkg-config and CMake announce it to every program, like a libzmq that was
    # configured with drafts. Without DRAFTS=1, they announce it only to programs that request it.
    if [[ ${DRAFTS:-} == 1 ]]; then
        text=${text//@DRAFT_FLAG@/ -DZMQ_BUILD_DRAFT_API=1}
        text=${text//@DRAFTS@/TRUE}
    else
        text=${text//@DRAFT_FLAG@/}
        text=${text//@DRAFTS@/FALSE}
    fi
    printf '%s\n' "$text" >"$2"
}

# first COMMAND...: prints the first command that exists, if any.
first() {
    local command
    for command in "$@"; do
        if command -v "$command" >/dev/null; then
            command -v "$command"
            return
        fi
    done
}

# Stages the libraries without debug symbols. The symbols of the shared library go into .debug beside it, where debuggers look.
libraries() {
    local lib=$stage/$libdir objcopy strip
    # OBJCOPY and STRIP name the tools for a cross-compiled library.
    objcopy=${OBJCOPY:-$(first objcopy llvm-objcopy)}
    strip=${STRIP:-$(first strip llvm-strip)}
    if [[ $built == *.dylib ]]; then
        mach_o "$lib"
    elif [[ -z $objcopy || -z $strip ]]; then
        echo "install: strip or objcopy (binutils) is missing, so the installed libraries keep their debug symbols" >&2
        cp "$libraries/$built" "$lib/$library"
        cp "$libraries/libzmq.a" "$lib/libzmq.a"
    else
        mkdir "$lib/.debug"
        "$objcopy" --only-keep-debug --compress-debug-sections "$libraries/$built" "$lib/.debug/$library.debug"
        "$strip" --strip-unneeded -o "$lib/$library" "$libraries/$built"
        "$objcopy" --add-gnu-debuglink="$lib/.debug/$library.debug" "$lib/$library"
        "$strip" --strip-debug -o "$lib/libzmq.a" "$libraries/libzmq.a"
        chmod 644 "$lib/.debug/$library.debug"
    fi
}

# mach_o FOLDER: stages the libraries of macOS. At link time a program records the library's own install name, so we set that name.
# Each change needs a new signature, because macOS on ARM loads only signed code. Debug symbols stay in the object files there.
mach_o() {
    local rename sign
    rename=$(first install_name_tool llvm-install-name-tool)
    [[ -n $rename ]] || fail "install_name_tool is missing, which sets the path of the library: xcode-select --install"
    cp "$libraries/$built" "$1/$library"
    cp "$libraries/libzmq.a" "$1/libzmq.a"
    "$rename" -id "$prefix/$libdir/$library" "$1/$library"
    sign=$(first codesign)
    if [[ -n $sign ]]; then
        "$sign" --force --sign - "$1/$library"
    elif [[ $(uname -s) == Darwin ]]; then
        fail "codesign is missing: xcode-select --install"
    else
        echo "install: the library is not signed; sign it on macOS: codesign --force --sign - $library" >&2
    fi
}

stage() {
    local lib=$stage/$libdir doc=$stage/share/doc/tautline
    mkdir -p "$lib/pkgconfig" "$lib/cmake/ZeroMQ" "$stage/include" "$doc"
    libraries
    [[ $name == "$library" ]] || ln -s "$library" "$lib/$name"
    ln -s "$name" "$lib/$plain"
    cp "$root"/include/*.h "$stage/include"
    cp "$root"/LICENSE-* "$root/packaging/THIRD-PARTY.txt" "$doc"
    fill libzmq.pc.in "$lib/pkgconfig/libzmq.pc"
    fill libzmq-drafts.pc.in "$lib/pkgconfig/libzmq-drafts.pc"
    fill ZeroMQConfig.cmake.in "$lib/cmake/ZeroMQ/ZeroMQConfig.cmake"
    fill ZeroMQConfigVersion.cmake.in "$lib/cmake/ZeroMQ/ZeroMQConfigVersion.cmake"
    find "$stage" -type f -exec chmod 644 {} +
    chmod 755 "$lib/$library"
}

check_writable() {
    local folder
    while IFS= read -r folder; do
        folder=$base/$folder
        until [[ -d $folder ]]; do folder=$(dirname "$folder"); done
        [[ -w $folder && -x $folder ]] && continue
        if [[ $(id -u) -eq 0 ]]; then fail "$folder is not writable; choose another PREFIX"; fi
        fail "$folder is not writable for $(id -un)" \
            "use sudo make install, or a folder of your own: make install PREFIX=\$HOME/.local"
    done < <(cd "$stage" && find . -type d; echo share/tautline)
}

# Lists conflicting files that we did not install in `foreign`. Fails if a package owns one of them.
check_owners() {
    local path type value owner owned=()
    foreign=()
    if [[ -f $base/$manifest ]]; then
        while IFS=$'\t' read -r type value path; do
            if known "$type" "$value" "$path"; then printf '%s\n' "$path"; fi
        done <"$base/$manifest"
    fi >"$work/ours"
    while IFS= read -r path; do
        [[ -e $base/$path || -L $base/$path ]] && ! grep -qxF -e "$path" "$work/ours" || continue
        [[ ! -d $base/$path || -L $base/$path ]] || fail "$base/$path is a folder"
        foreign+=("$path")
        [[ -z $destination ]] || continue
        owner=$(owner "$base/$path")
        [[ -z $owner ]] || owned+=("  $base/$path ($owner)")
    done < <(cd "$stage" && find . ! -type d | sed 's|^\./||' | sort)
    [[ ${#owned[@]} -eq 0 ]] || fail "these files belong to packages of this system, whose next upgrade would overwrite them again:" \
        "${owned[@]}" "no file was changed; choose another PREFIX, such as /usr/local, or set DESTDIR to make a package"
}

# make_folders PATH: creates the folder and its missing parents, up to and above the prefix. Notes each new folder in the manifest.
make_folders() {
    local path=$1
    [[ ! -d $base/$path ]] || return 0
    if [[ $path == . ]]; then
        local parent=$base above=0
        until [[ -d $(dirname "$parent") ]]; do parent=$(dirname "$parent") above=$((above + 1)); done
        mkdir -p "$base"
        [[ $above -eq 0 ]] || printf 'above\t%s\t-\n' "$above" >>"$work/manifest"
    else
        make_folders "$(dirname "$path")"
        mkdir "$base/$path"
    fi
    printf 'directory\t-\t%s\n' "$path" >>"$work/manifest"
}

install() {
    local file path
    for file in "$built" libzmq.a; do
        [[ -f $libraries/$file ]] || fail "there is no $file in $libraries: run make build first" \
            "if it was built elsewhere: make install CARGO_TARGET_DIR=..."
    done
    stage
    check_writable
    check_owners
    umask 022
    # Keep the entries of an earlier installation with another LIBDIR, so that uninstalling removes its files.
    { cat "$base/$manifest" 2>/dev/null || true; } >"$work/manifest"
    make_folders share/tautline
    for path in ${foreign[@]+"${foreign[@]}"}; do
        mkdir -p "$base/$replaced/$(dirname "$path")"
        mv -f "$base/$path" "$base/$replaced/$path"
        echo "install: another $path is kept in $base/$replaced until make uninstall"
    done
    while IFS= read -r path; do
        make_folders "$(dirname "$path")"
        # Replace the file by rename, so that a program with the old file open keeps all of it.
        cp -P "$stage/$path" "$base/$path.new"
        mv -f "$base/$path.new" "$base/$path"
        if [[ -L $base/$path ]]; then
            printf 'link\t%s\t%s\n' "$(readlink "$base/$path")" "$path"
        else
            printf 'file\t%s\t%s\n' "$(hash "$base/$path")" "$path"
        fi >>"$work/manifest"
    done < <(cd "$stage" && find . ! -type d | sed 's|^\./||' | sort)
    # Keep the last entry of each path.
    awk -F '\t' '{ last[$3] = NR; line[NR] = $0; path[NR] = $3 } END { for (n = 1; n <= NR; n++) if (last[path[n]] == n) print line[n] }' \
        "$work/manifest" >"$base/$manifest.new"
    mv -f "$base/$manifest.new" "$base/$manifest"
    run_ldconfig
    say_what_next
}

# True if the loader finds the installed library without an environment variable: libzmq.so.5 in its cache is this file.
loader_finds_it() {
    local PATH=$PATH:/usr/sbin:/sbin first
    first=$({ ldconfig -p 2>/dev/null || true; } | sed -n 's/^\tlibzmq\.so\.5 .* => //p' | head -n 1)
    [[ -n $first && $(realpath -m "$first") == "$(realpath -m "$base/$libdir/$library")" ]]
}

# True if pkg-config finds the installed libzmq.pc without an environment variable.
pkg_config_finds_it() {
    [[ $(pkg-config --variable=prefix libzmq 2>/dev/null) == "$prefix" ]]
}

say_what_next() {
    local next='' back='make uninstall' what="Tautline $version in $base: $libdir/$name, libzmq.a, zmq.h, pkg-config and CMake files"
    [[ $prefix == /usr/local ]] || printf -v back '%s PREFIX=%q' "$back" "$prefix"
    if [[ -n $destination ]]; then
        echo "installed $what, for ${prefix:-/}"
        return
    fi
    if loader_finds_it; then
        next="; every program started from now on that asks for libzmq.so.5 runs on it"
        pkg_config_finds_it || printf -v next '%s; to build with it: export PKG_CONFIG_PATH=%q' "$next" "$prefix/$libdir/pkgconfig"
    else
        printf -v next '; next: export %s=%q PKG_CONFIG_PATH=%q' "$loader" "$prefix/$libdir" "$prefix/$libdir/pkgconfig"
    fi
    echo "installed $what$next; to uninstall: $back"
}

# ---- uninstall

uninstall() {
    local type value path left=0
    [[ -f $base/$manifest ]] || fail "there is no $base/$manifest: make install did not install Tautline there" \
        "if it is installed elsewhere: make uninstall PREFIX=..."
    [[ -w $base/$(dirname "$manifest") ]] || fail "$base/$(dirname "$manifest") is not writable for $(id -un): sudo make uninstall"
    while IFS=$'\t' read -r type value path; do
        # Others may have edited the manifest, and this script may run as root.
        [[ $path != /* && /$path/ != */../* ]] || fail "$base/$manifest names $path, outside of the prefix"
    done <"$base/$manifest"
    while IFS=$'\t' read -r type value path; do
        [[ $type == file || $type == link ]] || continue
        if known "$type" "$value" "$path"; then
            rm -f "$base/$path"
        elif [[ -e $base/$path || -L $base/$path ]]; then
            echo "uninstall: $base/$path was changed after the installation and is not removed"
            left=$((left + 1))
        fi
    done <"$base/$manifest"
    restore
    remove_folders
    run_ldconfig
    echo "uninstalled Tautline from $base; running programs keep it until they are restarted"
}

# Removes the empty folders that the installation created, from the innermost to those above the prefix.
remove_folders() {
    local path folder=$base above
    above=$(sed -n 's/^above\t\([0-9]*\)\t.*/\1/p' "$base/$manifest")
    sed -n 's/^directory\t-\t//p' "$base/$manifest" | sort -r >"$work/folders"
    rm -f "$base/$manifest"
    while IFS= read -r path; do
        if [[ $path == . ]]; then path=; fi
        rmdir "$base${path:+/$path}" 2>/dev/null || true
    done <"$work/folders"
    for ((; above > 0; above--)); do
        folder=$(dirname "$folder")
        rmdir "$folder" 2>/dev/null || true
    done
}

# Restores the conflicting files that the installation moved away. A file stays in the backup if its path is in use again.
restore() {
    local path
    [[ -d $base/$replaced ]] || return 0
    while IFS= read -r path; do
        if [[ -e $base/$path || -L $base/$path ]]; then
            echo "uninstall: $base/$replaced/$path stays there, because $base/$path exists again"
        else
            mkdir -p "$(dirname "$base/$path")"
            mv "$base/$replaced/$path" "$base/$path"
            echo "uninstall: restored the previous $path"
        fi
    done < <(cd "$base/$replaced" && find . ! -type d | sed 's|^\./||' | sort)
    find "$base/$replaced" -depth -type d -empty -delete
}

"$command"
