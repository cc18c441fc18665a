#!/usr/bin/env bash
# Tries docs/start/languages.md as a new user of each language does: runs the unchanged commands of each section in an
# empty directory with a small program from programs/.
#
#   tests/world/languages/run.sh [PREFIX [SECTION...]]     PREFIX: an installation; if empty, the script builds one
#
# The package managers need their registries. A section is skipped, with its name, if its tools are missing or its packages
# cannot be fetched. Debian's packages are unpacked instead of installed, because they would put another libzmq into the
# loader's default path. Ends with `languages: N passed, N failed, N skipped`.
. "$(dirname "$0")/../programs/common.sh"
LIMIT=${LIMIT:-2200} start languages "$@"
# The commands of the page set LD_LIBRARY_PATH where they need it.
unset LD_LIBRARY_PATH
export PREFIX=$prefix TAUTLINE=$root
export PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONDONTWRITEBYTECODE=1 GOTOOLCHAIN=local npm_config_update_notifier=false
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$root/target}
# Go's build cache ignores the output of pkg-config. With the user's cache, a program would be linked with the library path
# of the package's last build.
export GOCACHE=$work/go-build
sections=("${@:2}")
[[ ${#sections[@]} -gt 0 ]] || sections=("C and C++" Python Node.js .NET Go Java Rust PHP)

# commands SECTION: prints the commands of all shell blocks of a section. If Debian's packages belong to the section, `installed`
# is the folder of the unpacked packages, and replaces the root of their paths.
commands() {
    awk -v wanted="## $1" '/^## / { here = $0 == wanted } /^```$/ { inside = 0 } inside; here && /^```sh$/ { inside = 1 }' \
        "$root/docs/start/languages.md" | sed "s|\([ =]\)/usr/|\1${installed:-}/usr/|g"
}

# debs PACKAGE...: unpacks the packages once, and sets `debian` to their folder.
debs() {
    fetch "languages-$1" unpack_debs "$@"
    debian=$cache/languages-$1
}

tools() {
    "$root/scripts/need.sh" "$@" >&2 || { skip_section "needs $*"; return 1; }
}

skip_section() {
    echo "skipped $section: $1"
    count 0 0 1
}

# try COUNT: runs the section's commands. The programs must print `ok` COUNT times in all, and the loader must take our library.
try() {
    local expected=$1 log=$work/$slug.log code=0
    rm -rf "$work/loader" && mkdir "$work/loader"
    echo "  $section: running"
    commands "$section" >"$work/$slug.sh"
    (cd "$work/$slug" && witness bash -euo pipefail "$work/$slug.sh") >"$log" 2>&1 || code=$?
    local said loaded
    said=$(grep -c '^ok$' "$log" || true)
    loaded=$(cat "$work"/loader/process.* | sed -n 's/.*calling init: \(.*\/libzmq[^/]*\)$/\1/p' | sort -u | xargs -r -d '\n' realpath | sort -u)
    if [[ $code -ne 0 ]] && grep -qiE 'could not resolve|network|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|dial tcp|Failed to fetch|Could not fetch' "$log"; then
        skip_section "$(grep -iEm1 'resolve|network|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|dial tcp|fetch' "$log" | cut -c1-150)"
    elif [[ $code -eq 0 && $said -eq $expected ]] && grep -qxF "$library" <<<"$loaded"; then
        echo "  $section: ok"
        count 1 0 0
    else
        echo "FAILED $section: exit code $code, $said of $expected programs printed ok, the loader took: ${loaded:-no libzmq}"
        tail -n 30 "$log"
        echo "again: tests/world/languages/run.sh '' '$section'"
        count 0 1 0
    fi
}

programs() {
    local file
    for file in "$@"; do cp "$here/programs/${file%%=*}" "$work/$slug/${file##*=}"; done
}

for section in "${sections[@]}"; do
    slug=$(tr -cd '[:alnum:]' <<<"$section")
    mkdir -p "$work/$slug"
    case $section in
        "C and C++")
            tools cc:gcc c++:g++ pkg-config:pkg-config apt-get:apt dpkg:dpkg || continue
            debs cppzmq-dev
            programs program.c program.cpp
            CPLUS_INCLUDE_PATH=$debian/usr/include try 2 ;;
        Python)
            tools python3:python3 py=ensurepip:python3-venv || continue
            programs program.py
            try 2 ;;
        Node.js)
            tools node:nodejs npm:npm cargo:cargo || continue
            programs program.mjs
            try 2 ;;
        .NET)
            tools mcs:mono-mcs mono:mono-runtime file=/usr/lib/mono/4.5/System.Core.dll:libmono-system-core4.0-cil || continue
            programs Program.cs
            try 1 ;;
        Go)
            tools go:golang-go gcc:gcc pkg-config:pkg-config || continue
            programs main.go
            try 1 ;;
        Java)
            tools javac:default-jdk-headless apt-get:apt dpkg:dpkg || continue
            debs libzmq-java libzmq-jni
            programs Program.java
            # The unpacked files are in another folder than on the page.
            installed=$debian try 1 ;;
        Rust)
            tools cargo:cargo gcc:gcc || continue
            programs zmq.rs=program.rs tautline.rs=own.rs
            try 2 ;;
        PHP)
            tools apt-get:apt dpkg:dpkg || continue
            mapfile -t packages < <(php_packages)
            debs "${packages[@]}"
            programs program.php
            mkdir -p "$work/bin"
            # As Debian's configuration does, this loads the extension and finds PHP's own libraries.
            printf '#!/bin/sh\nLD_LIBRARY_PATH=$LD_LIBRARY_PATH:%s exec %s -n -d extension=%s "$@"\n' \
                "$(dirname "$(find "$debian" -name libedit.so.2 | head -n 1)")" "$(printf '%s\n' "$debian"/usr/bin/php[0-9]* | head -n 1)" \
                "$(find "$debian" -name zmq.so | head -n 1)" >"$work/bin/php"
            chmod +x "$work/bin/php"
            PATH=$work/bin:$PATH try 1 ;;
        *)
            echo "no section $section"
            count 0 1 0 ;;
    esac
done
finish
