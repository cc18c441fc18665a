#!/usr/bin/env bash
# Rust with the crate zmq, linked dynamically. Variables and results: bench/languages/build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$ROOT/scripts/need.sh" cargo:cargo gcc:gcc
# zmq-sys would build its own libzmq unless it is told which one to link. Cargo's key for this is `links =
# "zmq"`.
cat >"$CACHE/config.toml" <<TOML
[target.$(rustc -vV | sed -n 's/^host: //p').zmq]
rustc-link-search = ["$LIBZMQ/lib"]
rustc-link-lib = ["zmq"]
TOML
cd "$here"
cargo build --quiet --release --locked --config "$CACHE/config.toml" --target-dir "$CACHE/target"
cp "$CACHE"/target/release/{local,remote}_{lat,thr} "$OUT"
{
    echo "runtime: $(rustc --version)"
    echo "binding: crate zmq 0.10.0"
} >"$OUT/versions.txt"
