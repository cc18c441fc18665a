# Tries each way of docs/start/install.md to put Tautline under an existing program, and back. Sourced by run.sh.

# stock: makes a libzmq.so.5 that is not Tautline, and programs built with it. They print 1 if they run on Tautline, and else 0.
stock() {
    [[ ! -e $work/asks ]] || return 0
    mkdir -p "$work/stock/lib"
    printf 'int zmq_has(const char *name) { (void) name; return 0; }\n' >"$work/stock/zmq.c"
    gcc -shared -fPIC -Wl,-soname,libzmq.so.5 "$work/stock/zmq.c" -o "$work/stock/lib/libzmq.so.5"
    printf '#include <stdio.h>\nint zmq_has(const char *);\nint main(void) { printf("%%d\\n", zmq_has("tautline")); return 0; }\n' \
        >"$work/stock/asks.c"
    gcc "$work/stock/asks.c" "$work/stock/lib/libzmq.so.5" -o "$work/asks"
    # A program that brings its own libzmq by RPATH, as wheels do, and then one with RUNPATH.
    gcc "$work/stock/asks.c" "$work/stock/lib/libzmq.so.5" -Wl,--disable-new-dtags,-rpath,"$work/stock/lib" -o "$work/brings"
    gcc "$work/stock/asks.c" "$work/stock/lib/libzmq.so.5" -Wl,--enable-new-dtags,-rpath,"$work/stock/lib" -o "$work/finds"
}

by_library_path() { # the program also runs after the folder is removed
    stock
    installs PREFIX="$work/way"
    [[ $("$work/finds") == 0 && $(LD_LIBRARY_PATH=$work/way/lib "$work/finds") == 1 && $("$work/finds") == 0 ]]
    uninstalls PREFIX="$work/way"
    [[ $(LD_LIBRARY_PATH=$work/way/lib "$work/finds") == 0 ]]
}

by_preload() {
    stock
    installs PREFIX="$work/way"
    [[ $("$work/brings") == 0 && $(LD_PRELOAD=$work/way/lib/libzmq.so.5 "$work/brings") == 1 && $("$work/brings") == 0 ]]
    uninstalls PREFIX="$work/way"
    [[ $(LD_PRELOAD=$work/way/lib/libzmq.so.5 "$work/brings" 2>"$work/said") == 0 ]]
    grep -F 'cannot be preloaded' "$work/said"
}

# in_a_world_of_its_own SCRIPT: runs the script with bash -e, with a private /usr/local and a private /etc.
in_a_world_of_its_own() {
    [[ $(id -u) -eq 0 ]] || skip "needs root"
    unshare -m true 2>/dev/null || skip "the kernel gives no mount namespace"
    mkdir -p "$work/world/local" "$work/world/etc"
    cp -a /etc/. "$work/world/etc"
    unshare -m bash -euo pipefail -c "mount --make-rprivate /; mount --bind '$work/world/local' /usr/local
        mount --bind '$work/world/etc' /etc; cd '$root'; $1"
}

whole_machine() { # make install to /usr/local and back: both update the loader's cache, and the distribution's library comes back
    stock
    in_a_world_of_its_own "
        echo '$work/stock/lib' >/etc/ld.so.conf.d/zz-stock.conf
        ldconfig
        asks() { '$work/asks'; }
        [[ \$(asks) == 0 ]]
        make --no-print-directory install | tee /dev/stderr | grep 'every program started from now on that asks for libzmq.so.5 runs on it'
        [[ \$(asks) == 1 ]]
        make --no-print-directory uninstall
        [[ \$(asks) == 0 ]]
        ! ldconfig -p | grep -F /usr/local/lib/libzmq
        [[ -z \$(ls -A /usr/local) ]]"
}

# blocks HEADING: writes the shell blocks of a section of the page to $work/block-1.sh, $work/block-2.sh and so on.
blocks() {
    rm -f "$work"/block-*
    awk -v wanted="## $1" -v out="$work/block-" '/^## / { here = $0 == wanted } /^```$/ { inside = 0 } inside { print > (out n ".sh") }
        here && /^```sh$/ { inside = 1; n++ }' docs/start/install.md
}

pyzmq() { # a copy replaces the library of pyzmq; it survives `make uninstall`, and pip can reinstall pyzmq over it
    local place=$work/python
    mkdir -p "$place"
    cd "$place" || return
    python3 -m venv venv
    venv/bin/pip install --quiet --disable-pip-version-check pyzmq==27.1.0 || skip "no registry"
    cd "$root" || return
    blocks 'Ways in, and back'
    installs PREFIX="$work/way"
    runs() { (cd "$place" && venv/bin/python -c 'import zmq; print(int(zmq.has("tautline")))'); }
    does() { (cd "$place" && PREFIX=$work/way bash -euo pipefail -c ". '$work/block-1.sh'; $1"); }
    [[ $(runs) == 0 ]]
    does true
    [[ $(runs) == 1 ]]
    (cd "$place" && venv/bin/python -c '
import zmq
context = zmq.Context()
assert context.get(0x54410002) >= 100
push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
pull.bind("inproc://told")
push.connect("inproc://told")
push.send(b"12345")
assert pull.recv() == b"12345"
# messages_sent and bytes_sent of zmq_tautline_statistics_t
assert push.get(0x54411000) == 1 and push.get(0x54411001) == 7
assert push.get(0x54412000) == 0
context.destroy()')
    uninstalls PREFIX="$work/way"
    [[ $(runs) == 1 ]]
    local back=()
    mapfile -t back <"$work/block-2.sh"
    [[ ${#back[@]} -eq 2 ]]
    installs PREFIX="$work/way"
    # Tries either line of the way back, and copies the library again between them.
    (cd "$place" && bundled=$(echo venv/lib/python3*/site-packages/pyzmq.libs/libzmq-*.so.5.*[0-9]) && eval "${back[0]}")
    [[ $(runs) == 0 ]]
    does true
    [[ $(runs) == 1 ]]
    (cd "$place" && eval "${back[1]}")
    [[ $(runs) == 0 ]]
    # The page warns of a symbolic link whose target is gone.
    (cd "$place" && ln -sf /nonexistent/libzmq.so.5 venv/lib/python3*/site-packages/pyzmq.libs/libzmq-*[0-9])
    fails runs
    rm "$place"/venv/lib/python3*/site-packages/pyzmq.libs/libzmq-*[0-9]
    (cd "$place" && venv/bin/pip install --force-reinstall --no-deps pyzmq==27.1.0)
    [[ $(runs) == 0 ]]
    uninstalls PREFIX="$work/way"
}

check 'LD_LIBRARY_PATH, and back' by_library_path
check 'LD_PRELOAD, and back' by_preload
check 'the whole machine, and back' whole_machine
check 'a copy into pyzmq, and back' pyzmq
