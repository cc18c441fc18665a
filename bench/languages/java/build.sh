#!/usr/bin/env bash
# Java with jzmq, the binding by JNI, as Debian has it. Variables and results: bench/languages/build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$ROOT/scripts/need.sh" javac:default-jdk-headless
if [[ ! -e $CACHE/.complete ]]; then
    # Unpacked, not installed: the package would install another libzmq into the loader's default path.
    cd "$CACHE"
    apt-get download libzmq-java libzmq-jni || { apt-get update && apt-get download libzmq-java libzmq-jni; }
    for deb in *.deb; do dpkg -x "$deb" .; done
    touch .complete
fi
jar=$(readlink -f "$CACHE/usr/share/java/zmq.jar")
native=$(dirname "$(find "$CACHE" -name 'libjzmq.so' | head -n 1)")
javac -nowarn -cp "$jar" -d "$OUT/classes" "$here"/*.java
for program in LocalLat RemoteLat LocalThr RemoteThr; do
    name=$(sed 's/\(.\)\([A-Z]\)/\1_\2/' <<<"$program" | tr '[:upper:]' '[:lower:]')
    printf '#!/bin/sh\nexec java -Djava.library.path="%s" -cp "%s:%s" %s "$@"\n' "$native" "$jar" "$OUT/classes" "$program" >"$OUT/$name"
    chmod +x "$OUT/$name"
done
{
    echo "runtime: $(java -version 2>&1 | sed -n 2p)"
    echo "binding: jzmq $(ls "$CACHE" | sed -n 's/^libzmq-jni_\(.*\)_.*\.deb$/\1/p')"
} >"$OUT/versions.txt"
