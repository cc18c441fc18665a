#!/usr/bin/env bash
# Prints the closing line of a suite from the output of cargo-nextest and cargo, and the commands that repeat failed tests. Ignored tests
# count as skipped if `cargo nextest run --status-level skip` or `cargo test` lists them.
#
#   tests/rust/sum.sh SUITE COMMAND LOG
set -euo pipefail

awk -v suite="$1" -v command="$2" '
    { gsub(/\033\[[0-9;]*m/, "") }
    /^ *Summary \[/ {
        for (i = 2; i <= NF; i++) {
            if ($i ~ /^passed/) passed += $(i - 1)
            # Matches `1 failed`, `1 exec failed` and `1 timed out`.
            if ($i ~ /^(failed|timed)/) failed += $(i - 1) == "exec" ? $(i - 2) : $(i - 1)
        }
    }
    /^ +SKIP \[/ { print "skipped " $(NF - 1) " " $NF ": ignored"; skipped++ }
    # Results of the examples in the documentation.
    /^test .* \.\.\. ignored/ { sub(/^test /, ""); sub(/ \.\.\. ignored/, ": ignored"); print "skipped " $0; skipped++ }
    /^test result: / { passed += $4; failed += $6 }
    /^ +(FAIL|XFAIL|LEAK-FAIL|ABORT|TIMEOUT|SIG[A-Z0-9]+) \[/ && !seen[$NF]++ { print "again: " command " \047test(=" $NF ")\047" }
    END { printf "%s: %d passed, %d failed, %d skipped\n", suite, passed, failed, skipped }' "$3"
