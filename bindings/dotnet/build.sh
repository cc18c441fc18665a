#!/usr/bin/env bash
# Compiles the binding and its tests with Mono's compiler: bindings/dotnet/build.sh OUT [RUNTIME]
#
#   OUT/mono/   for Mono and .NET Framework: what netstandard2.0 gets, without spans
#   OUT/core/   for .NET Core, with spans, compiled against the RUNTIME's own assemblies (the folder with
#               System.Private.CoreLib.dll); Mono's own know no Span that this compiler accepts
#
# The project for `dotnet build` and `dotnet pack` is Tautline/Tautline.csproj.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
common=(-unsafe -optimize -warn:4 -warnaserror)

mkdir -p "$out/mono"
mcs "${common[@]}" -target:library -doc:"$out/mono/Tautline.xml" -out:"$out/mono/Tautline.dll" "$here"/Tautline/*.cs
mcs "${common[@]}" -r:"$out/mono/Tautline.dll" -out:"$out/mono/Tests.exe" "$here"/tests/*.cs

[[ -n ${2:-} ]] || exit 0
runtime=$2
mkdir -p "$out/core"
references=(-nostdlib -noconfig -r:"$runtime/System.Private.CoreLib.dll")
# Types that the core library has itself are only forwarded by these.
for name in System.Runtime System.Runtime.Extensions System.Runtime.InteropServices \
    System.Runtime.InteropServices.RuntimeInformation System.Collections System.Console System.Linq System.Threading \
    System.Diagnostics.Process System.ComponentModel.Primitives; do
    references+=(-r:"$runtime/$name.dll")
done
mcs "${common[@]}" "${references[@]}" -d:SPANS -target:library -doc:"$out/core/Tautline.xml" -out:"$out/core/Tautline.dll" "$here"/Tautline/*.cs
mcs "${common[@]}" "${references[@]}" -d:SPANS -r:"$out/core/Tautline.dll" -out:"$out/core/Tests.dll" "$here"/tests/*.cs
cat >"$out/core/Tests.runtimeconfig.json" <<'JSON'
{
  "runtimeOptions": {
    "framework": { "name": "Microsoft.NETCore.App", "version": "3.1.0" },
    "configProperties": { "System.Globalization.Invariant": true }
  }
}
JSON
