"""Runs an unchanged pyzmq on Tautline: `import zmq` uses the libzmq of this package.

When Python starts, the file `tautline_zmq.pth` (from Python 3.15 on `tautline_zmq.start`) calls `install`. This registers a
finder, so a program without zmq imports only this small module. Right before zmq is imported, the finder loads the library
for the whole process, so the dynamic linker resolves pyzmq's calls to it. After `python -m tautline_zmq on`, pyzmq gets the native
backend of this package instead. After zmq.asyncio is imported, `_asyncio` replaces its slowest methods.

`python -m tautline_zmq` turns this off and on, shows the state, and measures the difference.
"""

import sys

__all__ = ["active", "install", "version"]


def install() -> None:
    """Makes `import zmq` load Tautline first. If Python runs without startup files, call this before `import zmq`."""
    if _BeforeZmq not in sys.meta_path:
        sys.meta_path.insert(0, _BeforeZmq)


def active() -> bool:
    """Returns True if pyzmq runs on Tautline in this process. Imports zmq if it is not imported yet."""
    try:
        import zmq  # noqa: F401
    except ImportError:
        return False
    from tautline_zmq import _selection

    return _selection.in_use() != "pyzmq"


def version() -> str:
    """Returns the version of this package, which is the version of its Tautline."""
    from importlib.metadata import version as installed

    return installed("tautline-zmq")


class _BeforeZmq:
    """First finder of the process. It loads the library or the backend before `zmq` is imported, and patches `zmq.asyncio`."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        # An error here must not stop the import: pyzmq then runs on its own library.
        try:
            if name == "zmq":
                from tautline_zmq import _selection

                _selection.choose()
            elif name == "zmq.backend.select":
                from tautline_zmq import _selection

                return _selection.find_spec(name, path, target)
            elif name == "zmq.asyncio":
                from tautline_zmq import _asyncio

                return _asyncio.find_spec(name, path, target)
        except Exception:
            pass
        return None
