#!/usr/bin/env bash
# Makes sure that tools are installed: scripts/need.sh [--tell] WHAT:DEBIAN-PACKAGE ... [--also WHAT:DEBIAN-PACKAGE ...]
#
# WHAT is one of
#   cargo            Rust, not older than Cargo.toml asks for
#   fmt, clippy      these components of Rust
#   NAME             another command on the PATH
#   lib=NAME         a pkg-config module
#   py=NAME          a module of python3
#   file=PATH        a file
#   baseline[-ws]    all tools of libzmq-baseline.sh, unless it has built its library already; without a package
#
# As root, the script installs missing tools with apt-get and prints their names. Otherwise it prints the command that installs them on
# this system, and exits with 1. Tools after --also are optional: they are installed or printed in the same way, but never cause a failure.
# With --tell, the script installs tools only if INSTALL_TOOLS=1 is set.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
oldest=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$root/Cargo.toml")
cargo=${CARGO:-cargo}

# new_enough VERSION: true if Cargo.toml accepts this version of Rust.
new_enough() { [[ $(printf '%s\n' "$oldest" "$1" | sort -V | head -n 1) == "$oldest" ]]; }

cargo_version() { { "$cargo" --version 2>/dev/null || true; } | sed -n 's/^cargo \([0-9.]*\).*/\1/p'; }

present() {
    case $1 in
        cargo) new_enough "$(cargo_version)" ;;
        fmt | clippy) "$cargo" "$1" --version >/dev/null 2>&1 ;;
        lib=*) command -v pkg-config >/dev/null && pkg-config --exists "${1#lib=}" ;;
        py=*) command -v python3 >/dev/null && python3 -c "import ${1#py=}" 2>/dev/null ;;
        file=*) [[ -e ${1#file=} ]] ;;
        *) command -v "$1" >/dev/null ;;
    esac
}

# debian_rust: prints a package of this Debian or Ubuntu with a new enough Rust: `cargo`, the one kept for browsers, or one with its
# version in its name. Prints no line if no package is new enough.
debian_rust() {
    local package candidate
    for package in cargo cargo-web $(apt-cache pkgnames cargo-1. 2>/dev/null | grep -xE 'cargo-1\.[0-9]+' | sort -V); do
        candidate=$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^  Candidate: \([0-9][0-9.]*\).*/\1/p')
        if [[ -n $candidate ]] && new_enough "$candidate"; then
            echo "$package"
            return
        fi
    done
}

manager=
for name in apt-get dnf apk pacman brew; do
    if command -v "$name" >/dev/null; then
        manager=$name
        break
    fi
done

# translated DEBIAN-PACKAGE: prints its name on this system, if it is known.
translated() {
    local column
    case $manager in
        apt-get) echo "$1"; return ;;
        dnf) column=2 ;;
        apk) column=3 ;;
        pacman) column=4 ;;
        brew) column=5 ;;
        *) return ;;
    esac
    awk -v package="$1" -v column=$column '$1 == package && $column != "-" { print $column }' "$root/scripts/packages.txt"
}

tell='' optional=''
declare -A seen=()
whats=() packages=() needed=() rust=
want() { # want WHAT PACKAGE
    [[ -z ${seen[$1]:-} ]] || return 0
    seen[$1]=1
    present "$1" && return
    case $1 in
        cargo) rust=missing ;;
        fmt | clippy)
            whats+=("cargo $1")
            if [[ $rust != missing ]] && command -v rustup >/dev/null; then components+=("${2#rust-}"); else packages+=("$2"); fi ;;
        *) whats+=("$1") packages+=("$2") ;;
    esac
    [[ -n $optional ]] || needed+=("$1")
}
components=()
for argument in "$@"; do
    case $argument in
        --tell) tell=yes ;;
        --also) optional=yes ;;
        baseline | baseline-ws)
            built=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")/baseline/libzmq${argument#baseline}/.built
            [[ ! -e $built ]] || continue
            for pair in cmake:cmake c++:g++ make:make pkg-config:pkg-config lib=libsodium:libsodium-dev; do want "${pair%:*}" "${pair##*:}"; done
            [[ $argument == baseline ]] || want lib=gnutls libgnutls28-dev ;;
        *) want "${argument%:*}" "${argument##*:}" ;;
    esac
done
[[ -n $rust || ${#whats[@]} -gt 0 ]] || exit 0

install_it=
if [[ $(id -u) -eq 0 && $manager == apt-get && (-z $tell || ${INSTALL_TOOLS:-} == 1) ]]; then install_it=yes; fi
sudo='sudo '
[[ $(id -u) -ne 0 ]] || sudo=
if [[ -n $install_it && -z $(apt-cache policy make 2>/dev/null) ]]; then
    apt-get update </dev/null >/dev/null || true
fi

# Ways to install Rust on this system.
advice=()
if [[ -n $rust ]]; then
    found=$(cargo_version)
    whats=("Rust $oldest or newer${found:+ (cargo is $found)}" ${whats[@]+"${whats[@]}"})
    package=
    if [[ $manager == apt-get ]]; then
        package=$(debian_rust)
    elif [[ $manager == pacman || $manager == brew ]]; then
        package=rust
    elif [[ -n $manager ]]; then
        package=cargo
    fi
    if [[ -n ${SUDO_USER:-} && -z $found ]]; then
        advice+=("root has no Rust. If $SUDO_USER has: build without sudo, and install what is built with it (sudo make install)")
    elif [[ -z $found && -x ${HOME:-}/.cargo/bin/cargo ]]; then
        advice+=("there is one in ~/.cargo/bin, which is not on the PATH: . ~/.cargo/env")
    fi
    if command -v rustup >/dev/null; then
        advice+=("Rust by the rustup that is here: rustup update stable, and RUSTUP_TOOLCHAIN=stable before the command")
        [[ -z $install_it ]] || package=
    else
        advice+=("Rust from https://rustup.rs is always new enough: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh")
    fi
    if [[ -n $package ]]; then packages=("$package" ${packages[@]+"${packages[@]}"}); fi
    if [[ $manager == apt-get && -z $package ]] && ! command -v rustup >/dev/null; then
        advice=("this system's own packages of Rust are older than that" "${advice[@]}")
    fi
fi

joined=$(printf ', %s' "${whats[@]}")
echo "need: missing ${joined:2}" >&2

# told [WHICH]: prints the commands that install the missing tools.
told() {
    local package names=() unknown=()
    for package in ${packages[@]+"${packages[@]}"}; do
        if [[ $package == cargo* || $package == rust ]]; then
            names+=("$package")
            continue
        fi
        local name
        name=$(translated "$package")
        if [[ -z $name ]]; then unknown+=("$package"); elif [[ " ${names[*]-} " != *" $name "* ]]; then names+=("$name"); fi
    done
    if [[ ${#names[@]} -gt 0 ]]; then
        local command
        case $manager in
            apt-get) command="${sudo}apt-get install -y" ;;
            dnf) command="${sudo}dnf install" ;;
            apk) command="${sudo}apk add" ;;
            pacman) command="${sudo}pacman -S --needed" ;;
            brew) command="brew install" ;;
        esac
        echo "need: please install ${1:-first}, for example: $command ${names[*]}" >&2
    fi
    [[ ${#unknown[@]} -eq 0 ]] || echo "need: please also install the packages that Debian calls ${unknown[*]}" >&2
    [[ ${#components[@]} -eq 0 ]] || echo "need: rustup component add ${components[*]}" >&2
    local line
    for line in ${advice[@]+"${advice[@]}"}; do echo "need: $line" >&2; done
    if [[ -n $tell && -z $sudo && $manager == apt-get ]]; then
        echo "need: INSTALL_TOOLS=1 before make installs the packages of this system" >&2
    fi
}

if [[ ${#needed[@]} -eq 0 && -z $install_it ]]; then
    told "what you want of that"
    echo "need: parts that need one of these tools are skipped" >&2
    exit 0
fi
if [[ -z $install_it ]]; then
    told
    exit 1
fi
# If no package has a new enough Rust, install no other tools either.
if [[ -n $rust && -z ${package:-} ]]; then
    told
    exit 1
fi
if [[ ${#components[@]} -gt 0 ]]; then
    echo "need: installing ${components[*]} (rustup)" >&2
    rustup component add "${components[@]}" </dev/null >&2
fi
export DEBIAN_FRONTEND=noninteractive
# Several scripts may install at the same time, so wait for the package manager's lock.
lock=(-o DPkg::Lock::Timeout=300)
apt() { # apt PACKAGE...; without the terminal, whose input would stop a background process
    local install=(apt-get install -y --no-install-recommends "$@" "${lock[@]}")
    if ! "${install[@]}" </dev/null >/dev/null 2>&1; then
        apt-get update "${lock[@]}" </dev/null >/dev/null
        "${install[@]}" </dev/null >/dev/null
    fi
}
if [[ ${#packages[@]} -gt 0 ]]; then
    echo "need: installing ${packages[*]} (apt-get)" >&2
    if ! apt "${packages[@]}" && [[ ${#needed[@]} -eq 0 ]]; then
        echo "need: could not install all of these; parts that need a missing one are skipped" >&2
    fi
fi
for what in ${needed[@]+"${needed[@]}"}; do
    present "$what" && continue
    # A new Python package may belong to another python3 than the one on the PATH. Report this instead of looping.
    echo "need: $what is still missing after installing ${packages[*]-}" >&2
    exit 1
done
