# shellcheck shell=bash
# The Python of the suites: `. tests/lib/venv.sh` sets $venv. The caller has set $root and $target.
"$root/scripts/need.sh" python3:python3 py=ensurepip:python3-venv >&2
venv=$target/test/venv
mkdir -p "$target/test"
(
    # Several suites may run this script at once.
    flock 9
    if ! cmp -s "$root/tests/lib/requirements.txt" "$venv/.installed"; then
        rm -rf "$venv"
        python3 -m venv "$venv"
        "$venv/bin/python" -m pip --quiet --disable-pip-version-check install --no-deps --only-binary :all: \
            -r "$root/tests/lib/requirements.txt"
        cp "$root/tests/lib/requirements.txt" "$venv/.installed"
    fi
) 9>"$target/test/venv.lock"

# run_pytest SUITE AGAIN ARGUMENT...: runs pytest with the options that all suites share (tests/lib/python/suite.py).
# AGAIN is the command that repeats one test when its name is appended.
run_pytest() {
    local suite=$1 again=$2
    shift 2
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests/lib/python "$venv/bin/python" -m pytest -p suite -p no:cacheprovider \
        --suite "$suite" --again "$again" --timeout "${TEST_TIMEOUT:-300}" --tb short -rN -v "$@"
}
