#!/usr/bin/env bash
# Shows how a long command is getting on while its output goes to a file.
#
#   scripts/progress.sh TITLE LOG COMMAND...     runs it; if it fails, the end of LOG and the command are shown
#   . scripts/progress.sh                        the same as functions: `step`, and `progress`, which only runs it
#
# On a terminal that is one line, rewritten each second: TITLE, when the command began, how long ago that was, and the last line
# of LOG. Elsewhere (a pipe, a file, CI) there is such a line at the beginning and every 20 seconds. All of it goes to stderr.
# Ctrl-C, SIGTERM and SIGHUP end the command with every process that it has started.
#
# Commands that run beside each other share the line of the terminal, if PROGRESS_BESIDE names a folder that they have in common.

progress_every=20
progress_rewrites=
if [[ -t 2 && -z ${CI:-} && ${TERM:-dumb} != dumb ]]; then
    progress_every=1
    progress_rewrites=yes
fi

# progress TITLE LOG COMMAND...: the exit code is the command's. It may be a function.
progress() {
    local title=$1 log=$2 pid signal code=0 began=$SECONDS next=$progress_every clock
    shift 2
    printf -v clock '%(%T)T' -1
    : >"$log"
    for signal in INT TERM HUP; do
        # shellcheck disable=SC2064 # the signal's name
        trap "progress_stop $signal" "$signal"
    done
    # A process group of its own keeps ctrl-C away from it: its processes can then still be found by their parents.
    set -m
    ("$@") </dev/null >"$log" 2>&1 &
    set +m
    pid=$!
    progress_show
    while kill -0 "$pid" 2>/dev/null; do
        if ((SECONDS - began >= next)); then
            progress_show
            next=$((SECONDS - began + progress_every))
        fi
        sleep 0.1
    done
    wait "$pid" || code=$?
    progress_clear
    trap - INT TERM HUP
    return "$code"
}

progress_show() {
    local seconds=$((SECONDS - began)) last line
    # What is no printable character would upset the terminal.
    last=$(tail -c 2000 "$log" | tr -c '[:print:]\n' ' ' | sed -n 's/^ *//; s/ *$//; /./h; ${x;p}')
    printf -v line '%s, since %s (%d:%02d)%s' "$title" "$clock" $((seconds / 60)) $((seconds % 60)) "${last:+: $last}"
    if [[ -n $progress_rewrites && -n ${PROGRESS_BESIDE:-} ]]; then
        mkdir -p "$PROGRESS_BESIDE"
        # Whole at once, for another process reads it.
        echo "$line" >"$PROGRESS_BESIDE/.$$"
        mv "$PROGRESS_BESIDE/.$$" "$PROGRESS_BESIDE/$$"
        line=$(progress_all)
    fi
    if [[ -n $progress_rewrites ]]; then
        # Without wrapping (7l), the terminal itself cuts off what does not fit into the line.
        printf '\r\e[K\e[?7l%s\e[?7h' "$line" >&2
    else
        echo "$line" >&2
    fi
}

# progress_all: the lines of all that run beside each other, each with its share of the terminal.
progress_all() {
    local lines width
    # One that has ended takes its line away.
    mapfile -t lines < <(cat "$PROGRESS_BESIDE"/* 2>/dev/null)
    width=$(stty size 2>/dev/null </dev/tty | cut -d' ' -f2)
    ((${width:-0} > 0)) || width=160
    printf '%s\n' "${lines[@]}" | cut -c "1-$((width / ${#lines[@]} - 3))" | paste -s | sed 's/\t/ | /g'
}

progress_clear() {
    [[ -z ${PROGRESS_BESIDE:-} ]] || rm -f "$PROGRESS_BESIDE/$$"
    [[ -z $progress_rewrites ]] || printf '\r\e[K' >&2
}

# progress_below PID: the process and all that descend from it.
progress_below() {
    local child
    echo "$1"
    for child in $(cat "/proc/$1/task/"*/children 2>/dev/null); do progress_below "$child"; done
}

progress_stop() {
    local pid=$! processes tries=50 # the signal may have come before `progress` knew it
    # The same signal often comes twice: to the process group and from `make` or `timeout`; and the terminal may be gone.
    trap '' INT TERM HUP
    set +e
    progress_clear
    echo "$title: stopped; what it said is in $log" >&2
    mapfile -t processes < <(progress_below "$pid")
    kill -TERM "${processes[@]}" 2>/dev/null
    # Time to clean up.
    while ((tries-- > 0)) && kill -0 "${processes[@]}" 2>/dev/null; do sleep 0.1; done
    kill -KILL "${processes[@]}" 2>/dev/null
    trap - INT TERM HUP
    kill -s "$1" "$$"
}

# step TITLE LOG COMMAND...: `progress`, and a line when it is done. If it fails: the end of LOG, the command as it can be typed,
# exit code 1.
step() {
    local start=$SECONDS
    mkdir -p "$(dirname "$2")"
    if progress "$@"; then
        echo "$1: done ($((SECONDS - start)) s)"
        return
    fi
    echo "--- $1: failed; the end of $2"
    tail -n 100 "$2"
    printf -- '--- again:'
    printf ' %q' "${@:3}"
    echo
    return 1
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    set -euo pipefail
    step "$@"
fi
