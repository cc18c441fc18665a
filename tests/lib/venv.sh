# The Python of both scripts here: `. venv.sh` sets $venv, in $target/interop.
"$root/scripts/need.sh" python3:python3 py=ensurepip:python3-venv >&2
venv=$target/interop/venv
if [[ ! -e $venv/.complete-3 ]]; then
    rm -rf "$venv"
    python3 -m venv "$venv"
    "$venv/bin/pip" --quiet --disable-pip-version-check install --only-binary :all: pyzmq==27.1.0 websockets==15.0.1 trustme==1.2.1
    touch "$venv/.complete-3"
fi
