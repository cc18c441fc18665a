"""Tautline under pyzmq: `import zmq` runs on the libzmq of this package, with pyzmq as it was installed.

When Python starts, `tautline_zmq.pth` (and from Python 3.15 on `tautline_zmq.start`) calls `install`, which only registers a
finder: a program that never imports zmq pays for importing this small module and no more. Right before zmq is imported, the
finder loads the library for the whole process, so the dynamic linker resolves pyzmq's calls to it.

`python -m tautline_zmq` turns this off and on, tells how it is, and measures the difference.
"""

import sys

__all__ = ["active", "install", "version"]


def install() -> None:
    """Makes `import zmq` load Tautline first. For where no startup file is run: call it before zmq is imported."""
    if _BeforeZmq not in sys.meta_path:
        sys.meta_path.insert(0, _BeforeZmq)


def active() -> bool:
    """Returns True if pyzmq runs on this package's library in this process. Imports zmq if it is not imported yet."""
    try:
        import zmq  # noqa: F401
    except ImportError:
        return False
    from tautline_zmq import _library

    return _library.serves()


def version() -> str:
    """The version of this package, which is that of the Tautline in it."""
    from importlib.metadata import version as installed

    return installed("tautline-zmq")


class _BeforeZmq:
    """Stands first among the finders and finds nothing, but is asked for `zmq` before anything of it is loaded."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "zmq":
            # If an error occurs here, pyzmq still runs on the library that came with it.
            try:
                from tautline_zmq import _library

                _library.load()
            except Exception:
                pass
        return None
