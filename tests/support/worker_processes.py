"""Real worker processes of Celery, each with a process group of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

__all__ = ["CELERY", "WorkerProcess", "celery_worker", "wait_for", "worker_process"]

SUPPORT: Final = Path(__file__).parent

CELERY: Final = (sys.executable, "-m", "celery")

READY_SECONDS: Final = 60.0
"""How long a worker may take to start; the imports of Celery alone take seconds."""


class WorkerProcess:
    """One worker, with what it has written to its log."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        """Everything that the worker has written."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def wait_until_ready(self) -> None:
        """Wait until the worker takes jobs."""
        wait_for(lambda: " ready." in self.log, READY_SECONDS, lambda: self.log)

    def kill(self) -> None:
        """Kill the worker with all of its processes, at once and without a word."""
        with suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def celery_worker(app: str, *options: str) -> list[str]:
    """The command of a worker, as its operator types it."""
    return [*CELERY, "-A", app, "worker", "--loglevel=INFO", *options]


@contextmanager
def worker_process(
    command: Sequence[str], broker: str, log: Path, env: Mapping[str, str] | None = None
) -> Generator[WorkerProcess]:
    """Start a worker in the folder of its log; it is killed at the end of the block."""
    ours = {"CLAIMSPAN_BROKER_URL": broker, "PYTHONPATH": str(SUPPORT)}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=log.parent,
            env=os.environ | ours | dict(env or {}),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    worker = WorkerProcess(process, log)
    try:
        yield worker
    finally:
        worker.kill()


def wait_for(
    condition: Callable[[], bool], seconds: float, explain: Callable[[], object] = lambda: ""
) -> None:
    """Wait until something is so, or fail with an explanation."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not so after {seconds:g} s: {explain()}"
        time.sleep(0.05)
