"""The wheel is for any Python 3 of one machine. auditwheel finds out afterwards which Linux it needs."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Platform(BuildHookInterface):
    def initialize(self, version, build_data):
        if not os.path.exists(os.path.join(self.root, "tautline_zmq", "libzmq.so.5")):
            raise RuntimeError("the library is not there: packaging/python/build.sh puts it there")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{os.environ['TAUTLINE_MACHINE']}"
