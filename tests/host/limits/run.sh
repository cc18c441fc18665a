#!/usr/bin/env bash
# Messages move, or a call gets its errno, under resource limits and in sandboxes: expected.tsv has the cases, limits.c moves the messages.
#
#   tests/host/limits/run.sh [LIBDIR] [WORD]   the libzmq.so in LIBDIR, by default the one that the suites share; only cases with WORD in them
#   tests/host/limits/run.sh baseline [WORD]   what libzmq 4.3.5 does: no result counts as failed
#
# Ends with `limits: N passed, N failed, N skipped`; exit code 0 if every check passed or was skipped.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
libdir=${1:-} word=${2:-}
[[ -n $libdir ]] || libdir=$("$root/tests/lib/build.sh" library) || exit
work=$target/limits
passed=0 failed=0 skipped=0 baseline=
if [[ $libdir == baseline ]]; then
    "$root/scripts/libzmq-baseline.sh" >&2 || exit
    libdir=$target/baseline/libzmq/lib baseline=yes
    [[ ! -e $target/baseline/libzmq-ws/lib ]] || libdir=$target/baseline/libzmq-ws/lib
fi
if [[ $(uname) != Linux ]]; then
    echo "limits: 0 passed, 0 failed, 1 skipped"
    exit
fi
"$root/scripts/need.sh" gcc:gcc
mkdir -p "$work"
ln -sfn "$(realpath "$libdir/libzmq.so")" "$work/libzmq.so.5"
rules=(-std=gnu11 -O1 -g -Wall -Wextra -Wshadow -Werror -pedantic -I "$root/include" "$here/rules.c" "$here/systems.c" -pthread)
gcc "${rules[@]}" "$here/limits.c" "$work/libzmq.so.5" -o "$work/limits" || exit
gcc "${rules[@]}" "$here/confine.c" -o "$work/confine" || exit
programs=()
for part in check runtime handles messages traffic fork drafts endings routing_ids; do programs+=("$root/tests/abi/c/$part.c"); done
gcc -std=c99 -I "$root/include" "${programs[@]}" "$work/libzmq.so.5" -pthread -o "$work/runtime" || exit

# A filter comes into force in a process that runs: if the C library has registered rseq, it ends where that is refused to a new thread.
export GLIBC_TUNABLES=glibc.pthread.rseq=0

# outcome TRANSPORT RULE...: the first line of what the program says; `said` is the second one. For the transport `runtime`, which is the
# program of tests/abi/c, how it ended.
outcome() {
    local out
    if [[ $1 == runtime ]]; then
        LD_LIBRARY_PATH=$work timeout -k 5 300 "$work/confine" "${@:2}" -- "$work/runtime" ${baseline:+lenient} >"$work/log" 2>&1
        result="exit $?"
        return
    fi
    out=$(LD_LIBRARY_PATH=$work timeout -k 5 300 "$work/limits" "$@" ${baseline:+watchdog=5} 2>"$work/log") || out="exit $?"
    said=${out#*$'\n'}
    result=${out%%$'\n'*}
}

# check WANTED TRANSPORT RULE...: WANTED is a regular expression.
check() {
    local wanted=$1
    shift
    [[ -z $word || "$*" == *"$word"* ]] || return 0
    outcome "$@"
    if [[ $result == skipped* ]]; then
        skipped=$((skipped + 1))
        echo "skipped $*: ${result#skipped: }"
    elif [[ $result =~ ^($wanted)$ ]]; then
        passed=$((passed + 1))
    elif [[ -n $baseline ]]; then
        echo "$*: $result, here $wanted"
    else
        failed=$((failed + 1))
        echo "FAILED $*: $result, wanted $wanted"
        head -n 5 "$work/log"
    fi
}

# Older kernels, and sandboxes: messages over each transport, and the C interface as a whole.
for system in kernel={3.10,3.17,4.4,4.18,5.10,6.1} sandbox={docker,docker-19.03,gvisor}; do
    for end in tcp ipc ws curve inproc "tcp fd" "ipc fd"; do
        # shellcheck disable=SC2086
        check moves $end on=both "$system"
    done
    check "exit 0" runtime "$system"
done
# The filter does something: without memfd_create no memory is shared.
if [[ -z $baseline && -z $word ]]; then
    outcome ipc on=both kernel=3.10
    if [[ $said == "memory 0"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED kernel=3.10 has memfd_create: $said"
    fi
fi
# One end is on an older kernel than the other: they may share a machine, but not always memory.
for end in near far; do check moves ipc on=$end kernel=3.10; done

# The failures that expected.tsv lists.
listed() {
    while IFS=$'\t' read -r transports rules wanted _; do
        [[ $transports != \#* ]] || continue
        rules=${rules#-}
        for transport in ${transports//,/ }; do
            # shellcheck disable=SC2086 # the rules are words
            check "$wanted" "$transport" $rules
        done
    done <"$here/expected.tsv"
}
listed
# The same of a process that shows itself to tools, if it can. In a separate folder: tools that other suites run show every
# process in the usual one.
mkdir -p "$work/observed" && chmod 700 "$work/observed"
[[ -n $baseline ]] || TAUT_OBSERVE=1 XDG_RUNTIME_DIR=$work/observed listed

# With room for so many descriptors more: all steps succeed, a call reports the failure, or no peer can be accepted. It all moves
# when there is room again.
for room in {0..14}; do
    for end in tcp "ipc on=near" "ipc on=far" "ipc on=both" "curve on=far" inproc; do
        # shellcheck disable=SC2086
        check "moves|((far )?zmq_(socket|bind|connect) EMFILE|zmq_recv EAGAIN), then moves" $end "limit=NOFILE:+$room" patience=500 retry
    done
done

# One call fails, the first, second, ... one: what is lost by that is made anew, and no descriptor or thread is left over.
once() {
    local wanted=$1 call=$2 end=$3 most=${4:-8} number
    for ((number = 1; number <= most; number++)); do
        # shellcheck disable=SC2086
        check "$wanted" $end "refuse=$call:$number" patience=10000
        [[ $(sed 's/.*calls \([0-9]*\).*/\1/' <<<"$said") -ge $number ]] || return 0
    done
}
for end in "tcp on=near" "tcp on=far" "ipc on=near" "ipc on=far"; do
    for call in accept4:EMFILE accept4:EPERM connect:EPERM socketpair:EMFILE memfd_create:ENFILE ftruncate:EPERM fallocate:ENOSPC fcntl:EPERM \
        fstatfs:EPERM getpeername:ENOBUFS getsockopt:ENOBUFS ioctl:EPERM madvise:ENOMEM membarrier:EPERM openat:EMFILE shutdown:EPERM; do
        once moves "$call" "$end"
    done
    # Later ones are those of a connection that is open: it ends, with what was on its way.
    once "moves|(far )?zmq_socket ENOSPC" epoll_ctl:ENOSPC "$end" 6
    for call in epoll_create1:EMFILE eventfd2:EMFILE timerfd_create:EMFILE socket:ENOBUFS setsockopt:ENOBUFS getsockname:ENOBUFS \
        mmap:ENOMEM; do
        once "moves|(far )?zmq_(socket|bind|connect) (EMFILE|ENOSPC|ENOBUFS|EMTHREAD)" "$call" "$end"
    done
done
# The read set of a socket that waits on ZMQ_FD is registered when the system has a watch again.
once "moves|zmq_socket ENOSPC" epoll_ctl:ENOSPC "tcp fd" 6

[[ -z $baseline ]] || exit 0
echo "limits: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
