#!/usr/bin/env bash
# Compiles the C peer once: bench/peers/c/build.sh INCLUDE_DIR LIBRARY_DIR OUT_DIR
# The programs have no rpath, so LD_LIBRARY_PATH selects the libzmq.so.5 that they use.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
include=$1 library=$2 out=$3
mkdir -p "$out"
flags=(-std=gnu11 -O3 -fPIE -pie -pthread -Wall -Wextra)
# The library is found again only through LD_LIBRARY_PATH, so its own dependencies are not checked here.
${CC:-cc} "${flags[@]}" -I"$include" -o "$out/zmq-bench" \
    "$here"/{main,report,setup,watchdog,ends,flow,round_trip,dealer_router,sides,filter,streams,in_turn,latency,oversubscribed,ring,histogram,pairs,handshakes,common}.c \
    "$here"/crowd{,_publish,_route}.c \
    "$library/libzmq.so.5" -ldl -Wl,--allow-shlib-undefined
${CC:-cc} "${flags[@]}" -o "$out/calibrate" "$here"/calibrate.c
if [ "$(uname)" = Linux ]; then
    for program in wire busy; do ${CC:-cc} "${flags[@]}" -o "$out/$program" "$here/$program.c"; done
fi

${CC:-cc} "${flags[@]}" -DWITHOUT_ZMQ -o "$out/raw-bench" \
    "$here"/raw{,_calls,_stream,_memory,_fan_out,_round_trip,_latency,_oversubscribed,_crowd}.c "$here"/{crowd,pairs,common}.c
