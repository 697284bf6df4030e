"""What runs in MLflow's own environment: ``mlflow``, until standard input ends.

MLflow starts further processes, and does not end with whoever has started it.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading


def _end_with_input() -> None:
    """Wait for the end of the process of the tests, whatever way it ends; then end all of ours."""
    sys.stdin.buffer.read()
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    # Started in a group of its own, which is not that of the tests.
    threading.Thread(target=_end_with_input, daemon=True).start()
    runpy.run_module("mlflow", run_name="__main__")
