"""main.py LIBRARY FOLDER TAUT NATS_SERVER [WORD...]: all cases, or those with a WORD in their names."""

import sys

import cases
import hosts
from harness import run

run("names", [*cases.CASES, *hosts.CASES], sys.argv[5:])
