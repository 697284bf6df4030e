"""The process of Phoenix, which ends when its standard input is closed.

It runs as a file by a Python that has Phoenix and not claimspan, so it imports nothing of ours. The
process that started it holds the other end of that pipe. The operating system closes the pipe even
if that process is killed, so Phoenix never outlives it.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def _end_with_parent() -> None:
    # Without a buffer, whose lock would break the end of an interpreter that fails to start.
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sys.argv = ["phoenix", "serve"]
    runpy.run_module("phoenix.server.main", run_name="__main__", alter_sys=True)
