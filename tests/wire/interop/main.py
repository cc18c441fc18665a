"""Runs all cases: main.py LIBRARY [PART-OF-A-NAME ...]"""

import sys

import bad_peers
import old_peers
import patterns
import proxies
import security
import tls
import wss
import zws
from cases import run

if __name__ == "__main__":
    modules = (patterns, old_peers, bad_peers, proxies, security, zws, wss, tls)
    cases = [case for module in modules for case in module.cases()]
    sys.exit(run("interop", "run.sh", cases, sys.argv[1], sys.argv[2:]))
