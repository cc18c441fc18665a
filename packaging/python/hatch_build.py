"""Tags the wheel for every Python 3 on one machine, or for CPython 3.11 and later if it has the native module. Later, auditwheel determines the oldest Linux that can run it."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Platform(BuildHookInterface):
    def initialize(self, version, build_data):
        if not os.path.exists(os.path.join(self.root, "tautline_zmq", "libzmq.so.5")):
            raise RuntimeError("libzmq.so.5 is missing: build the wheel with packaging/python/build.sh")
        build_data["pure_python"] = False
        native = os.path.exists(os.path.join(self.root, "tautline_zmq", "_native.abi3.so"))
        build_data["tag"] = f"{'cp311-abi3' if native else 'py3-none'}-linux_{os.environ['TAUTLINE_MACHINE']}"
