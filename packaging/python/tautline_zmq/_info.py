"""Versions and features of the native module, and `python -m tautline_zmq info`."""

from __future__ import annotations

import os
import platform
import sys
from typing import List, Tuple

from tautline_zmq import _library, _native, version
from tautline_zmq.constants import ContextOption

__all__ = ["features", "library_version", "run"]

_FEATURES = ("ipc", "vsock", "WS", "WSS", "tls+tcp", "curve", "name", "draft", "tautline")


def library_version() -> Tuple[int, int, int]:
    """Returns the version of Tautline in the native module."""
    context = _native.Context()
    try:
        number = context.get(ContextOption.TAUTLINE_VERSION)
    finally:
        context.term()
    return number // 10000, number // 100 % 100, number % 100


def features() -> List[str]:
    """Returns the optional features of the native module: transports, curve, name (names), draft and tautline."""
    return [feature for feature in _FEATURES if _native.has(feature)]


def run() -> int:
    """Prints the versions, the features and the files."""
    numbers = ".".join(map(str, library_version()))
    zeromq = ".".join(map(str, _native.zmq_version_info()))
    rows = [
        ("package", f"tautline-zmq {_installed()}"),
        ("engine", f"Tautline {numbers}, with the interface of ZeroMQ {zeromq}"),
        ("features", ", ".join(features())),
        ("module", str(_native.__file__)),
        ("library", _library.PATH if os.path.exists(_library.PATH) else "none: pyzmq keeps its own libzmq"),
        ("python", f"{platform.python_implementation()} {platform.python_version()}, {sys.executable}"),
        ("system", platform.platform()),
    ]
    for name, value in rows:
        print(f"{name:9} {value}")
    return 0


def _installed() -> str:
    try:
        return version()
    except ImportError:
        return "unknown: the package is not installed"
