#!/usr/bin/env bash
# Tests that messages move, or a call returns its errno, under resource limits and in sandboxes. expected.tsv has the cases, limits.c
# moves the messages.
#
#   tests/host/limits/run.sh [LIBDIR] [WORD]   the libzmq.so in LIBDIR, by default the shared library of the suites; only cases with WORD
#   tests/host/limits/run.sh baseline [WORD]   prints the differences of libzmq 4.3.5, and counts no result as failed
#
# Ends with `limits: N passed, N failed, N skipped`; exit code 0 if every check passed or was skipped.
set -uo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
libdir=${1:-} word=${2:-}
[[ -n $libdir ]] || libdir=$("$root/tests/lib/build.sh" library) || exit
work=$target/limits
passed=0 failed=0 skipped=0 baseline="" said=""
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
gcc "${rules[@]}" "$here/memory.c" "$work/libzmq.so.5" -o "$work/memory" || exit
programs=()
for part in check runtime handles messages traffic fork drafts endings routing_ids; do programs+=("$root/tests/abi/c/$part.c"); done
gcc -std=c99 -I "$root/include" "${programs[@]}" "$work/libzmq.so.5" -pthread -o "$work/runtime" || exit

# The filter starts in a running process. If the C library has registered rseq, and the filter refuses it to a new thread, the process ends.
export GLIBC_TUNABLES=glibc.pthread.rseq=0

# outcome TRANSPORT RULE...: sets `result` to the first line of the program's output, and `said` to the second one. The transport `runtime`
# is the program of tests/abi/c, and `result` its exit code. The transport `memory` is memory.c, with its arguments.
outcome() {
    local out
    if [[ $1 == runtime ]]; then
        LD_LIBRARY_PATH=$work timeout -k 5 300 "$work/confine" "${@:2}" -- "$work/runtime" ${baseline:+lenient} >"$work/log" 2>&1
        result="exit $?"
        return
    fi
    if [[ $1 == memory ]]; then
        result=$(LD_LIBRARY_PATH=$work timeout -k 5 900 "$work/memory" "${@:2}" ${baseline:+all} 2>"$work/log") || result=${result:-exit $?}
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
# Checks that the filter works: without memfd_create no memory is shared.
if [[ -z $baseline && -z $word ]]; then
    outcome ipc on=both kernel=3.10
    if [[ $said == "memory 0"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED kernel=3.10 has memfd_create: $said"
    fi
fi
# One end runs on an older kernel. The ends may share a machine, but not always memory.
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
# The same cases in a process that tools can observe. It uses a separate folder, because the tools of other suites show all
# processes in the usual folder.
mkdir -p "$work/observed" && chmod 700 "$work/observed"
[[ -n $baseline ]] || TAUT_OBSERVE=1 XDG_RUNTIME_DIR=$work/observed listed

# The limit leaves room for 0 to 14 more descriptors. All steps succeed, or a call reports the failure, or the library cannot accept a
# peer. Without the limit all messages move.
for room in {0..14}; do
    for end in tcp "ipc on=near" "ipc on=far" "ipc on=both" "curve on=far" inproc; do
        # shellcheck disable=SC2086
        check "moves|((far )?zmq_(socket|bind|connect) EMFILE|zmq_recv EAGAIN), then moves" $end "limit=NOFILE:+$room" patience=500 retry
    done
done

# The first, second, ... allocation fails, or this one and all later ones. `run.sh LIBDIR memory` refuses each allocation, the whole suite
# some of them.
most=60
[[ $word != memory ]] || most=100000
check "survives 1" memory shortage
for transport in tcp ipc curve inproc; do
    for how in once on; do check "survives [0-9]+" memory $transport $how most=$most; done
done

# The first, second, ... call fails. The library recreates the lost object, and leaks no descriptor or thread.
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
    # Later calls belong to an open connection. A failure ends it, and its messages in transit are lost.
    once "moves|(far )?zmq_socket ENOSPC" epoll_ctl:ENOSPC "$end" 6
    for call in epoll_create1:EMFILE eventfd2:EMFILE timerfd_create:EMFILE socket:ENOBUFS setsockopt:ENOBUFS getsockname:ENOBUFS \
        mmap:ENOMEM; do
        once "moves|(far )?zmq_(socket|bind|connect) (EMFILE|ENOSPC|ENOBUFS|EMTHREAD)" "$call" "$end"
    done
done
# A socket that waits on ZMQ_FD registers its read set again once the system has a free watch.
once "moves|zmq_socket ENOSPC" epoll_ctl:ENOSPC "tcp fd" 6

[[ -z $baseline ]] || exit 0
echo "limits: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
