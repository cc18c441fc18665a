#!/usr/bin/env bash
# Fetches Microsoft's .NET Core 3.1 runtime, which PyPI carries as `dotnetcore2`: bindings/dotnet/runtime.sh DIR
# It is kept in DIR. Prints the folder of the runtime's assemblies; DIR/dotnet runs a program.
set -euo pipefail
version=3.1.23
mkdir -p "$1"
folder=$(cd "$1" && pwd)
exec 9>"$folder/.lock"
flock 9
if [[ ! -e $folder/.complete ]]; then
    rm -rf "$folder/wheel"
    mkdir "$folder/wheel"
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: -d "$folder/wheel" "dotnetcore2==$version" >&2
    (cd "$folder/wheel" && python3 -m zipfile -e ./*.whl . && rm ./*.whl)
    chmod +x "$folder/wheel/dotnetcore2/bin/dotnet"
    ln -sfn wheel/dotnetcore2/bin/dotnet "$folder/dotnet"
    touch "$folder/.complete"
fi
echo "$folder/wheel/dotnetcore2/bin/shared/Microsoft.NETCore.App/$version"
