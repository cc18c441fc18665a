# shellcheck shell=bash disable=SC2154
# Runs programs of libzmq's behaviour tests and reports their results. run.sh and windows.sh source this file. They set and export
#
#   WORK      a directory for this run
#   LIMIT     time limit of each program in seconds
#   SCRIPT    the script that repeats one program, and
#   GIVEN     its first argument
#   program   function: `program NAME` runs a program, prints its output and returns its exit code, 124 or 137 at the time limit
#
# and set for `run_all`
#
#   jobs      number of programs that run in parallel
#   expected  files with the known failures and their reasons
#   results   file for the results, or empty
#   logs      directory for the output of the programs

# namespaces: sets ENTER. Without namespaces, sets `jobs` to 1, because fixed ports allow only one program at a time.
namespaces() {
    local enter=()
    if unshare -n true 2>/dev/null; then enter=(unshare -n)
    elif unshare -rn true 2>/dev/null; then enter=(unshare -rn)
    else jobs=1; fi
    if [[ ${#enter[@]} -gt 0 ]]; then "$root/scripts/need.sh" ip:iproute2 >&2; fi
    export ENTER="${enter[*]}"
}

# within NAME COMMAND: runs the shell COMMAND in a network namespace, with the network that the program NAME needs.
within() {
    if [[ -n $ENTER ]]; then
        # Multicast needs an interface other than the loopback, with a route and a host at its other end.
        local multicast='ip link add eth0 type veth peer name eth1; ip addr add 198.51.100.1/24 dev eth0
            ip link set eth0 up; ip link set eth1 up; ip route add 224.0.0.0/4 dev eth0'
        [[ $1 == test_radio_dish ]] || multicast=:
        # shellcheck disable=SC2086 # words
        timeout -k 2 "$LIMIT" $ENTER bash -c "ip link set lo up; $multicast; $2" 2>&1
    else
        timeout -k 2 "$LIMIT" bash -c "$2" 2>&1
    fi
}

# row NAME: runs a program and writes its row: name, status, seconds, last assertion.
row() {
    local name=$1 log=$WORK/${1/\//.}.log start=$EPOCHREALTIME code=0 status=pass why='' seconds
    program "$name" >"$log" || code=$?
    seconds=$(awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}')
    case $code in
        0) status=pass; all_ignored "$log" && status=skip ;;
        77) status=skip ;;
        124) status=timeout ;;
        137) status=fail; awk -v s="$seconds" -v l="$LIMIT" 'BEGIN {exit !(s >= l)}' && status=timeout ;;
        *) status=fail ;;
    esac
    if [[ $status != pass ]]; then
        why=$(grep -aE ':FAIL|Assertion|panicked|symbol lookup|terminate called|skipping' "$log" | tail -1 || true)
        [[ -n $why ]] || why=$(grep -av '^-*$' "$log" | tail -1 || true)
        [[ $code -gt 128 && $status == fail ]] && why="signal $((code - 128)); $why"
        why=$(sed -E 's#/[^ ]*/(tests|src)/##g; s/\t/ /g' <<<"$why" | cut -c1-160)
    fi
    printf '%s\t%s\t%s\t%s\n' "$name" "$status" "$seconds" "$why" >"$WORK/${name/\//.}.row"
    echo "$status $name $seconds s $why" >&2
    [[ $status != fail && $status != timeout ]] || echo "again: $SCRIPT '$GIVEN' $name" >&2
}

all_ignored() {
    awk '/ Tests .* Failures .* Ignored/ {t += $1; i += $5} END {exit !(t > 0 && t == i)}' "$1"
}
export -f within row all_ignored

# chosen NAMES PATTERN...: prints the words of NAMES that match a shell pattern. Without a PATTERN, prints all words.
chosen() {
    local name pattern names=$1
    shift
    for name in $names; do
        for pattern in "${@:-*}"; do
            # shellcheck disable=SC2053 # a pattern
            if [[ $name == $pattern ]]; then echo "$name"; break; fi
        done
    done
}

# run_all NAMES: runs the programs, one name a line, and prints the verdict. The exit code is 0 if all failures are known.
run_all() {
    local failures name file first
    xargs -P "$jobs" -I{} bash -c 'row {}' <<<"$1"

    # On a machine under load a few programs fail by chance. For example, test_security_zap attaches its client's monitor after
    # zmq_connect, possibly after the expected event. If there are many failures, a retry gives no information.
    failures=$(awk -F'\t' '$2 == "fail" || $2 == "timeout" {print $1}' "$WORK"/*.row |
        grep -vxFf <(grep -hv '^#' "${expected[@]}" | cut -f1) || true)
    if [[ $(wc -w <<<"$failures") -le ${RETRY:-5} ]]; then
        for name in $failures; do
            file=$WORK/${name/\//.}.row
            first=$(cut -f4 "$file")
            for _ in 1 2 3; do
                row "$name"
                if [[ $(cut -f2 "$file") == pass ]]; then break; fi
            done
            if [[ $(cut -f2 "$file") == pass ]]; then
                sed -i -E "s#\tpass\t([^\t]*)\t.*#\tflaky\t\1\t#" "$file"
                printf '%s\n' "$(cat "$file")$first" >"$file"
            fi
        done
    fi

    sort "$WORK"/*.row >"$WORK/results.tsv"
    [[ -z $results ]] || cp "$WORK/results.tsv" "$results"
    rm -rf "$logs" && mkdir -p "$logs" && cp "$WORK"/*.log "$logs/"
    awk -F'\t' '
        $2 == "skip" { printf "skipped %s: %s\n", $1, $4; next }
        { printf "%-8s %6.1f s  %-36s %s\n", $2, $3, $1, $4 }' "$WORK/results.tsv"

    # Prints the verdict. Known failures are named, but do not count as failed.
    awk -F'\t' -v results="$WORK/results.tsv" '
        FILENAME != results { if ($0 !~ /^#/ && NF) known[$1] = 1; next }
        $2 == "skip" { skipped++; next }
        $2 == "pass" || $2 == "flaky" { passed++; if ($1 in known) fixed = fixed " " $1; if ($2 == "flaky") flaky = flaky " " $1; next }
        $1 in known { expected = expected " " $1; k++; next }
        { failed++; new = new " " $1 }
        END {
            if (flaky) print "flaky:" flaky
            if (expected) print "known failures:" expected
            if (fixed) print "listed as failing, but pass:" fixed
            if (new) print "failed:" new
            printf "upstream: %d passed, %d failed, %d skipped, %d known failures\n", passed, failed, skipped, k
            exit failed > 0
        }' "${expected[@]}" "$WORK/results.tsv"
}
