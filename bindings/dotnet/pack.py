#!/usr/bin/env python3
"""Makes the same NuGet package as `dotnet pack -p:Natives=DIR`, without the .NET SDK.

    bindings/dotnet/pack.py ASSEMBLIES NATIVES OUT

ASSEMBLIES has a folder for each framework with Tautline.dll and Tautline.xml (netstandard2.0, netcoreapp3.1, net8.0); NATIVES has the libraries
as RUNTIME/native/libzmq.so.5 (linux-x64, linux-arm64, linux-musl-x64, linux-musl-arm64). The description of the
package comes from Tautline/Tautline.csproj. The same input gives the same bytes. Prints the package's path.
"""

import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
RUNTIMES = {"linux-x64", "linux-arm64", "linux-musl-x64", "linux-musl-arm64", "osx-x64", "osx-arm64", "win-x64"}


def properties():
    """Returns the project's properties by name."""
    project = ElementTree.parse(HERE / "Tautline" / "Tautline.csproj").getroot()
    return {p.tag: p.text for group in project.findall("PropertyGroup") for p in group if "Condition" not in p.attrib}


def nuspec(of, frameworks):
    """Returns the package's description (nuspec)."""
    groups = "".join(f'      <group targetFramework="{name}" />\n' for name in frameworks)
    return f"""<?xml version="1.0" encoding="utf-8"?>
<package xmlns="http://schemas.microsoft.com/packaging/2013/05/nuspec.xsd">
  <metadata>
    <id>{of["PackageId"]}</id>
    <version>{of["Version"]}</version>
    <title>{escape(of["Title"])}</title>
    <authors>{escape(of["Authors"])}</authors>
    <license type="expression">{of["PackageLicenseExpression"]}</license>
    <licenseUrl>https://licenses.nuget.org/{of["PackageLicenseExpression"].replace(" ", "%20")}</licenseUrl>
    <readme>{of["PackageReadmeFile"]}</readme>
    <projectUrl>{of["PackageProjectUrl"]}</projectUrl>
    <description>{escape(of["Description"])}</description>
    <tags>{of["PackageTags"].replace(";", " ")}</tags>
    <repository type="{of["RepositoryType"]}" url="{of["RepositoryUrl"]}" />
    <dependencies>
{groups}    </dependencies>
  </metadata>
</package>
"""


TYPES = """<?xml version="1.0" encoding="utf-8"?>
<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">
  <Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml" />
  <Default Extension="nuspec" ContentType="application/octet" />
  <Default Extension="dll" ContentType="application/octet" />
  <Default Extension="xml" ContentType="application/octet" />
  <Default Extension="md" ContentType="application/octet" />
  <Default Extension="dylib" ContentType="application/octet" />
  <Default Extension="5" ContentType="application/octet" />
</Types>
"""

RELATIONS = """<?xml version="1.0" encoding="utf-8"?>
<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
  <Relationship Type="http://schemas.microsoft.com/packaging/2010/07/manifest" Target="/{id}.nuspec" Id="R1" />
</Relationships>
"""


def main():
    assemblies, natives, out = (Path(argument) for argument in sys.argv[1:4])
    of = properties()
    files = {"[Content_Types].xml": TYPES.encode(), "_rels/.rels": RELATIONS.format(id=of["PackageId"]).encode()}
    frameworks = sorted(path.name for path in assemblies.iterdir() if (path / "Tautline.dll").exists())
    if not frameworks:
        sys.exit(f"{assemblies}: no FRAMEWORK/Tautline.dll")
    files[f'{of["PackageId"]}.nuspec'] = nuspec(of, frameworks).encode()
    files["README.md"] = (HERE / "README.md").read_bytes()
    for framework in frameworks:
        for name in ("Tautline.dll", "Tautline.xml"):
            files[f"lib/{framework}/{name}"] = (assemblies / framework / name).read_bytes()
    for library in sorted(natives.glob("*/native/*")):
        runtime = library.parent.parent.name
        if runtime not in RUNTIMES:
            sys.exit(f"{library}: {runtime} is no runtime identifier that the package is for")
        files[f"runtimes/{runtime}/native/{library.name}"] = library.read_bytes()
    out.mkdir(parents=True, exist_ok=True)
    package = out / f'{of["PackageId"]}.{of["Version"]}.nupkg'
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            # 1980 is the earliest year that a ZIP file can store.
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    print(package)


main()
