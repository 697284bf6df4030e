"""What a forked child inherits of onnxruntime, and cannot end without harm."""

from __future__ import annotations

import sys

__all__ = ["keep_forever"]


def keep_forever(inherited: object) -> None:
    """Keep an inherited model to the very end of a forked child, and past it.

    onnxruntime joins its threads where a session ends, and once more when the process exits. A
    forked child does not have these threads: joining them hangs, or ends it by SIGABRT, after all
    its work was done. So the session is never freed, and the child skips what C libraries loaded
    before the fork do at exit; Python's own exit hooks have run by then.

    Args:
        inherited: The object that holds the session.
    """
    import ctypes  # here: none but a forked child needs it

    # A Python reference would be dropped when the interpreter ends.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None)
    # ``on_exit`` calls its function with the exit status, and ``_exit`` takes one. The C library of
    # Alpine has no ``on_exit``: there the child's exit status is that of SIGABRT, and no more.
    if hasattr(libc, "on_exit"):
        libc.on_exit(libc._exit, None)  # pyright: ignore[reportPrivateUsage] - the name of the C function
