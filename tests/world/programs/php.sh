#!/usr/bin/env bash
# PHP with its zmq extension exchanges 20,000 messages and some requests.
. "$(dirname "$0")/common.sh"
start php "$@"
need apt-get:apt dpkg:dpkg

mapfile -t packages < <(php_packages)
fetch "php-${packages[0]}" unpack_debs "${packages[@]}"
debian=$cache/php-${packages[0]}
libraries=$(dirname "$(find "$debian" -name 'libedit.so.2' | head -n 1)")
run() {
    TMPDIR=$work LD_LIBRARY_PATH=$prefix/lib:$libraries witness timeout 120 "$(printf '%s\n' "$debian"/usr/bin/php[0-9]* | head -n 1)" -n \
        -d extension="$(find "$debian" -name zmq.so | head -n 1)" "$here/php/exchange.php"
}
run >"$work/exchange.log" 2>&1 || true
cat "$work/exchange.log"
count "$(grep -c '^ok ' "$work/exchange.log" || true)" "$(grep -c '^not ok ' "$work/exchange.log" || true)" 0
check "the program runs to its end" grep -q '^end$' "$work/exchange.log"
check "the program loads only this libzmq" witnessed
finish
