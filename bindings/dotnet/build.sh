#!/usr/bin/env bash
# Compiles the binding and its tests with Mono's compiler: bindings/dotnet/build.sh OUT [RUNTIME [RUNTIME8]]
#
#   OUT/mono/   for Mono and .NET Framework: what netstandard2.0 gets, without spans, streams and the meter
#   OUT/core/   for .NET Core 3.1, with spans and streams, compiled against the RUNTIME's own assemblies (the folder with
#               System.Private.CoreLib.dll); Mono's own know no Span that this compiler accepts
#   OUT/net8/   for .NET 8, with the meter, too, if RUNTIME8 is given. This compiler cannot read the core library of .NET 8, but what it
#               compiles against the older one runs there
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
references=(-nostdlib -noconfig -r:"$runtime/System.Private.CoreLib.dll")
# Types that the core library has itself are only forwarded by these. Not System.Collections: the compiler holds its version against
# the newer assembly that has the meters.
for name in System.Runtime System.Runtime.Extensions System.Runtime.InteropServices \
    System.Runtime.InteropServices.RuntimeInformation System.Console System.Linq System.Threading \
    System.Diagnostics.Process System.ComponentModel.Primitives; do
    references+=(-r:"$runtime/$name.dll")
done

# compile NAME VERSION ARGUMENT...: for the framework of that version.
compile() {
    local folder=$out/$1 version=$2
    shift 2
    mkdir -p "$folder"
    mcs "${common[@]}" "${references[@]}" "$@" -target:library -doc:"$folder/Tautline.xml" -out:"$folder/Tautline.dll" "$here"/Tautline/*.cs
    mcs "${common[@]}" "${references[@]}" "$@" -r:"$folder/Tautline.dll" -out:"$folder/Tests.dll" "$here"/tests/*.cs
    cat >"$folder/Tests.runtimeconfig.json" <<JSON
{
  "runtimeOptions": {
    "framework": { "name": "Microsoft.NETCore.App", "version": "$version" },
    "configProperties": { "System.Globalization.Invariant": true }
  }
}
JSON
}

compile core 3.1.0 -d:SPANS
[[ -z ${3:-} ]] || compile net8 8.0.0 -d:SPANS -d:METERS -r:"$3/System.Diagnostics.DiagnosticSource.dll"
