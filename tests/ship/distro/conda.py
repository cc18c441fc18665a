"""Builds the conda recipe with an empty channel, tests the package and prints its path: conda.py RECIPE OUTPUT"""

import json
import sys
from pathlib import Path

from rattler_build import build_recipes

recipe, output = sys.argv[1:]
channel = Path(output, "channel")
for platform in ("noarch", "linux-64"):
    folder = channel / platform
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "repodata.json").write_text(json.dumps({"info": {"subdir": platform}, "packages": {}, "packages.conda": {}}))
build_recipes([recipe], output_dir=Path(output, "packages"), channel=[channel.as_uri()], test="native")
print(*Path(output).glob("packages/*/tautline-*.conda"))
