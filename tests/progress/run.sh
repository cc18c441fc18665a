#!/usr/bin/env bash
# What somebody sees of a long command: scripts/progress.sh on a terminal, on a pipe, with a command that fails, and stopped.
# Ends with `progress: N passed, N failed, N skipped`.
set -uo pipefail
# Against hangs.
[[ ${LIMITED:-} == progress ]] || LIMITED=progress exec timeout -k 10 300 "$0" "$@"

root=$(cd "$(dirname "$0")/../../.." && pwd)
progress=$root/scripts/progress.sh
work=$(mktemp -d "${TMPDIR:-/tmp}/progress.XXXXXX")
trap 'rm -rf "$work"' EXIT
passed=0 failed=0 skipped=0

# holds WHAT TEXT: the text is part of what was shown.
holds() {
    if [[ $(<"$work/shown") == *"$2"* ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $1: expected '$2' in:"
        cat -v "$work/shown"
    fi
}

"$progress" 'a pipe' "$work/log" bash -c 'echo first; echo second >&2' 2>&1 | cat >"$work/shown"
holds 'a pipe: a line at the beginning' 'a pipe, since '
holds 'a pipe: a line at the end' 'a pipe: done ('
cp "$work/log" "$work/shown"
holds 'both outputs are kept' $'first\nsecond'

# Goes on until its own output was shown.
cat >"$work/until-shown" <<'SH'
printf '  the last line \r\n\n'
until grep -q 'the last line' "$1"; do sleep 0.1; done
SH
if command -v script >/dev/null; then
    : >"$work/shown"
    env -u CI TERM=xterm script -qfec "'$progress' terminal '$work/log' timeout 60 bash '$work/until-shown' '$work/shown'" \
        "$work/shown" >/dev/null </dev/null
    holds 'a terminal: one line, with the last one of the log' $'): the last line\e[?7h\r\e[K'
    holds 'a terminal: it is cleared' $'\r\e[Kterminal: done ('
    : >"$work/shown"
    mkdir "$work/beside"
    echo 'another one' >"$work/beside/1"
    env -u CI TERM=xterm PROGRESS_BESIDE="$work/beside" script -qfec \
        "'$progress' terminal '$work/log' timeout 60 bash '$work/until-shown' '$work/shown'" "$work/shown" >/dev/null </dev/null
    holds 'a terminal: beside another one' 'another one | terminal, since '
    ls "$work/beside" >"$work/shown"
    holds 'a terminal: beside another one, whose line stays' 1
else
    skipped=$((skipped + 1))
    echo 'skipped terminal: needs script, of bsdutils'
fi

"$progress" broken "$work/log" bash -c 'echo "$1"; exit 3' - 'two words' >"$work/shown" 2>&1
code=$?
holds 'a failure: the end of the log' $'\ntwo words\n'
again=$(sed -n 's/^--- again: //p' "$work/shown")
bash -c "$again" >"$work/shown"
echo "codes: $code $?" >>"$work/shown"
holds 'a failure: the command repeats it' $'two words\ncodes: 1 3'

# With a process group of its own in it, and a process that does not end when it is told to.
cat >"$work/endless" <<'SH'
sleep 1000 &
(trap '' TERM; exec sleep 1001) &
timeout 1000 sleep 1002 &
echo $! $(jobs -p) $$ >"$1"
wait
SH
"$progress" endless "$work/log" bash "$work/endless" "$work/processes" 2>"$work/shown" &
until [[ -s $work/processes ]]; do sleep 0.1; done
read -ra processes <"$work/processes"
# The second group's own process starts a little later.
children=/proc/${processes[0]}/task/${processes[0]}/children
until grep -q . "$children"; do sleep 0.1; done
processes+=($(<"$children"))
kill -TERM $!
until grep -q stopped "$work/shown"; do sleep 0.1; done
kill -HUP $! # a second signal, as from a terminal that goes with the program
wait $! 2>/dev/null
code=$?
# The dead may still have an entry, and what was killed needs a processor to die.
goes_on() { [[ $(sed -n 's/^State:\s*//p' "/proc/$1/status" 2>/dev/null) == [!ZX]* ]]; }
for process in "${processes[@]}"; do
    for ((look = 0; look < 600; look++)); do goes_on "$process" && sleep 0.1 || break; done
    if goes_on "$process"; then
        echo "process $process of ${processes[*]} goes on" >>"$work/shown"
        kill -KILL "$process"
    fi
done
echo "by a signal: $((code > 128)); ${#processes[@]} processes" >>"$work/shown"
holds 'stopped: every process has ended' $'endless: stopped; what it said is in '"$work/log"$'\nby a signal: 1; 6 processes'

echo "progress: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
