#!/usr/bin/env bash
# The programs of ../java on JeroMQ, which has the same classes. Variables and results: bench/languages/build.sh.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$ROOT/scripts/need.sh" javac:default-jdk-headless mvn:maven
for artifact in org.zeromq:jeromq:0.6.0 eu.neilalexander:jnacl:1.0.0; do
    file=${artifact#*:}
    [[ -e $CACHE/${file/:/-}.jar ]] || mvn -q -B org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
        -Dartifact="$artifact" -DoutputDirectory="$CACHE"
done
jars="$CACHE/jeromq-0.6.0.jar:$CACHE/jnacl-1.0.0.jar"
javac -nowarn -cp "$jars" -d "$OUT/classes" "$here"/../java/*.java
for program in LocalLat RemoteLat LocalThr RemoteThr; do
    name=$(sed 's/\(.\)\([A-Z]\)/\1_\2/' <<<"$program" | tr '[:upper:]' '[:lower:]')
    printf '#!/bin/sh\nexec java -cp "%s:%s" %s "$@"\n' "$jars" "$OUT/classes" "$program" >"$OUT/$name"
    chmod +x "$OUT/$name"
done
{
    echo "runtime: $(java -version 2>&1 | sed -n 2p)"
    echo "binding: JeroMQ 0.6.0"
} >"$OUT/versions.txt"
