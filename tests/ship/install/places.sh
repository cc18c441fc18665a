# Checks that `make install` puts the files in their places, and that `make uninstall` removes exactly these files. Sourced by run.sh.

installs() { make --no-print-directory install "$@"; }
uninstalls() { make --no-print-directory uninstall "$@"; }
# everything FOLDER: lists all files and folders in it, for a comparison.
everything() { (cd "$1" && find . -printf '%y %p %l\n' | sort); }

stripped() {
    local file=$prefix/lib/libzmq.so.5.2.5 size
    [[ $(readlink -f "$prefix/lib/libzmq.so.5") == "$file" ]]
    fails grep -E '\.(debug_|symtab)' < <(readelf -SW "$file")
    size=$(stat -c %s "$file")
    echo "$size bytes"
    [[ $size -le $((250 * 1024 * 1024 / 100)) ]]
    fails grep -F .debug_ < <(readelf -SW "$prefix/lib/libzmq.a")
}

debug_symbols() {
    local file=$prefix/lib/libzmq.so.5.2.5 id
    id() { readelf -n "$1" | sed -n 's/.*Build ID: //p'; }
    [[ -n $(id "$file") && $(id "$file") == "$(id "$prefix/lib/.debug/libzmq.so.5.2.5.debug")" ]]
    readelf -p .gnu_debuglink "$file" | grep -F libzmq.so.5.2.5.debug
    # Without this setting, gdb could find another copy of the symbols.
    gdb -nx -batch -ex 'set debug-file-directory /nonexistent' -ex 'info line zmq_ctx_new' "$file" | tee "$work/gdb"
    grep -E 'Line [0-9]+ of "crates/abi/src/context.rs"' "$work/gdb"
}

tells_its_version() {
    strings "$prefix/lib/libzmq.so.5" | grep "^Tautline $version$"
    strings "$(readlink -f "$work/static")" | grep "^Tautline $version$"
}

licences() {
    local file
    for file in LICENSE-MIT LICENSE-APACHE packaging/THIRD-PARTY.txt; do cmp "$file" "$prefix/share/doc/tautline/${file##*/}"; done
    scripts/licences.sh --check
}

# without_tools: sets `bare` to a PATH on which cargo, rustup and package managers log their calls in $work/called and fail.
without_tools() {
    local tool bin=$work/no-tools
    rm -rf "$bin" "$work/called"
    mkdir -p "$bin"
    for tool in cargo rustup rustc apt-get apt dnf curl; do
        printf '#!/bin/sh\necho "%s $*" >>"%s"\nexit 1\n' "$tool" "$work/called" >"$bin/$tool"
        chmod +x "$bin/$tool"
    done
    bare=$bin:/usr/sbin:/usr/bin:/sbin:/bin
}
on_a_path_without_tools() {
    without_tools
    env PATH="$bare" "$@"
    [[ ! -e $work/called ]] || { cat "$work/called"; false; }
}
builds_nothing() {
    on_a_path_without_tools make --no-print-directory install PREFIX="$work/unbuilt"
    on_a_path_without_tools make --no-print-directory uninstall PREFIX="$work/unbuilt"
    [[ ! -e $work/unbuilt ]]
}

nothing_built() {
    mkdir -p "$work/empty"
    fails installs CARGO_TARGET_DIR="$work/empty" PREFIX="$work/unbuilt" 2>"$work/said"
    cat "$work/said"
    grep -F "no libzmq.so in $work/empty/release" "$work/said"
    grep -F 'run make build first' "$work/said"
    [[ ! -e $work/unbuilt && -z $(ls -A "$work/empty") ]]
}

last_line() { # one line names the installed files, the next step and the way back
    local place=$work/line line
    line=$(installs PREFIX="$place" | tee /dev/stderr)
    [[ $(wc -l <<<"$line") -eq 1 ]]
    [[ $line == "installed Tautline $version in $place: lib/libzmq.so.5, "* ]]
    [[ $line == *"export LD_LIBRARY_PATH=$place/lib PKG_CONFIG_PATH=$place/lib/pkgconfig; "* ]]
    [[ $line == *"to uninstall: make uninstall PREFIX=$place" ]]
    uninstalls PREFIX="$place"
}

leaves_nothing() { # removes the installed files and folders, also folders above the prefix; foreign files stay
    mkdir -p "$work/place/lib/pkgconfig"
    echo else >"$work/place/lib/pkgconfig/else.pc"
    everything "$work/place" >"$work/before"
    installs PREFIX="$work/place"
    installs PREFIX="$work/place"
    uninstalls PREFIX="$work/place"
    everything "$work/place" | diff "$work/before" -
    installs PREFIX="$work/place/a/b/c" LIBDIR=lib/x86_64-linux-gnu
    uninstalls PREFIX="$work/place/a/b/c"
    everything "$work/place" | diff "$work/before" -
    installs DESTDIR="$work/place/package" PREFIX=/usr LIBDIR=lib64
    [[ -f $work/place/package/usr/lib64/libzmq.so.5.2.5 ]]
    grep -x 'prefix=/usr' "$work/place/package/usr/lib64/pkgconfig/libzmq.pc"
    uninstalls DESTDIR="$work/place/package" PREFIX=/usr
    everything "$work/place" | diff "$work/before" -
    fails uninstalls PREFIX="$work/place" 2>"$work/said"
    grep -F 'make install did not install Tautline there' "$work/said"
    everything "$work/place" | diff "$work/before" -
}

two_libdirs() { # the second installation keeps the first one's files in the manifest
    installs PREFIX="$work/two"
    installs PREFIX="$work/two" LIBDIR=lib64
    [[ -e $work/two/lib/libzmq.so.5 && -e $work/two/lib64/libzmq.so.5 ]]
    uninstalls PREFIX="$work/two"
    [[ ! -e $work/two ]]
}

spaces() { # in PREFIX, LIBDIR, the sources and the target folder; programs can be built against the installation
    local source="$work/so urce" place="$work/pre fix/us'r" out="$work/tar get"
    mkdir -p "$source" "$out/release"
    git -C "$root" ls-files -z -- Makefile Cargo.toml packaging scripts include 'LICENSE-*' | tar -C "$root" --null -T - -cf - | tar -C "$source" -xf -
    ln "$target/release/libzmq.so" "$target/release/libzmq.a" "$out/release/" || cp "$target"/release/libzmq.{so,a} "$out/release/"
    everything "$source" >"$work/before"
    make --no-print-directory -C "$source" install PREFIX="$place" LIBDIR="li b" CARGO_TARGET_DIR="$out"
    local flags
    flags=$(PKG_CONFIG_PATH="$place/li b/pkgconfig" pkg-config --cflags --libs libzmq)
    eval "gcc '$work/main.c' -o '$work/spaces' $flags"
    [[ $(LD_LIBRARY_PATH="$place/li b" "$work/spaces") == 4.3.5 ]]
    mkdir -p "$work/cmake spaces"
    cp "$work/main.c" "$work/cmake/CMakeLists.txt" "$work/cmake spaces"
    sed -i 's/ZeroMQ 4\.[34] /ZeroMQ 4.3 /' "$work/cmake spaces/CMakeLists.txt"
    cmake -S "$work/cmake spaces" -B "$work/cmake spaces/build" -DZeroMQ_DIR="$place/li b/cmake/ZeroMQ"
    cmake --build "$work/cmake spaces/build"
    "$work/cmake spaces/build/with_shared"
    make --no-print-directory -C "$source" uninstall PREFIX="$place"
    [[ ! -e "$work/pre fix" && ! -e $work/pre ]]
    everything "$source" | diff "$work/before" -
}

changed_since() { # a file that was changed after the installation stays
    installs PREFIX="$work/changed"
    echo mine >"$work/changed/include/zmq.h"
    uninstalls PREFIX="$work/changed" | tee "$work/said"
    grep -F "$work/changed/include/zmq.h was changed after the installation" "$work/said"
    [[ $(everything "$work/changed" | grep -c '^[fl]') -eq 1 && $(<"$work/changed/include/zmq.h") == mine ]]
}

replaced() { # `make uninstall` restores the libzmq that was there before
    local place=$work/replaced
    mkdir -p "$place/lib" "$place/include"
    echo theirs >"$place/lib/libzmq.so.5.2.4"
    ln -s libzmq.so.5.2.4 "$place/lib/libzmq.so.5"
    echo theirs >"$place/include/zmq.h"
    everything "$place" >"$work/before"
    installs PREFIX="$place" | tee "$work/said"
    grep -F "another lib/libzmq.so.5 is kept in $place/share/tautline/replaced" "$work/said"
    installs PREFIX="$place"
    cmp include/zmq.h "$place/include/zmq.h"
    uninstalls PREFIX="$place"
    everything "$place" | diff "$work/before" -
    [[ $(<"$place/include/zmq.h") == theirs ]]
}

packages_files() { # a file that a package owns stays unchanged
    command -v dpkg-query >/dev/null || skip "this is no Debian"
    local place=$work/owned database=$work/dpkg
    mkdir -p "$place/include" "$database/info" "$database/updates"
    echo theirs >"$place/include/zmq.h"
    printf 'Package: libzmq3-dev\nStatus: install ok installed\nMaintainer: nobody\nVersion: 4.3.4\nArchitecture: all\nDescription: none\n\n' \
        >"$database/status"
    printf '/.\n%s\n' "$place/include/zmq.h" >"$database/info/libzmq3-dev.list"
    everything "$place" >"$work/before"
    fails env DPKG_ADMINDIR="$database" make --no-print-directory install PREFIX="$place" 2>"$work/said"
    cat "$work/said"
    grep -F "$place/include/zmq.h (libzmq3-dev)" "$work/said"
    everything "$place" | diff "$work/before" -
    [[ $(<"$place/include/zmq.h") == theirs ]]
}

bad_manifest() { # files outside of the prefix stay, even if the manifest names them
    installs PREFIX="$work/bad"
    echo precious >"$work/precious"
    printf 'file\t%s\t../precious\n' "$(sha256sum <"$work/precious" | cut -d' ' -f1)" >>"$work/bad/share/tautline/manifest"
    fails uninstalls PREFIX="$work/bad"
    [[ -e $work/precious && -e $work/bad/lib/libzmq.so.5 ]]
    fails installs PREFIX="$work/bad" LIBDIR=../lib
    fails installs PREFIX="$work/bad" LIBDIR=/lib
    fails installs PREFIX=relative
    [[ ! -e relative ]]
}

check 'the libraries are stripped, the shared one has at most 2.5 MB' stripped
check 'gdb finds the debug symbols' debug_symbols
check 'the stripped library contains its version' tells_its_version
check 'licences' licences
check 'make install builds and fetches nothing' builds_nothing
check 'make install without a build names the next step' nothing_built
check 'make install ends with one line for the next steps' last_line
check 'make uninstall removes all its files and folders' leaves_nothing
check 'make uninstall after two installations' two_libdirs
check 'spaces in paths' spaces
check 'make uninstall keeps changed files' changed_since
check 'make uninstall restores replaced files' replaced
check 'make install keeps files that a package owns' packages_files
check 'make uninstall stays in the prefix' bad_manifest
