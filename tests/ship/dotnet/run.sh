#!/usr/bin/env bash
# Runs the tests of our .NET binding (bindings/dotnet) on Mono, .NET Core 3.1 and .NET 8, with our library and with libzmq.
#
#   tests/ship/dotnet/run.sh [LIBDIR [LIBZMQDIR]]
#
# LIBDIR is the folder of our libzmq.so.5, and LIBZMQDIR the folder of libzmq's. By default, the script takes the libraries that the
# suites share. If Mono's compiler or a runtime from PyPI is missing, the tests that need it are skipped with a message. Ends with
# `dotnet: N passed, N failed, N skipped`.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
target=$(realpath -m "${CARGO_TARGET_DIR:-$root/target}")
binding=$root/bindings/dotnet
work=$target/bindings/dotnet
mkdir -p "$work"
passed=0 failed=0 skipped=0

skip() {
    echo "skipped dotnet: $1"
    skipped=$((skipped + 1))
}

end() {
    echo "dotnet: $passed passed, $failed failed, $skipped skipped"
    [[ $failed -eq 0 ]]
    exit
}

"$root/scripts/need.sh" mcs:mono-mcs mono:mono-runtime \
    file=/usr/lib/mono/4.5/System.Core.dll:libmono-system-core4.0-cil file=/usr/lib/mono/gac/Mono.Cecil:libmono-cecil-private-cil >&2 || { skip "needs Mono's compiler and runtime"; end; }
ours=${1:-}
if [[ -z $ours ]]; then
    ours=$("$root/tests/lib/build.sh" library)
fi
libzmq=${2:-$("$root/tests/lib/build.sh" baseline)}

assemblies='' newer=''
if ! assemblies=$("$binding/runtime.sh" "$work/runtime" 2>"$work/runtime.log"); then
    assemblies=
    tail -n 2 "$work/runtime.log"
    skip ".NET Core 3.1 could not be fetched from PyPI (spans, streams and the meter are not tested without it)"
elif ! newer=$("$binding/runtime.sh" "$work/runtime8" net8 2>"$work/runtime8.log"); then
    newer=
    tail -n 2 "$work/runtime8.log"
    skip ".NET 8 could not be fetched from PyPI (the meter is not tested without it)"
fi
"$binding/build.sh" "$work" "$assemblies" "$newer"
[[ -z $assemblies ]] || "$binding/refer.sh" "$work" "$assemblies" "$newer"

# [part=NAME] run RUN LIBDIR EXPECTED COMMAND...: runs tests and adds the numbers of their closing line. A run without that line has failed.
run() {
    local what=$1 directory=$2 expected=$3 log=$work/$1.log code=0 line
    shift 3
    echo "  $what: running"
    # A run that is killed here hangs, because the tests' own watchdog is shorter.
    LD_LIBRARY_PATH=$directory timeout -k 5 300 "$@" "$expected" ${part:+"$part"} >"$log" 2>&1 || code=$?
    line=$(grep -E '^dotnet: [0-9]+ passed' "$log" | tail -n 1 || true)
    [[ -n $line ]] || line='dotnet: 0 passed, 1 failed, 0 skipped'
    [[ $code -eq 0 || $line != *" 0 failed"* ]] || line=${line/ 0 failed/ 1 failed}
    if [[ $line != *" 0 failed"* ]]; then
        grep -A8 '^not ok' "$log" | sed 's/^not ok/FAILED/' || true
        tail -n 5 "$log" | sed 's/^/    /'
    fi
    echo "  $what: ${line#dotnet: }"
    read -r _ p _ f _ < <(tr -d , <<<"$line")
    passed=$((passed + p)) failed=$((failed + f))
}

on_each() {
    run "mono-$2" "$1" "$2" mono "$work/mono/Tests.exe"
    [[ -z $assemblies ]] || run "core-$2" "$1" "$2" "$work/runtime/dotnet" "$work/core/Tests.dll"
    [[ -z $newer ]] || run "net8-$2" "$1" "$2" "$work/runtime8/dotnet" "$work/net8/Tests.dll"
}

# Packs the files for each framework and this machine's library. Checks the contents, and that a second package is equal.
package() {
    local folder=$work/package packages version id nupkg framework expected=
    rm -rf "$folder"
    mkdir -p "$folder/natives/linux-x64/native"
    for framework in netstandard2.0 netcoreapp3.1 ${newer:+net8.0}; do
        expected+=$(printf './lib/%s/Tautline.%s\n' "$framework" dll "$framework" xml)$'\n'
    done
    strip -o "$folder/natives/linux-x64/native/libzmq.so.5" "$ours/libzmq.so.5"
    nupkg=$("$binding/pack.py" "$work/lib" "$folder/natives" "$folder") || return
    "$binding/build.sh" "$folder/again" "$assemblies" "$newer" || return
    "$binding/refer.sh" "$folder/again" "$assemblies" "$newer" || return
    "$binding/pack.py" "$folder/again/lib" "$folder/natives" "$folder/again" >/dev/null || return
    cmp "$nupkg" "$folder/again/${nupkg##*/}" || return
    id=${nupkg##*/} version=${id#Tautline.} version=${version%.nupkg}
    echo "$version" >"$folder/version"
    packages=$folder/packages
    mkdir -p "$packages/tautline/$version"
    python3 -m zipfile -e "$nupkg" "$packages/tautline/$version"
    expected+=$(printf '%s\n' ./README.md ./Tautline.nuspec './[Content_Types].xml' ./_rels/.rels ./runtimes/linux-x64/native/libzmq.so.5)
    diff <(sort <<<"$expected") <(cd "$packages/tautline/$version" && find . -type f | sort) || return
    python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$packages/tautline/$version/Tautline.nuspec"
}

# Makes the reference assemblies for a project of the SDK from .NET Core 3.1's own assemblies, because they may not be in a registry.
# netstandard.dll contains the types, without a reference to System.Private.CoreLib. An assembly that refers to it is not accepted.
known=$work/references
references() {
    local folder=$work/package/private
    rm -rf "$known"
    mkdir -p "$known" "$folder"
    mcs -r:"$(printf '%s\n' /usr/lib/mono/gac/Mono.Cecil/0.1[1-9]*/Mono.Cecil.dll | tail -n 1)" -out:"$work/reference.exe" \
        "$root/tests/ship/dotnet/reference.cs" || return
    mono "$work/reference.exe" "$assemblies"/{System.Private.CoreLib,netstandard}.dll "$known/netstandard.dll" || return
    mono "$work/refer.exe" "$assemblies/System.Console.dll" "$known/System.Console.dll" -- "$assemblies/netstandard.dll" || return
    echo 'public class Private { }' >"$folder/Private.cs"
    echo 'class Uses : Private { static void Main() { } }' >"$folder/Uses.cs"
    mcs -nostdlib -noconfig -r:"$assemblies/System.Private.CoreLib.dll" -target:library -out:"$folder/Private.dll" "$folder/Private.cs" || return
    ! mcs -nostdlib -noconfig -r:"$known/netstandard.dll" -r:"$folder/Private.dll" -out:"$folder/Uses.exe" "$folder/Uses.cs" >"$folder/said" 2>&1 || return
    grep -q 'CS0012.*System.Private.CoreLib' "$folder/said"
}

# refers FRAMEWORK NAME...: true if the package's assembly for FRAMEWORK refers to exactly these assemblies.
refers() {
    local file
    file=$work/package/packages/tautline/$(<"$work/package/version")/lib/$1/Tautline.dll
    shift
    diff <(printf '%s\n' "$@") <(mono "$work/reference.exe" "$file" | sort)
}

# first FRAMEWORK FOLDER DOTNET: runs the README's first program in a project for which NuGet has restored the package. The program finds
# the assembly and the library only in the package's folder.
first() {
    local app=$work/package/app-$1 packages=$work/package/packages version
    version=$(<"$work/package/version")
    mkdir -p "$app"
    {
        echo 'using System;'
        sed -n '/^```csharp/,/^```$/p' "$binding/README.md" | sed -n '1,/^```$/p' | sed '1d;$d' |
            sed 's/^using (var context/class First { static void Main() {\n&/'
        echo 'Console.WriteLine(Library.IsTautline); } }'
    } >"$app/First.cs"
    mcs -nostdlib -noconfig -r:"$known/netstandard.dll" -r:"$known/System.Console.dll" -r:"$packages/tautline/$version/lib/$1/Tautline.dll" -out:"$app/First.dll" "$app/First.cs" || return
    cp "$work/$2/Tests.runtimeconfig.json" "$app/First.runtimeconfig.json"
    echo "{ \"runtimeOptions\": { \"additionalProbingPaths\": [\"$packages\"] } }" >"$app/First.runtimeconfig.dev.json"
    cat >"$app/First.deps.json" <<JSON
{ "runtimeTarget": { "name": ".NETCoreApp,Version=v3.1" },
  "targets": { ".NETCoreApp,Version=v3.1": {
    "First/1.0.0": { "dependencies": { "Tautline": "$version" }, "runtime": { "First.dll": {} } },
    "Tautline/$version": { "runtime": { "lib/$1/Tautline.dll": {} },
      "runtimeTargets": { "runtimes/linux-x64/native/libzmq.so.5": { "rid": "linux-x64", "assetType": "native" } } } } },
  "libraries": {
    "First/1.0.0": { "type": "project", "serviceable": false, "sha512": "" },
    "Tautline/$version": { "type": "package", "serviceable": true, "sha512": "", "path": "tautline/$version" } } }
JSON
    (unset LD_LIBRARY_PATH && cd / && timeout -k 5 120 "$3" "$app/First.dll") >"$app/said" || return
    [[ $(<"$app/said") == $'Hello\nWorld\nTrue' ]] || { cat "$app/said"; return 1; }
}

# of_package NAME COMMAND...: runs a check of the package and counts it.
of_package() {
    local what=$1
    shift
    if "$@"; then
        echo "  package: $what"
        passed=$((passed + 1))
    else
        echo "FAILED package: $what: $work/package"
        failed=$((failed + 1))
    fi
}

if [[ -z $assemblies || $(uname -m) != x86_64 ]]; then
    skip "the package: there is no .NET Core to run it"
else
    of_package "it has the expected files, and a second package is equal" package
    of_package "a project cannot use an assembly that refers to a runtime's own core library" references
    of_package "netstandard2.0 refers only to netstandard" refers netstandard2.0 'netstandard 2.0.0.0'
    interop='System.Runtime.InteropServices 4.2.2.0'
    of_package "netcoreapp3.1 refers only to assemblies that its projects know" refers netcoreapp3.1 "$interop" 'netstandard 2.1.0.0'
    of_package "the README's first program compiles against it and runs with .NET Core 3.1" first netcoreapp3.1 core "$work/runtime/dotnet"
    of_package "this program runs with the assembly for netstandard2.0" first netstandard2.0 core "$work/runtime/dotnet"
    if [[ -n $newer ]]; then
        of_package "net8.0 refers only to assemblies that its projects know" refers net8.0 'System.Diagnostics.DiagnosticSource 8.0.0.0' "$interop" 'netstandard 2.1.0.0'
        of_package "this program runs with .NET 8" first net8.0 net8 "$work/runtime8/dotnet"
    fi
fi

# Without a library, the error names the searched places. An empty file hides a library that the system may have. Then single tests run
# alone: the first call that fails in a program has its error number, although the runtime still has to load and compile all code.
missing=$work/missing
mkdir -p "$missing" && : >"$missing/libzmq.so.5"
for runtime in mono ${assemblies:+core} ${newer:+net8}; do
    case $runtime in
        mono) program=(mono "$work/mono/Tests.exe") ;;
        core) program=("$work/runtime/dotnet" "$work/core/Tests.dll") ;;
        net8) program=("$work/runtime8/dotnet" "$work/net8/Tests.dll") ;;
    esac
    said=$(LD_LIBRARY_PATH=$missing timeout -k 5 120 "${program[@]}" tautline ErrorsHave 2>&1) || true
    if [[ $said == *"The loader does not find libzmq.so.5"*LD_LIBRARY_PATH* ]]; then
        passed=$((passed + 1))
    else
        echo "FAILED $runtime: without a library, the error does not name LD_LIBRARY_PATH"
        failed=$((failed + 1))
    fi
    for name in Miscellaneous.ErrorsHave Exchange.WithoutWaiting Lifetime.AClosedSocket; do
        part=$name run "$runtime-${name#*.}-alone" "$ours" tautline "${program[@]}"
    done
done

on_each "$ours" tautline
on_each "$libzmq" libzmq
end
