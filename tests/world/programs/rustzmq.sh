#!/usr/bin/env bash
# Runs the tests of the Rust crate zmq 0.10, linked dynamically, except the tests of compile errors.
set -euo pipefail

. "$(dirname "$0")/common.sh"
start rustzmq "$@"
need cargo:cargo gcc:gcc

# Fetches the published crate and its dependencies, in their current versions, and makes the crate a separate workspace.
fetch_crate() {
    mkdir -p fetch/src && : >fetch/src/lib.rs
    cat >fetch/Cargo.toml <<'TOML'
[package]
name = "fetch"
version = "0.0.0"
edition = "2021"
[dependencies]
zmq = "=0.10.0"
[workspace]
TOML
    (cd fetch && cargo vendor --quiet vendor >/dev/null) && cp -r fetch/vendor/zmq source && rm -rf fetch &&
        sed -i '/^\[dev-dependencies.trybuild\]/,/^$/d' source/Cargo.toml && echo '[workspace]' >>source/Cargo.toml &&
        rm -f source/tests/compile-tests.rs && cd source && cargo fetch
}
fetch rustzmq-0.10.0 fetch_crate
mkdir -p "$cache/rustzmq-0.10.0/source/.cargo"
cat >"$cache/rustzmq-0.10.0/source/.cargo/config.toml" <<TOML
[target.$(rustc -vV | sed -n 's/^host: //p').zmq]
rustc-link-search = ["$prefix/lib"]
rustc-link-lib = ["zmq"]
TOML
cd "$cache/rustzmq-0.10.0/source"
export CARGO_TARGET_DIR=$cache/rustzmq-0.10.0/target
cargo test --offline --no-run >"$work/build.log" 2>&1 || { tail -n 30 "$work/build.log"; count 0 1 0; finish; }
# The tests use fixed ports.
alone timeout 300 cargo test --offline --no-fail-fast >"$work/tests.log" 2>&1 || echo "cargo test's exit code: $?"
grep -E '^test .* FAILED$|panicked at' -A 3 "$work/tests.log" || true
read -r p f s < <(awk '/^test result: / {p += $4; f += $6; s += $8} END {print p + 0, f + 0, s + 0}' "$work/tests.log")
count "$p" "$f" "$s"
check "the tests load only this libzmq" witnessed
finish
