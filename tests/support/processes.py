"""Applications in a process of their own: how they end, and what they leave in their trace file."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "PRELUDE",
    "TRACES",
    "Ended",
    "closed_port",
    "environment",
    "run_python",
    "silent_backend",
    "start",
    "statuses_in",
    "wait_for",
]

SUPPORT = Path(__file__).parent

TRACES = "claimspan-traces.jsonl"
"""Where spans go that have no other place."""

WATCHDOG_SECONDS = 90.0
"""No process of a test runs longer."""

PRELUDE = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on: fork beside threads
# A process that was started in the background ignores Ctrl-C, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
from claimspan_tracing import Monitor, configure, install_sigterm
from exit_judges import Blocking, Hanging, Slow, ask
from support import ScriptedJudge

def says_bye():
    print("bye", time.monotonic(), flush=True)
"""
"""The first lines of a script. ``says_bye`` is its last statement: from there on counts its end."""


@dataclass(frozen=True)
class Ended:
    """How a process has ended."""

    code: int
    """Its exit code; minus the number of the signal that ended it."""

    stdout: str
    """What it printed."""

    stderr: str
    """What it printed on standard error."""

    ended_at: float
    """When it had ended, on the monotonic clock that all processes share."""

    @property
    def words(self) -> list[str]:
        """What it printed, without what ``says_bye`` printed."""
        lines = [line for line in self.stdout.splitlines() if not line.startswith("bye ")]
        return " ".join(lines).split()

    @property
    def seconds_to_end(self) -> float:
        """Seconds from the script's last statement to the end of its process."""
        (bye,) = [line for line in self.stdout.splitlines() if line.startswith("bye ")]
        return self.ended_at - float(bye.split()[1])


def environment(**extra: str) -> dict[str, str]:
    """The variables of a process: this one's, without what OpenTelemetry reads."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OTEL_")}
    return clean | {"PYTHONPATH": str(SUPPORT), "LANGSMITH_TRACING": "false"} | extra


def start(command: Sequence[str], cwd: Path, **extra: str) -> subprocess.Popen[str]:
    """Start a process; the caller ends it."""
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=cwd,
        env=environment(**extra),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_python(code: str, cwd: Path, *, kill: signal.Signals | None = None, **extra: str) -> Ended:
    """Run a script after the prelude, to its end.

    Args:
        code: The script.
        cwd: Its working directory.
        kill: Sent to it when it has printed its first line.
        **extra: Environment variables.
    """
    process = start(["-c", PRELUDE + code], cwd, **extra)
    first = ""
    if kill is not None and process.stdout is not None:
        first = process.stdout.readline()
        process.send_signal(kill)
    return wait_for(process, first)


def wait_for(process: subprocess.Popen[str], first: str = "") -> Ended:
    """Wait for the end of a process; one that hangs is killed, and fails the test."""
    try:
        out, err = process.communicate(timeout=WATCHDOG_SECONDS)
    finally:
        ended_at = time.monotonic()
        process.kill()
    return Ended(process.returncode, first + out, err, ended_at)


def statuses_in(folder: Path) -> dict[str, int]:
    """The states of the records in the trace file of a folder, with how many have each."""
    found: Counter[str] = Counter()
    file = folder / TRACES
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for line in lines:
        for resource in json.loads(line)["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    found.update(_status(span["attributes"]))
    return dict(found)


def _status(attributes: list[dict[str, dict[str, str]]]) -> list[str]:
    values = {str(each["key"]): each["value"] for each in attributes}
    status = values.get("claimspan.evaluation.status")
    return [] if status is None else [status["stringValue"]]


@contextmanager
def silent_backend() -> Generator[str]:
    """A backend that accepts connections and never answers; yields its URL."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1/traces"


def closed_port() -> str:
    """The URL of a backend that refuses connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}/v1/traces"
