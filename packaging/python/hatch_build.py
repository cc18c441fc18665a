"""Tags the wheel for one kind of Python on one machine. Later, auditwheel determines the oldest Linux that can run it."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Platform(BuildHookInterface):
    def initialize(self, version, build_data):
        if not os.path.exists(os.path.join(self.root, "tautline_zmq", "libzmq.so.5")):
            raise RuntimeError("libzmq.so.5 is missing: build the wheel with packaging/python/build.sh")
        build_data["pure_python"] = False
        build_data["tag"] = f"{os.environ['TAUTLINE_TAG']}-linux_{os.environ['TAUTLINE_MACHINE']}"
