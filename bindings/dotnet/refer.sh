#!/usr/bin/env bash
# Makes the packaged library from the output of build.sh: bindings/dotnet/refer.sh OUT RUNTIME [RUNTIME8]
#
#   OUT/lib/FRAMEWORK/    for netstandard2.0, netcoreapp3.1 and, with RUNTIME8, net8.0
#
# build.sh compiles against a runtime's own assemblies, which SDK projects do not know. This script makes the library refer to assemblies
# that SDK projects know instead. The result replaces the library that the tests in OUT/core and OUT/net8 use. OUT/mono stays unchanged,
# because Mono has no netstandard.dll without its development files. The same sources produce the same bytes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=$(cd "$1" && pwd) runtime=$2
"$here/../../scripts/need.sh" mcs:mono-mcs mono:mono-runtime file=/usr/lib/mono/4.5/System.Core.dll:libmono-system-core4.0-cil \
    file=/usr/lib/mono/gac/Mono.Cecil:libmono-cecil-private-cil >&2
mcs -warn:4 -warnaserror -r:"$(printf '%s\n' /usr/lib/mono/gac/Mono.Cecil/0.1[1-9]*/Mono.Cecil.dll | tail -n 1)" -out:"$out/refer.exe" \
    "$here/refer.cs"

# packaged NAME FRAMEWORK [NAME=VERSION]: packages the library in OUT/NAME. netstandard.dll has every type except NativeLibrary.
packaged() {
    local folder=$out/lib/$2
    mkdir -p "$folder"
    mono "$out/refer.exe" "$out/$1/Tautline.dll" "$folder/Tautline.dll" "${@:3}" -- "$runtime"/{netstandard,System.Runtime.InteropServices}.dll
    cp "$out/$1/Tautline.xml" "$folder"
    [[ $1 == mono ]] || cp "$folder/Tautline.dll" "$out/$1"
}
rm -rf "${out:?}/lib"
packaged mono netstandard2.0 netstandard=2.0.0.0
packaged core netcoreapp3.1
[[ -z ${3:-} ]] || packaged net8 net8.0
