# The steps of docs/start/install.md under "See it run", for each language; sourced by run.sh.

listed() { # prints the languages that the page lists
    awk '/^## / { here = $0 == "## See it run" } here && /^\| `[a-z]/ { gsub("`", "", $2); print $2 }' docs/start/install.md
}
page_is_true() {
    grep -x 'make try LANGUAGE=go' docs/start/install.md
    local language
    for language in $(listed); do
        [[ -f bench/languages/$language/language.toml || -f bench/languages/$language-tautline/language.toml ]]
    done
    fails make --no-print-directory try LANGUAGE=cobol
}
runs_on_tautline() { # runs_on_tautline LANGUAGE FILE: the library is FILE; `/` means any file, for bindings that contain the library
    local code=0
    # The library is installed, so that `make try` builds only the program or the binding.
    local -x CARGO_PROFILE_ADDON_LTO=off CARGO_PROFILE_ADDON_CODEGEN_UNITS=16 CARGO_PROFILE_ADDON_OPT_LEVEL=1
    make --no-print-directory try LANGUAGE="$1" PREFIX="$prefix" >"$work/try" 2>"$work/try.errors" || code=$?
    cat "$work/try" "$work/try.errors"
    if [[ $code -ne 0 ]] && grep -qiE 'missing|resolve|network|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|dial tcp|fetch|no registry' "$work/try.errors"; then
        skip "$(grep -iE 'missing|resolve|network|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|dial tcp|fetch' "$work/try.errors" | tail -n 1)"
    fi
    [[ $code -eq 0 ]]
    grep -F "runs on Tautline $version: $2" "$work/try"
    grep -E '^  64 B, PUSH to PULL over tcp +[0-9]+\.[0-9]+ million messages a second$' "$work/try"
    grep -E '^  64 B, REQ to REP and back +[0-9]+\.[0-9] µs$' "$work/try"
}

check 'first minutes: the page' page_is_true
# The second binding of a language takes the same way, so only the first is run.
for language in $(listed | grep -vxE 'rust-zmq|node-zeromq|mono'); do
    case $language in
        node | rust) file=/ ;;
        *) file=$prefix/lib/libzmq.so.5.2.5 ;;
    esac
    check "first minutes: $language" runs_on_tautline "$language" "$file"
done
