#!/usr/bin/env bash
# Rust with the async sockets of our own crate, on one thread of tokio. Variables and results: bench/languages/build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$ROOT/scripts/need.sh" cargo:cargo gcc:gcc
cd "$here"
cargo build --quiet --release --locked --target-dir "$CACHE/target"
cp "$CACHE"/target/release/{local,remote}_{lat,thr} "$OUT"
{
    echo "runtime: $(rustc --version), tokio $(cargo pkgid --locked tokio | sed 's/.*[@#]//')"
    echo "binding: crate tautline ($(git describe --always --dirty 2>/dev/null || echo 'no commit'))"
} >"$OUT/versions.txt"
