#!/usr/bin/env python3
"""Writes the licence texts of the crates that are compiled into the library: third-party.py [TARGET] >FILE

Where a crate offers several licences, the MIT licence is taken. Each text is there once, under the names of its crates.
"""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def cargo(*arguments):
    return subprocess.run(["cargo", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def main():
    target = ["--target", sys.argv[1]] if len(sys.argv) > 1 else []
    tree = cargo("tree", "--package", "tautline-libzmq", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}", *target)
    linked = {tuple(line.split()[:2]) for line in tree.splitlines()}
    packages = json.loads(cargo("metadata", "--format-version", "1"))["packages"]
    texts = {}
    for package in sorted(packages, key=lambda package: package["name"]):
        name, version = package["name"], package["version"]
        if package["source"] is None or (name, f"v{version}") not in linked:
            continue
        for file in licences(Path(package["manifest_path"]).parent):
            texts.setdefault(file.read_text().strip(), []).append(f"{name} {version} ({package['license']})")
    print("Tautline's library contains code of these Rust crates, and of Rust's standard library (MIT OR Apache-2.0).")
    for text, names in texts.items():
        print(f"\n{'=' * 100}\n{', '.join(names)}\n\n{text}")


def licences(folder):
    found = sorted(file for pattern in ("LICEN[CS]E*", "COPYING*") for file in folder.glob(pattern) if file.is_file())
    found = [file for file in found if "MIT" in file.name.upper()] or found
    if not found:
        sys.exit(f"third-party: {folder.name} has no licence text")
    return found


main()
