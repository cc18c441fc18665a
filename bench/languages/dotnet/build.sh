#!/usr/bin/env bash
# .NET with our binding, on Microsoft's .NET 8. Variables and results: bench/languages/build.sh.
#
# There is no .NET SDK here. Mono's compiler compiles the programs against the assemblies of .NET Core 3.1, because it cannot read
# those of .NET 8. PROGRAMS=FOLDER takes the four programs from another folder (../dotnet-async). RUNTIME=mono builds the same for
# Mono's runtime (../mono).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
binding=$ROOT/bindings/dotnet
programs=${PROGRAMS:-$here}
"$ROOT/scripts/need.sh" mcs:mono-mcs mono:mono-runtime file=/usr/lib/mono/4.5/System.Core.dll:libmono-system-core4.0-cil
if [[ ${RUNTIME:-net8} == net8 ]]; then
    "$ROOT/scripts/need.sh" python3:python3 py=pip:python3-pip file=/usr/lib/mono/gac/Mono.Cecil:libmono-cecil-private-cil
    assemblies=$("$binding/runtime.sh" "$CACHE/runtime")
    newer=$("$binding/runtime.sh" "$CACHE/runtime8" net8)
fi
"$binding/build.sh" "$CACHE/binding" "${assemblies:-}" "${newer:-}"

for program in LocalLat RemoteLat LocalThr RemoteThr; do
    name=$(sed 's/\(.\)\([A-Z]\)/\1_\2/' <<<"$program" | tr '[:upper:]' '[:lower:]')
    if [[ ${RUNTIME:-net8} == net8 ]]; then
        mcs -unsafe -optimize -nostdlib -noconfig -r:"$assemblies/System.Private.CoreLib.dll" -r:"$assemblies/System.Runtime.dll" \
            -r:"$assemblies/System.Runtime.Extensions.dll" -r:"$assemblies/System.Console.dll" \
            -r:"$CACHE/binding/core/Tautline.dll" -out:"$OUT/$program.dll" "$here/Bench.cs" "$programs/$program.cs"
        # Without tiered compilation, all code is optimised at once, without a profile. With it, the warm-up would be too
        # short: the runtime would replace code during the measurement.
        cat >"$OUT/$program.runtimeconfig.json" <<'JSON'
{
  "runtimeOptions": {
    "framework": { "name": "Microsoft.NETCore.App", "version": "8.0.0" },
    "configProperties": {
      "System.GC.Server": true,
      "System.Globalization.Invariant": true,
      "System.Runtime.TieredCompilation": false
    }
  }
}
JSON
        printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$CACHE/runtime8/dotnet" "$OUT/$program.dll" >"$OUT/$name"
    else
        mcs -unsafe -optimize -r:"$CACHE/binding/mono/Tautline.dll" -out:"$OUT/$program.exe" "$here/Bench.cs" "$programs/$program.cs"
        cp "$CACHE/binding/mono/Tautline.dll" "$OUT"
        printf '#!/bin/sh\nexec mono -O=all "%s" "$@"\n' "$OUT/$program.exe" >"$OUT/$name"
    fi
    chmod +x "$OUT/$name"
done
if [[ ${RUNTIME:-net8} == net8 ]]; then
    # Replaces the library with the packaged one, against which mcs cannot compile programs.
    "$binding/refer.sh" "$CACHE/binding" "$assemblies" "$newer"
    cp "$CACHE/binding/net8/Tautline.dll" "$OUT"
fi
{
    if [[ ${RUNTIME:-net8} == net8 ]]; then
        echo "runtime: Microsoft.NETCore.App $(basename "$newer"), Server GC"
    else
        echo "runtime: $(mono --version | head -n 1)"
    fi
    echo "compiler: $(mcs --version)"
    echo "binding: Tautline $(sed -n 's|.*<Version>\(.*\)</Version>.*|\1|p' "$binding/Tautline/Tautline.csproj")"
} >"$OUT/versions.txt"
