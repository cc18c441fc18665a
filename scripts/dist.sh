#!/usr/bin/env bash
# Makes all parts of a release in target/dist, and publishes none of them: `cargo xtask dist`.
#
#   scripts/dist.sh [--here] [--twice] [PART...]
#
# | part    | |
# |---------|---|
# | library | tautline-VERSION-TARGET.tar.xz for each target: the library, its header, pkg-config and CMake files, licences, debug symbols |
# | taut    | taut-VERSION-PROCESSOR-linux.tar.xz: the command line as one file for any Linux, its pages and completions; and packages of it |
# | python  | the wheels of tautline-zmq |
# | node    | the npm packages: tautline, tautline-zeromq, and those of the addon and of the library for each target |
# | dotnet  | the NuGet package, with the library for each target |
# | systems | deb, rpm, Arch's and apk packages |
# | crates  | the crates, as they would go to crates.io |
# | sbom    | list of the crates that are linked into the library, in CycloneDX |
#
# Without parts, the script makes all. --here leaves out other processors. At the end, it writes SHA256SUMS over all files, and
# SHA256SUMS.minisig if MINISIGN_KEY names a secret key of minisign. SOURCE_DATE_EPOCH defaults to the last commit's time. The same
# commit, compiler and tools make the same bytes. --twice checks this with a clone of the commit in another folder.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR=$target
out=${DIST:-$target/dist}
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1577836800)}
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022

here=$(uname -m) twice=
arguments=()
targets=({x86_64,aarch64}-unknown-linux-gnu.2.17 {x86_64,aarch64}-unknown-linux-musl)
addons=("${targets[@]}" armv7-unknown-linux-gnueabihf.2.17)
parts=()
for argument in "$@"; do
    case $argument in
        --here) arguments+=(--here) targets=("$here-unknown-linux-gnu.2.17" "$here-unknown-linux-musl") addons=("${targets[@]}") ;;
        --twice) twice=yes ;;
        library | taut | python | node | dotnet | systems | crates | sbom) parts+=("$argument") ;;
        *) sed -n '2,/^set /p' "$0" | sed '/^set /d; s/^# \{0,1\}//'; exit 2 ;;
    esac
done
[[ ${#parts[@]} -gt 0 ]] || parts=(library taut python node dotnet systems crates sbom)

say() { echo "dist: $*"; }

xtask() { cargo run --quiet -p xtask -- "$@"; }

# cross TARGET PART: builds the part once, and prints its folder.
cross() {
    local folder=$target/cross/$1
    if [[ ! -e $work/built-$1-$2 ]]; then
        xtask cross "$1" "$2" >&2
        touch "$work/built-$1-$2"
    fi
    echo "$folder"
}

# built TARGET: prints the folder of its libraries.
built() { cross "$1" build; }

# addon TARGET: prints the file of its Node.js addon.
addon() { echo "$(cross "$1" addon)/tautline.$(npm_name "$1").node"; }

# tool TARGET NAME: prints the path of the tool of binutils for the target's processor.
tool() {
    local machine=${1%%-*} name=$2
    if [[ $machine != "$here" ]]; then
        name=${machine//_/-}-linux-gnu-$name
        scripts/need.sh "$name:binutils-${machine//_/-}-linux-gnu" >&2
    fi
    command -v "$name"
}

# stripped TARGET: prints the path of the shared library without debug symbols.
stripped() {
    local file=$work/stripped/$1/libzmq.so.5
    mkdir -p "${file%/*}"
    "$(tool "$1" strip)" -o "$file" "$(built "$1")/libzmq.so"
    echo "$file"
}

library() {
    local name stage
    for name in "${targets[@]}"; do
        stage=$work/library/$name
        mkdir -p "$stage/release"
        cp "$(built "$name")"/libzmq.{so,a} "$stage/release/"
        CARGO_TARGET_DIR=$stage DESTDIR=$stage/root PREFIX=/usr/local OBJCOPY=$(tool "$name" objcopy) STRIP=$(tool "$name" strip) \
            packaging/install.sh install >&2
        rm -r "$stage/root/usr/local/share/tautline"
        tar -C "$stage/root/usr" --transform "s|^local|tautline-$version-$name|" --sort=name --mtime="@$SOURCE_DATE_EPOCH" \
            --owner=0 --group=0 --numeric-owner --mode=go=rX -cf - local | xz -9 -T1 >"$out/tautline-$version-$name.tar.xz"
    done
}

taut() {
    local name stage pages=$work/taut/share own
    own=$(cross "$here-unknown-linux-musl" taut)/taut
    mkdir -p "$pages"/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
    "$own" man --out "$pages/man/man1" >&2
    "$own" completions bash >"$pages/bash-completion/completions/taut"
    "$own" completions zsh >"$pages/zsh/site-functions/_taut"
    "$own" completions fish >"$pages/fish/vendor_completions.d/taut.fish"
    for name in "${targets[@]}"; do
        [[ $name == *-musl ]] || continue
        stage=$work/taut/taut-$version-${name%%-*}-linux
        mkdir -p "$stage/bin"
        "$(tool "$name" strip)" -o "$stage/bin/taut" "$(cross "$name" taut)/taut"
        cp -r "$pages" "$stage"
        OUT=$out packaging/systems/taut.sh "$stage" "$version" >&2
        mkdir -p "$stage/share/doc/taut"
        cp LICENSE-MIT LICENSE-APACHE packaging/THIRD-PARTY-TAUT.txt docs/operate/taut*.md "$stage/share/doc/taut"
        tar -C "$work/taut" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=go=rX -cf - "${stage##*/}" |
            xz -9 -T1 >"$out/${stage##*/}.tar.xz"
    done
}

python() {
    local name wheels
    for name in "${targets[@]}"; do
        wheels=$(LIBRARY=$(built "$name")/libzmq.so packaging/python/build.sh "$name")
        xargs -d '\n' cp -t "$out" <<<"$wheels"
    done
}

node() {
    local options=() name
    scripts/need.sh node:nodejs npm:npm >&2
    for name in "${targets[@]}"; do
        options+=(--library "$(npm_name "$name")=$(stripped "$name")")
    done
    for name in "${addons[@]}"; do options+=(--addon "$(npm_name "$name")=$(addon "$name")"); done
    command node bindings/node/scripts/pack.mjs --out "$out" "${options[@]}" >&2
}

# npm_name TARGET: prints npm's name of the target. dotnet_name TARGET: prints .NET's.
npm_name() {
    local cpu=x64 libc=gnu
    case $1 in aarch64-*) cpu=arm64 ;; armv7-*) cpu=arm ;; esac
    [[ $1 != *-musl ]] || libc=musl
    echo "linux-$cpu-$libc"
}
dotnet_name() {
    local name
    name=$(npm_name "$1")
    case $name in *-gnu) echo "${name%-gnu}" ;; linux-*-musl) name=${name#linux-} && echo "linux-musl-${name%-musl}" ;; esac
}

dotnet() {
    local own=$work/dotnet name native assemblies newer
    scripts/need.sh mcs:mono-mcs mono:mono-runtime python3:python3 >&2
    assemblies=$(bindings/dotnet/runtime.sh "$target/bindings/dotnet/runtime")
    newer=$(bindings/dotnet/runtime.sh "$target/bindings/dotnet/runtime8" net8)
    bindings/dotnet/build.sh "$own/built" "$assemblies" "$newer" >&2
    bindings/dotnet/refer.sh "$own/built" "$assemblies" "$newer" >&2
    for name in "${targets[@]}"; do
        native=$own/natives/$(dotnet_name "$name")/native
        mkdir -p "$native"
        cp "$(stripped "$name")" "$native"
    done
    bindings/dotnet/pack.py "$own/built/lib" "$own/natives" "$out" >&2
}

systems() {
    local name
    for name in "${targets[@]}"; do
        LIBRARIES=$(built "$name") OUT=$out packaging/systems/build.sh "$version" >&2
    done
}

crates() {
    # All in one command: each crate needs those before it, and the registry does not have them yet.
    cargo package --quiet --no-verify --allow-dirty -p tautline-mem -p tautline-proto -p tautline-io -p tautline-observe -p tautline-policy -p tautline-names -p tautline-queue -p tautline-timing -p tautline-config -p tautline-core -p tautline-host -p tautline --target-dir "$work/crates" >&2
    cp "$work"/crates/package/*.crate "$out"
}

# The tool comes from CycloneDX itself.
sbom() {
    local release=0.5.9 tools=$target/tools/cyclonedx text
    if [[ ! -x $tools/bin/cargo-cyclonedx ]]; then
        say "installing cargo-cyclonedx $release into $tools"
        cargo install --quiet --locked --root "$tools" cargo-cyclonedx --version "$release" >&2
    fi
    "$tools/bin/cargo-cyclonedx" cyclonedx --quiet --manifest-path crates/libzmq/Cargo.toml --format json --no-build-deps \
        --target x86_64-unknown-linux-gnu --override-filename "tautline-$version.cdx" >&2
    # The tool names crates by their folders. The root becomes /tautline, as in libraries that `cargo xtask cross` builds.
    text=$(<"crates/libzmq/tautline-$version.cdx.json")
    printf '%s\n' "${text//"file://${root// /%20}/"/file:///tautline/}" >"$out/tautline-$version.cdx.json"
    find crates xtask bench -name "tautline-$version.cdx.json" -delete
}

make_all() {
    local part
    rm -rf "$out"
    mkdir -p "$out"
    work=$(mktemp -d)
    for part in "${parts[@]}"; do
        say "$part, since $(date +%T)"
        "$part"
    done
    rm -rf "$work"
    (cd "$out" && sha256sum -- * >"$work.sums" && mv "$work.sums" SHA256SUMS)
}

if [[ -n $twice && -n $(git status --porcelain) ]]; then
    echo "dist: --twice builds a clone of the last commit, but this tree has uncommitted changes" >&2
    exit 1
fi
xtask check >/dev/null || { xtask check; exit 1; }
grep -q "^## \[\?$version\]\?" CHANGELOG.md || say "CHANGELOG.md has no section for $version, so this is not a release"
make_all
if [[ -n $twice ]]; then
    elsewhere=$(mktemp -d)
    trap 'rm -rf "$elsewhere"' EXIT
    say "second build, from a clone in $elsewhere"
    git clone --quiet . "$elsewhere/another-folder"
    (cd "$elsewhere/another-folder" && env -u CARGO_TARGET_DIR -u DIST -u MINISIGN_KEY scripts/dist.sh "${arguments[@]}" "${parts[@]}")
    if diff "$out/SHA256SUMS" "$elsewhere/another-folder/target/dist/SHA256SUMS"; then
        say "both builds are identical"
    else
        say "the two builds differ: see above"
        exit 1
    fi
fi
if [[ -n ${MINISIGN_KEY:-} ]]; then
    scripts/need.sh minisign:minisign >&2
    minisign -S -s "$MINISIGN_KEY" -m "$out/SHA256SUMS" -t "Tautline $version"
fi
(cd "$out" && ls -l --time-style=+ | awk 'NR > 1 { printf "%10d  %s\n", $5, $NF }')
say "$(find "$out" -type f | wc -l) files in $out"
