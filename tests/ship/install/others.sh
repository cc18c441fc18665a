# Output of scripts/need.sh and the Makefile on other machines and for other users; sourced by run.sh.

# machine TOOL...: makes another machine. Its PATH, `bin`, has the commands that the scripts themselves need, and fakes of these tools:
#   cargo=VERSION      a cargo of that version
#   user=ID            an `id` that prints this user id
#   cargo-web=VERSION  an apt with Debian 12's packages of Rust, and cargo-web in that version
#   NAME               a command, such as a package manager, without effect
# apt-get and the tools without effect log their calls in $work/called.
machine() {
    local tool
    bin=$work/machine
    rm -rf "$bin" "$work/called"
    mkdir -p "$bin"
    for tool in bash sh env sed sort head awk grep realpath dirname printf cat id make rm touch chmod; do
        ln -s "$(command -v "$tool")" "$bin/$tool"
    done
    for tool in "$@"; do
        case $tool in
            cargo=*) printf '#!/bin/sh\necho "cargo %s (0 2026-01-01)"\n' "${tool#cargo=}" >"$bin/cargo" ;;
            user=*) rm "$bin/id" && printf '#!/bin/sh\ncase $1 in -u) echo %s ;; *) echo somebody ;; esac\n' "${tool#user=}" >"$bin/id" ;;
            cargo-web=*)
                printf '#!/bin/sh\n[ "$1" = policy ] || exit 0\ncase $2 in cargo) v=0.66.0+ds1-1 ;; cargo-web) v=%s ;; make) v=4.3 ;; *) exit 0 ;; esac\necho "$2:"\necho "  Candidate: $v"\n' \
                    "${tool#cargo-web=}" >"$bin/apt-cache"
                # An installation adds the commands of the same names, and a cargo of the package's version.
                cat >"$bin/apt-get" <<SH
#!/bin/sh
echo "apt-get \$*" >>"$work/called"
[ "\$1" = install ] || exit 0
for package; do
    case \$package in
        cargo-web) printf '#!/bin/sh\necho "cargo ${tool#cargo-web=}"\n' >"$bin/cargo" ;;
        gcc) printf '#!/bin/sh\n' >"$bin/gcc" ;;
        *) continue ;;
    esac
done
chmod +x "$bin"/cargo "$bin"/gcc
SH
                ;;
            *) printf '#!/bin/sh\necho "%s $*" >>"%s"\n' "$tool" "$work/called" >"$bin/$tool" ;;
        esac
    done
    for tool in "$bin"/*; do [[ -L $tool ]] || chmod +x "$tool"; done
}
# on COMMAND...: runs the command on that machine. Its output is in $work/said.
on() {
    local code=0
    env -i HOME="${HOME_THERE:-/nonexistent}" PATH="$bin" ${SUDO_THERE:+SUDO_USER=$SUDO_THERE} "$@" >"$work/said" 2>&1 || code=$?
    cat "$work/said"
    return "$code"
}
said() { grep -F -- "$1" "$work/said"; }

old_rust() {
    machine cargo=1.65.0 gcc user=1000 cargo-web=1.96.0
    fails on make build
    said 'missing Rust 1.89 or newer (cargo is 1.65.0)'
    said 'sudo apt-get install -y cargo-web'
    said https://rustup.rs
    # No package is new enough.
    machine cargo=1.65.0 gcc user=1000 cargo-web=1.85.0
    fails on make build
    said "this system's own packages of Rust are older"
    fails said 'apt-get install'
    # rustup is installed.
    machine cargo=1.65.0 rustup gcc user=1000
    fails on make build
    said 'rustup update stable'
    # The oldest accepted version, and newer versions.
    for version_there in 1.89.0 1.100.0 2.0.0; do
        machine cargo=$version_there gcc user=1000
        on scripts/need.sh cargo:cargo gcc:gcc
    done
}

hidden_rust() { # Rust may be installed, but is not on the caller's PATH
    mkdir -p "$work/home/.cargo/bin"
    touch "$work/home/.cargo/bin/cargo"
    chmod +x "$work/home/.cargo/bin/cargo"
    machine gcc user=1000
    HOME_THERE=$work/home fails on make build
    said '. ~/.cargo/env'
    machine gcc user=0
    SUDO_THERE=joe fails on make build
    said 'If joe has: build without sudo'
}

asks_before_it_installs() { # `make build` as root
    machine user=0 cargo-web=1.96.0
    fails on make build
    said 'missing Rust 1.89 or newer, gcc'
    said 'apt-get install -y cargo-web gcc'
    said INSTALL_TOOLS=1
    [[ ! -e $work/called ]]
    on env INSTALL_TOOLS=1 scripts/need.sh --tell cargo:cargo gcc:gcc
    said 'installing cargo-web gcc'
    grep -F 'install -y --no-install-recommends cargo-web gcc' "$work/called"
}

installs_as_root() { # need.sh as `make run`, `make test` and `make lint` call it
    machine user=0 cargo-web=1.96.0
    on scripts/need.sh cargo:cargo gcc:gcc
    said 'installing cargo-web gcc'
    # If no package of Rust is new enough, need.sh installs no tool at all and names all of them.
    machine user=0 cargo-web=1.85.0
    fails on scripts/need.sh cargo:cargo gcc:gcc
    said https://rustup.rs
    [[ ! -e $work/called ]]
    # A missing optional tool does not stop a build.
    machine user=1000 cargo=1.95.0 gcc cargo-web=1.96.0
    on scripts/need.sh cargo:cargo --also valgrind:valgrind
    said valgrind
}

all_at_once() { # before a build starts
    local name
    machine user=1000 cargo-web=1.96.0
    fails on env CARGO_TARGET_DIR="$work/nowhere" make run
    for name in cargo-web gcc cmake g++ pkg-config libsodium-dev; do said " $name"; done
    [[ $(grep -c 'apt-get install' "$work/said") -eq 1 ]]
    fails on env CARGO_TARGET_DIR="$work/nowhere" make lint
    for name in cargo-web gcc rustfmt rust-clippy; do said " $name"; done
    fails on env CARGO_TARGET_DIR="$work/nowhere" make test
    for name in cargo-web g++ libgnutls28-dev valgrind; do said " $name"; done
    [[ ! -e $work/nowhere && ! -e $work/called ]]
}

other_systems() {
    local pair manager
    for pair in 'dnf:sudo dnf install cargo gcc gcc-c++ libsodium-devel' 'apk:sudo apk add cargo gcc g++ libsodium-dev' \
        'pacman:sudo pacman -S --needed rust gcc libsodium' 'brew:brew install rust gcc libsodium'; do
        manager=${pair%%:*}
        machine "$manager" user=1000
        fails on scripts/need.sh cargo:cargo gcc:gcc g++:g++ lib=libsodium:libsodium-dev
        said "${pair#*:}"
        fails said apt-get
        # Also as root, need.sh does not run the package manager.
        machine "$manager" user=0
        fails on scripts/need.sh cargo:cargo gcc:gcc
        [[ ! -e $work/called ]]
    done
    machine user=1000
    fails on scripts/need.sh cargo:cargo gcc:gcc
    said 'that Debian calls gcc'
}

packages_are_listed() { # scripts/packages.txt has the names on other systems for each package that a script asks for
    local package missing=0
    for package in $(grep -rhoE 'need\.sh"? [^|&;>]*' .ci scripts tests/wire/interop tests/host/soak tests/wire/upstream tests/wire/attacks bench/languages Makefile |
        grep -oE '[a-z0-9+=/._-]+:[a-z0-9+.-]+' | cut -d: -f2 | sort -u); do
        # Except names that a script completes for other processors, and packages that it asks for only on Debian.
        case $package in cargo | qemu-user-static | gdb | *-) continue ;; esac
        grep -q "^$package " scripts/packages.txt || { echo "scripts/packages.txt has no $package"; missing=1; }
    done
    [[ $missing -eq 0 ]]
}

targets_elsewhere() { # every script writes its files below CARGO_TARGET_DIR
    local found
    found=$(grep -rnE '(root|PWD)/target' --include='*.sh' --include=test --exclude-dir=node_modules --exclude=others.sh \
        .ci scripts tests bench bindings packaging | grep -vF 'CARGO_TARGET_DIR:-' || true)
    echo "$found"
    [[ -z $found ]]
}

# ---- another user

# somebody: the test user $user, without root's Rust, gets a copy of the sources in the home folder.
somebody() {
    [[ $(id -u) -eq 0 ]] || skip "needs root"
    id "$user" >/dev/null 2>&1 || skip "useradd made no user"
    home=$(getent passwd "$user" | cut -d: -f6)
    if [[ ! -d $home/tautline ]]; then
        mkdir "$home/tautline"
        git -C "$root" ls-files -z --cached --others --exclude-standard | tar -C "$root" --null --ignore-failed-read -T - -cf - 2>/dev/null |
            tar -C "$home/tautline" -xf -
        chown -R "$user:" "$home/tautline"
    fi
}
as_user() { su - "$user" -s /bin/bash -c "set -euo pipefail; cd tautline; $1"; }

without_rust() {
    somebody
    fails as_user 'PATH=/usr/bin:/bin make build' >"$work/said" 2>&1
    said 'missing Rust 1.89 or newer'
    said https://rustup.rs
}

not_writable() {
    somebody
    as_user 'mkdir -p built/release; touch built/release/libzmq.so'
    mkdir -p "$home/tautline/built/release"
    cp "$target"/release/libzmq.{so,a} "$home/tautline/built/release"
    fails as_user 'make install CARGO_TARGET_DIR=$PWD/built PREFIX=/usr/local' >"$work/said" 2>&1
    said "/usr/local is not writable for $user" || said "not writable for $user"
    said 'sudo make install'
    said 'PREFIX=$HOME/.local'
    # The user can install into a writable prefix, without Rust.
    as_user 'PATH=/usr/bin:/bin make install CARGO_TARGET_DIR=$PWD/built PREFIX=$HOME/.local
        [[ $(readlink -f ~/.local/lib/libzmq.so.5) == ~/.local/lib/libzmq.so.5.2.5 ]]
        make uninstall PREFIX=$HOME/.local
        [[ ! -e ~/.local ]]'
}

read_only_sources() {
    somebody
    cp -r "$home/tautline" "$work/read-only"
    rm -rf "$work/read-only/built" "$work/read-only/target"
    chmod -R a-w,a+rX "$work/read-only"
    chown -R root: "$work/read-only"
    chmod a+x "$work"
    everything "$work/read-only" >"$work/before"
    su - "$user" -s /bin/bash -c "set -euo pipefail
        export CARGO_TARGET_DIR=\$HOME/out PATH=/usr/bin:/bin LIBRARY=\$HOME/tautline/built/release
        cd '$work/read-only'
        # A fake cargo is enough, because these commands never build the library.
        mkdir -p \$HOME/bin && printf '#!/bin/sh\necho cargo 99.0.0\n' >\$HOME/bin/cargo && chmod +x \$HOME/bin/cargo
        PATH=\$HOME/bin:\$PATH
        mkdir -p \$CARGO_TARGET_DIR/{release,tested}
        cp \$LIBRARY/libzmq.* \$CARGO_TARGET_DIR/release
        cp \$LIBRARY/libzmq.* \$CARGO_TARGET_DIR/tested
        make install PREFIX=\$HOME/elsewhere
        make uninstall PREFIX=\$HOME/elsewhere
        tests/wire/attacks/run.sh 'no such attack' || true
        [[ -x \$CARGO_TARGET_DIR/attacks/victim ]]
        CASES='no such case' tests/abi/states/run.sh || true
        [[ -x \$CARGO_TARGET_DIR/states/lib-ours/states ]]
        tests/host/limits/run.sh \$LIBRARY 'no such limit'
        [[ -x \$CARGO_TARGET_DIR/limits/limits ]]
        # This cargo does not fetch the source of libzmq's tests.
        tests/wire/upstream/build.sh || true
        [[ -e \$CARGO_TARGET_DIR/baseline/src/Cargo.toml ]]"
    everything "$work/read-only" | diff "$work/before" -
}

rust_of_their_own() { # make build && sudo make install, with a rustup toolchain that root does not have
    somebody
    [[ -x ${CARGO_HOME:-$HOME/.cargo}/bin/rustup ]] || skip "there is no rustup here to lend"
    ! env PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c 'command -v cargo' || skip "root has a Rust on its PATH"
    unshare -m true 2>/dev/null || skip "the kernel gives no mount namespace"
    without_tools
    local rustup=${RUSTUP_HOME:-$HOME/.rustup} cargo=${CARGO_HOME:-$HOME/.cargo}
    mkdir -p "$home/.cargo/bin" "$home/.cargo/registry" "$home/.rustup"
    cp "$cargo/bin/rustup" "$home/.cargo/bin"
    ln -sf rustup "$home/.cargo/bin/cargo"
    ln -sf rustup "$home/.cargo/bin/rustc"
    chown "$user:" "$home/.cargo" "$home/.cargo/registry"
    # The user has the toolchain below the home folder, visible only in this mount namespace. The check is about the toolchain's owner, so
    # the library is built without optimisation.
    unshare -m bash -euo pipefail -c "mount --make-rprivate /
        mount --bind '$rustup' '$home/.rustup'
        for part in index cache src; do
            mkdir -p '$home/.cargo/registry/'\$part
            mount --bind '$cargo/registry/'\$part '$home/.cargo/registry/'\$part
        done
        su - $user -s /bin/bash -c 'set -euo pipefail
            cd tautline
            PATH=~/.cargo/bin:/usr/bin:/bin CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_NET_OFFLINE=true \
                RUSTUP_TOOLCHAIN=$(basename "$(realpath "$(rustc --print sysroot)")") make build'
        cd '$home/tautline'
        env -i HOME=/root SUDO_USER=$user PATH='$bare' make install PREFIX='$work/sudo'"
    [[ ! -e $work/called ]] || { cat "$work/called"; false; }
    strings "$work/sudo/lib/libzmq.so.5" | grep "^Tautline $version$"
    # Root has left no files in the user's sources.
    [[ -z $(find "$home/tautline" -user root ! -path '*/built/*' | head -n 1) ]]
    uninstalls PREFIX="$work/sudo"
}

if [[ $(id -u) -eq 0 ]] && command -v useradd >/dev/null; then
    user=taut-$$
    useradd --create-home --base-dir "$work" --shell /bin/bash "$user" >/dev/null 2>&1 || true
fi

check 'a Rust that is too old' old_rust
check 'a Rust that is not on the PATH' hidden_rust
check 'make build installs nothing unless asked' asks_before_it_installs
check 'tools are installed as root, and named otherwise' installs_as_root
check 'everything that is missing is named at once' all_at_once
check 'the packages of other systems' other_systems
check 'packages.txt has all packages' packages_are_listed
check 'no script writes into the sources' targets_elsewhere
check 'another user without Rust' without_rust
check 'another user without write permission' not_writable
check 'read-only sources' read_only_sources
check 'make build with rustup, sudo make install without it' rust_of_their_own
