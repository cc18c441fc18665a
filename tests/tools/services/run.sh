#!/usr/bin/env bash
# Tests packaging/services and packaging/grafana/alerts.yml, the recipes of docs/operate/services.md. systemd, Docker and Kubernetes do not
# run here: their tools and schemas check the files, and namespaces imitate them for programs of another user.
#
#   tests/tools/services/run.sh              all checks
#   tests/tools/services/run.sh alert seen   only the checks with one of these words in their names
#   LIBRARY=... TAUT=... tests/tools/services/run.sh   another build
#
# Ends with `services: N passed, N failed, N skipped`.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)
cd "$root"
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
scripts/need.sh cargo:cargo cc:gcc promtool:prometheus systemd-analyze:systemd unshare:util-linux setpriv:util-linux pkill:procps nsenter:util-linux jq:jq
. tests/lib/check.sh
[[ -n ${TAUT:-} ]] || TAUT=$(tests/lib/build.sh programs)/taut
[[ -n ${LIBRARY:-} ]] || LIBRARY=$(tests/lib/build.sh library)/libzmq.so
schemas=$target/test/services/$(sha1sum <"$here/requirements.txt" | cut -c1-12)
if [[ ! -x $schemas/bin/kubernetes-validate ]]; then
    rm -rf "$schemas"
    python3 -m venv "$schemas"
    "$schemas/bin/pip" --quiet --disable-pip-version-check install --no-deps --only-binary :all: -r "$here/requirements.txt"
fi
program=$target/test/services/service
cc -Iinclude "$here/service.c" -o "$program" "$LIBRARY"
# No other test uses this user. A user has no name here, as in a container.
user=$((3000000 + $$))
# systemd makes such a folder in /run for a service.
runtime=/run/tautline-test-$$
work=$(mktemp -d)
chmod 755 "$work"
passed=0 failed=0 skipped=0
# shellcheck disable=SC2329 # the trap calls it
end() {
    jobs -p | xargs -r kill 2>/dev/null || true
    rm -rf "$work" "$runtime" "$runtime-volume"
}
trap end EXIT

# ---- files

alert_rules_are_valid() {
    cp packaging/grafana/alerts.yml "$here/alerts.test.yml" "$work/"
    promtool check rules --lint-fatal "$work/alerts.yml"
    (cd "$work" && promtool test rules alerts.test.yml)
    # Each rule has a test.
    sed -n 's/.*alert: //p' packaging/grafana/alerts.yml | while read -r alert; do grep -q "alertname: $alert$" "$here/alerts.test.yml"; done
}

alert_rules_and_the_dashboard_use_existing_metrics() {
    TAUT_COUNTERS=/nonexistent "$TAUT" metrics 2>/dev/null | sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' | sort -u >"$work/metrics"
    grep -q . "$work/metrics"
    grep -oh 'tautline_[a-z_]*' packaging/grafana/* | sort -u | comm -23 - "$work/metrics" >"$work/missing"
    cat "$work/missing"
    [[ ! -s $work/missing ]]
}

units_are_valid_and_confined() {
    mkdir -p "$work/units"
    for unit in packaging/services/*.service packaging/services/*.timer; do
        # The programs of the units are not installed here.
        sed 's#/usr/bin/taut#/bin/true#' "$unit" >"$work/units/${unit##*/}"
    done
    systemd-analyze verify --man=no "$work"/units/*
    for unit in "$work"/units/*.service; do
        # The exposure, from 0 to 100.
        systemd-analyze security --no-pager --offline=yes --threshold=30 "$unit"
    done
}

manifests_are_valid() {
    "$schemas/bin/kubernetes-validate" --strict packaging/services/kubernetes.yaml
    "$schemas/bin/python" - <<'END'
import yaml

kubernetes = yaml.safe_load(open("packaging/services/kubernetes.yaml"))["spec"]["template"]["spec"]
assert kubernetes["shareProcessNamespace"] is True
orders, taut = kubernetes["containers"]
assert orders["env"] == taut["env"] and orders["volumeMounts"] == taut["volumeMounts"]
services = yaml.safe_load(open("packaging/services/compose.yaml"))["services"]
orders, taut = services["orders"], services["taut"]
assert taut["pid"] == "service:orders"
for name in ("user", "environment", "volumes"):
    assert orders[name] == taut[name], name
END
}

# ---- programs of another user

need_root() { [[ $(uname) == Linux && $EUID == 0 ]] || skip "another user and namespaces need Linux and root"; }

# as_user COMMAND...: replaces the shell by a command as the user of the service, without rights.
as_user() { exec setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all "$@"; }

# service RUNTIME-FOLDER: the command of orders.service.
service() {
    as_user env XDG_RUNTIME_DIR="$1" "$TAUT" run --quiet --library "$LIBRARY" --observe --name orders "$program"
}
export -f as_user service
export user TAUT LIBRARY program

# tool ARGUMENTS...: taut as a tool of root.
tool() { env -u TAUT_COUNTERS -u XDG_RUNTIME_DIR "$TAUT" "$@"; }

# until_seen JOB: waits until root sees the service, and prints its process number. Fails if the job ended.
until_seen() {
    local pid=
    until [[ $pid ]]; do
        kill -0 "$1"
        pid=$(tool ps --json 2>/dev/null | jq -r "select(.uid == $user and .runs and .sockets == 1) | .pid")
    done
    echo "$pid"
}

service_with_private_tmp_is_seen_until_its_crash() {
    need_root
    install -d -m 755 -o "$user" -g "$user" "$runtime"
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare --mount bash -c 'mount -t tmpfs tmpfs /tmp && service "$0"' "$runtime" 2>"$work/err" &
    taut_run=$!
    trap 'kill "$taut_run" 2>/dev/null || true' EXIT
    pid=$(until_seen "$taut_run")
    tool ps | grep -E "^ *$pid +$user +orders "
    tool show "$pid" | grep ": PULL"
    tool metrics | grep "^tautline_process_running{pid=\"$pid\",program=\"orders\",user=\"$user\"} 1$"
    # With the capabilities of taut-metrics.service.
    env -u TAUT_COUNTERS -u XDG_RUNTIME_DIR setpriv --bounding-set=-all,+dac_read_search,+sys_ptrace --inh-caps=-all "$TAUT" ps | grep " orders "
    # Another user sees nothing.
    (setpriv --reuid "$((user + 1))" --clear-groups "$TAUT" show "$pid" 2>&1 || true) | grep "belongs to '#$user'"
    kill -9 "$pid"
    code=0
    wait "$taut_run" || code=$?
    [[ $code -eq 137 ]]
    grep "crashed or was killed: killed by signal 9 (SIGKILL)" "$work/err"
    tool ps | grep -E "^ *$pid +$user +orders .*killed by signal 9 \(SIGKILL\), [0-9.]+m?s ago"
    tool metrics | grep "^tautline_process_running{pid=\"$pid\",program=\"orders\",user=\"$user\"} 0$"
    tool metrics | grep "^tautline_process_end_time_seconds{pid=\"$pid\","
}

service_in_a_container_is_seen_by_root_and_by_its_sidecar() {
    need_root
    install -d -m 700 -o "$user" -g "$user" "$runtime-volume"
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare --mount --pid --fork --mount-proc bash -c 'service "$0"' "$runtime-volume" &
    unshare=$!
    # The kernel ends all processes of the namespace with the first one.
    trap 'pkill -9 -P "$unshare" || true' EXIT
    pid=$(until_seen "$unshare")
    tool ps | grep -E "^ *$pid +$user +orders "
    # The program has another number in its container.
    inner=$(sed -n 's/^NSpid:.*\t//p' "/proc/$pid/status")
    ticks=$(sed 's/.*) //' "/proc/$pid/stat" | cut -d ' ' -f 20)
    [[ $inner != "$pid" && -e $runtime-volume/tautline/$inner ]]
    # A sidecar has the same process numbers and the same volume.
    sidecar=(nsenter --target "$pid" --mount --pid setpriv --reuid "$user" --regid "$user" --clear-groups)
    "${sidecar[@]}" env XDG_RUNTIME_DIR="$runtime-volume" "$TAUT" ps --json | jq -e "select(.pid == $inner and .runs)"
    # From outside, the folder alone does not tell that the program runs. Root compares the open file, and shows the program once.
    [[ $(tool ps --json | jq -r "select(.uid == $user and .start_ticks == $ticks) | .pid") == "$pid" ]]
}

failing_doctor_starts_a_report() {
    # The line of cron in docs/operate/services.md.
    line=$(sed -n 's/^\*\/5 \* \* \* \* root //p' docs/operate/services.md)
    [[ $line ]]
    for code in 0 4; do
        printf '#!/bin/sh\necho the report\necho a notice >&2\nexit %s\n' "$code" >"$work/taut"
        chmod +x "$work/taut"
        said=$(PATH=$work:$PATH sh -c "$line" 2>&1)
        [[ ($code == 0 && -z $said) || ($code == 4 && $said == *"the report"*) ]]
    done
}

for name in alert_rules_are_valid alert_rules_and_the_dashboard_use_existing_metrics units_are_valid_and_confined manifests_are_valid \
    failing_doctor_starts_a_report service_with_private_tmp_is_seen_until_its_crash service_in_a_container_is_seen_by_root_and_by_its_sidecar; do
    wanted=
    [[ $# -gt 0 ]] || wanted=1
    for word in "$@"; do [[ $name != *$word* ]] || wanted=1; done
    [[ -z $wanted ]] || run_check services "$name" "tests/tools/services/run.sh $name" "$name"
done
echo "services: $passed passed, $failed failed, $skipped skipped"
[[ $failed -eq 0 ]]
