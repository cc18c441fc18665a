#!/usr/bin/env bash
# Compiles the binding and its tests with Mono's compiler: bindings/dotnet/build.sh OUT [RUNTIME [RUNTIME8]]
#
#   OUT/mono/   for Mono and .NET Framework: the netstandard2.0 build, without spans, streams and the meter
#   OUT/core/   for .NET Core 3.1, with spans and streams. Compiled against the assemblies of RUNTIME (the folder with
#               System.Private.CoreLib.dll), because Mono's assemblies have no Span that this compiler accepts.
#   OUT/net8/   for .NET 8, with spans, streams and the meter, if RUNTIME8 is given. This compiler cannot read the core library
#               of .NET 8, but code that it compiles against the core library of .NET Core 3.1 runs on .NET 8.
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
# These assemblies only forward types of the core library. System.Collections is left out, because its version conflicts with the
# newer assembly that has the meters.
for name in System.Runtime System.Runtime.Extensions System.Runtime.InteropServices \
    System.Runtime.InteropServices.RuntimeInformation System.Console System.Linq System.Threading \
    System.Diagnostics.Process System.ComponentModel.Primitives; do
    references+=(-r:"$runtime/$name.dll")
done

# compile NAME VERSION ARGUMENT...: compiles for the framework of that version.
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
