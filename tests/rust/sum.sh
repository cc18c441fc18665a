#!/usr/bin/env bash
# The closing line of a suite from what cargo-nextest and cargo have printed, and the commands that repeat what failed.
#
#   tests/rust/sum.sh SUITE COMMAND LOG
set -euo pipefail

awk -v suite="$1" -v command="$2" '
    { gsub(/\033\[[0-9;]*m/, "") }
    /^ *Summary \[/ {
        for (i = 2; i <= NF; i++) {
            if ($i ~ /^passed/) passed += $(i - 1)
            if ($i ~ /^(failed|timed)/) failed += $(i - 1)
        }
    }
    # The examples of the documentation.
    /^test result: / { passed += $4; failed += $6 }
    /^ +(FAIL|TIMEOUT|SIG[A-Z]+) \[/ && !seen[$NF]++ { print "again: " command " \047test(=" $NF ")\047" }
    END { printf "%s: %d passed, %d failed, 0 skipped\n", suite, passed, failed }' "$3"
