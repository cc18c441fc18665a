#!/usr/bin/env bash
# .NET with our binding, on Microsoft's .NET Core 3.1. Variables and results: bench/languages/build.sh.
#
# There is no .NET SDK here. Mono's compiler compiles the programs against the runtime's own assemblies.
# RUNTIME=mono builds the same for Mono's runtime (../mono).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
binding=$ROOT/bindings/dotnet
"$ROOT/scripts/need.sh" mcs:mono-mcs mono:mono-runtime \
    file=/usr/lib/mono/4.5/System.Core.dll:libmono-system-core4.0-cil
if [[ ${RUNTIME:-core} == core ]]; then
    "$ROOT/scripts/need.sh" python3:python3 py=pip:python3-pip
    assemblies=$("$binding/runtime.sh" "$CACHE/runtime")
fi
"$binding/build.sh" "$CACHE/binding" "${assemblies:-}"

for program in LocalLat RemoteLat LocalThr RemoteThr; do
    name=$(sed 's/\(.\)\([A-Z]\)/\1_\2/' <<<"$program" | tr '[:upper:]' '[:lower:]')
    if [[ ${RUNTIME:-core} == core ]]; then
        mcs -unsafe -optimize -nostdlib -noconfig -r:"$assemblies/System.Private.CoreLib.dll" -r:"$assemblies/System.Runtime.dll" \
            -r:"$assemblies/System.Runtime.Extensions.dll" -r:"$assemblies/System.Console.dll" \
            -r:"$CACHE/binding/core/Tautline.dll" -out:"$OUT/$program.dll" "$here/Bench.cs" "$here/$program.cs"
        # Without tiered compilation, all code is fully optimised at once. With it, the warm-up would be too
        # short.
        cat >"$OUT/$program.runtimeconfig.json" <<'JSON'
{
  "runtimeOptions": {
    "framework": { "name": "Microsoft.NETCore.App", "version": "3.1.0" },
    "configProperties": { "System.Globalization.Invariant": true, "System.Runtime.TieredCompilation": false }
  }
}
JSON
        cp "$CACHE/binding/core/Tautline.dll" "$OUT"
        printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$CACHE/runtime/dotnet" "$OUT/$program.dll" >"$OUT/$name"
    else
        mcs -unsafe -optimize -r:"$CACHE/binding/mono/Tautline.dll" -out:"$OUT/$program.exe" "$here/Bench.cs" "$here/$program.cs"
        cp "$CACHE/binding/mono/Tautline.dll" "$OUT"
        printf '#!/bin/sh\nexec mono -O=all "%s" "$@"\n' "$OUT/$program.exe" >"$OUT/$name"
    fi
    chmod +x "$OUT/$name"
done
{
    if [[ ${RUNTIME:-core} == core ]]; then
        echo "runtime: Microsoft.NETCore.App $(basename "$assemblies")"
    else
        echo "runtime: $(mono --version | head -n 1)"
    fi
    echo "compiler: $(mcs --version)"
    echo "binding: Tautline $(sed -n 's|.*<Version>\(.*\)</Version>.*|\1|p' "$binding/Tautline/Tautline.csproj")"
} >"$OUT/versions.txt"
