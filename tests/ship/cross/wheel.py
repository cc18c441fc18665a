"""Asks auditwheel whether pip would install a wheel with this library on systems with an old glibc.

    wheel.py LIBRARY DIRECTORY PLATFORM    PLATFORM as in manylinux_2_17_x86_64

Makes a wheel in DIRECTORY that contains only the library. Exit code 0 if the wheel's platform is PLATFORM or an older one.
"""

import pathlib
import re
import subprocess
import sys
import zipfile

library, directory, platform = sys.argv[1:]
tag = f"py3-none-linux_{platform.split('_', 3)[3]}"
wheel = pathlib.Path(directory) / f"probe-0-{tag}.whl"
with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
    out.write(library, "probe/libzmq.so.5")
    out.writestr("probe-0.dist-info/METADATA", "Metadata-Version: 2.1\nName: probe\nVersion: 0\n")
    out.writestr("probe-0.dist-info/WHEEL", f"Wheel-Version: 1.0\nGenerator: probe\nRoot-Is-Purelib: false\nTag: {tag}\n")
    out.writestr("probe-0.dist-info/RECORD", "probe/libzmq.so.5,,\nprobe-0.dist-info/RECORD,,\n")
said = subprocess.run(
    [sys.executable, "-m", "auditwheel", "show", wheel], check=True, stdout=subprocess.PIPE, text=True
).stdout
print(said)
given = re.search(r'"(manylinux_\d+_\d+_\w+)"', " ".join(said.split()))
if given is None:
    sys.exit("no manylinux platform")


def glibc(name):
    return tuple(int(number) for number in name.split("_")[1:3])


if glibc(given[1]) > glibc(platform):
    sys.exit(f"{given[1]}, not {platform}")
