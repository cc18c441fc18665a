# For scripts that need programs from PyPI: `. packaging/tools.sh`.

# pinned_tools FOLDER REQUIREMENTS: sets `tools` to a Python environment in FOLDER with the pinned packages of the file REQUIREMENTS.
# Each content of that file gets one environment. Several scripts may call the function at the same time.
pinned_tools() {
    tools=$1/$(sha1sum <"$2" | cut -c1-12)
    mkdir -p "$1"
    exec 9>"$1/.lock"
    flock 9
    if [[ ! -e $tools/.complete ]]; then
        echo "tools: installing $(sed '/^#/d; s/[=; ].*//' "$2" | paste -sd ' ') into $tools" >&2
        rm -rf "$tools"
        python3 -m venv "$tools"
        "$tools/bin/pip" --disable-pip-version-check install --quiet --no-deps --only-binary :all: -r "$2" >&2
        touch "$tools/.complete"
    fi
    exec 9>&-
}
