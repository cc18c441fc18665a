#!/usr/bin/env bash
# Tests the crate as a user gets it. Packages all of its parts and puts them into a registry in a folder, beside their dependencies.
# Then builds and runs the first example of the README as a project that got the crate with `cargo add`. Also checks this project
# with the oldest compiler that Cargo.toml names, if rustup has it or can fetch it.
#
#   package    every part can be packaged, with its README and the texts of its licences
#   publish    crates.io would accept the parts: `cargo publish --dry-run`, without a warning; skipped without a network
#   registry   a registry of the packages, and `cargo add tautline` from it
#   example    the README's first example builds against the packages and runs, with a C compiler that always fails
#   tree       the built crates do not compile C code or look for C libraries
#   refusals   operations that a socket type does not support fail to compile, and the compiler prints our explanation
#   features   the same project with every optional feature that needs no C compiler
#   msrv       the project builds with the oldest compiler
#
# Works without a network if Cargo has fetched the dependencies already.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
cd "$root"
scripts/need.sh cargo:cargo cc:gcc tar:tar python3:python3

crates=(tautline-mem tautline-proto tautline-io tautline-observe tautline-policy tautline-names tautline-queue tautline-timing tautline-config tautline-core tautline-host tautline)
# Every optional feature that needs no C compiler.
optional=tokio,bytes,futures,tracing,metrics,serde
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
mkdir -p "$target"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# step NAME COMMAND...: runs a step and counts it.
step() {
    local name=$1
    shift
    echo "package: $name"
    if "$@" >"$work/log" 2>&1; then
        echo "package: $name: ok"
        passed=$((passed + 1))
    else
        echo "package: $name: FAILED"
        tail -n 30 "$work/log"
        failed=$((failed + 1))
    fi
}

# Tries without a network first, because Cargo usually has all packages.
cargo_run() { cargo "$@" --offline || cargo "$@"; }

package() {
    local options=()
    for crate in "${crates[@]}"; do options+=(-p "$crate"); done
    # The verification would build all packages again. The project below is a better test.
    cargo_run package --allow-dirty --no-verify "${options[@]}" --target-dir "$target" || return
    mkdir -p "$work/crates"
    for crate in "${crates[@]}"; do
        local file
        file=$(ls -t "$target/package/$crate"-[0-9]*.crate | head -n 1)
        tar -xzf "$file" -C "$work/crates" || return
        mv "$work/crates/$(basename "$file" .crate)" "$work/crates/$crate"
        cp "$file" "$work/$crate.crate"
        [[ -s $work/crates/$crate/README.md ]] || return
        for text in LICENSE-MIT LICENSE-APACHE; do cmp "$text" "$work/crates/$crate/$text" || return; done
    done
}

publish() {
    local options=()
    for crate in "${crates[@]}"; do options+=(-p "$crate"); done
    cargo publish --dry-run --allow-dirty --no-verify "${options[@]}" --target-dir "$target" || return
    # $work/log has the output of this step.
    ! grep '^warning' "$work/log" | grep -v 'aborting upload due to dry run'
}

# Makes a registry in a folder, in place of crates.io. It has our packages, and their dependencies in the versions with which the
# workspace is tested. The project gets all its crates from this registry.
registry() {
    local parts=$work/parts app=$work/app crate
    mkdir -p "$parts/src" && : >"$parts/src/lib.rs"
    {
        printf '[package]\nname = "parts"\nversion = "0.0.0"\nedition = "2024"\n\n[dependencies]\n'
        printf 'tautline = { version = "*", features = ["%s"] }\n\n[patch.crates-io]\n' "${optional//,/\", \"}"
        for crate in "${crates[@]}"; do printf '%s = { path = "%s" }\n' "$crate" "$work/crates/$crate"; done
    } >"$parts/Cargo.toml"
    cp "$root/Cargo.lock" "$parts/Cargo.lock"
    cargo_run vendor --manifest-path "$parts/Cargo.toml" "$work/registry" || return
    for crate in "${crates[@]}"; do
        cp -R "$work/crates/$crate" "$work/registry/$crate" || return
        printf '{"files":{},"package":"%s"}' "$(sha256sum "$work/$crate.crate" | cut -d ' ' -f 1)" >"$work/registry/$crate/.cargo-checksum.json"
    done
    cargo new --quiet --vcs none --name app "$app" || return
    mkdir "$app/.cargo"
    printf '[source.crates-io]\nreplace-with = "folder"\n\n[source.folder]\ndirectory = "%s"\n' "$work/registry" >"$app/.cargo/config.toml"
    (cd "$app" && cargo add tautline)
}

project() {
    # Takes the first code block in Rust.
    awk '/^```rust/ { on = 1; next } /^```/ && on { exit } on' "$work/registry/tautline/README.md" >"$work/app/src/main.rs"
    grep -q 'fn main' "$work/app/src/main.rs"
}

# A C compiler's driver is still the linker, but a build script that compiles C code fails.
in_app() { (cd "$work/app" && CC=/bin/false CXX=/bin/false CARGO_TARGET_DIR=$target/package-app cargo_run "$@"); }

example() { project && in_app run --quiet; }

tree() {
    ! in_app tree --edges normal,build --prefix none --features "tautline/${optional//,/,tautline/}" |
        grep -E '^(cc|cmake|bindgen|pkg-config|vcpkg|[a-z0-9-]*-sys) v' | grep -vE '^(windows|linux-raw)-sys '
}

features() { in_app build --quiet --features "tautline/${optional//,/,tautline/}"; }

refusals() {
    mkdir -p "$work/app/src/bin"
    cat >"$work/app/src/bin/refused.rs" <<'RUST'
fn main() {
    let context = tautline::Context::new();
    tautline::Pull::new(&context).unwrap().send("no").unwrap();
    tautline::Push::new(&context).unwrap().recv().unwrap();
    tautline::Req::new(&context).unwrap().split();
    let _ = tautline::Dealer::builder(&context).subscribe("");
    let _ = tautline::Push::builder(&context).no_drop(true);
}
RUST
    local code=0
    in_app check --quiet --bin refused >"$work/refused.log" 2>&1 || code=$?
    rm -r "$work/app/src/bin"
    cat "$work/refused.log"
    [[ $code -ne 0 ]] && grep -q 'Pull` sockets do not send' "$work/refused.log" && grep -q 'Push` sockets do not receive' "$work/refused.log" &&
        grep -q 'Req` sockets cannot be split' "$work/refused.log" && grep -q 'Dealer` sockets do not subscribe' "$work/refused.log" &&
        grep -q 'Push` sockets have no subscribers' "$work/refused.log"
}

msrv() { (cd "$work/app" && CARGO_TARGET_DIR=$target/package-msrv cargo_run "+$oldest" check --quiet); }

step package package
# `cargo publish --dry-run` needs crates.io.
if timeout 60 cargo info --quiet --registry crates-io libc >/dev/null 2>&1; then
    step publish publish
else
    echo "package: publish: skipped, crates.io cannot be reached"
    skipped=$((skipped + 1))
fi
step registry registry
step example example
step tree tree
step refusals refusals
step features features

oldest=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)
if cargo "+$oldest" --version >/dev/null 2>&1 ||
    timeout 300 rustup toolchain install "$oldest" --profile minimal --no-self-update >/dev/null 2>&1; then
    step "msrv $oldest" msrv
else
    echo "package: msrv: skipped, there is no Rust $oldest here and rustup cannot get it"
    skipped=$((skipped + 1))
fi

echo "package: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
