"""A real MLflow server on loopback, with an empty database, for as long as a block runs."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from environments import ROOT, environment
from redis_server import free_port

__all__ = ["mlflow_server"]

START_SECONDS: Final = 180.0
"""8 s to make a new database; far more from a cold disk."""

STOP_SECONDS: Final = 15.0

LOG_LINES: Final = 15


@contextmanager
def mlflow_server() -> Generator[str]:
    """Start MLflow, and end it with the block; yields its URL."""
    python = environment("mlflow", ROOT / "requirements" / "mlflow.txt")
    url = f"http://127.0.0.1:{free_port()}"
    with TemporaryDirectory(prefix="claimspan-mlflow-", ignore_cleanup_errors=True) as folder:
        log = Path(folder, "log")
        process = _start([str(python), "-I", *_arguments(Path(folder), url)], log)
        try:
            _await_health(process, url, log)
            yield url
        finally:
            _stop(process)


def _arguments(folder: Path, url: str) -> Sequence[str]:
    database = f"sqlite:///{folder / 'mlflow.db'}"
    files = str(folder / "artifacts")
    host, _, port = url.removeprefix("http://").partition(":")
    return [
        *(str(ROOT / "tests" / "support" / "mlflow_app.py"), "server"),
        *("--backend-store-uri", database, "--artifacts-destination", files),
        *("--host", host, "--port", port, "--workers", "1"),
    ]


def _start(command: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    others = {k: v for k, v in os.environ.items() if not k.startswith(("MLFLOW_", "OTEL_"))}
    with log.open("wb") as out:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            # Its executor of jobs takes seven more processes and 1.5 GB.
            env=others
            | {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "MLFLOW_DISABLE_TELEMETRY": "true"},
            start_new_session=True,
        )


def _await_health(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _is_healthy(url):
        ended = process.poll()
        tail = "\n".join(log.read_text(encoding="utf-8").splitlines()[-LOG_LINES:])
        assert ended is None, f"MLflow ended with {ended}; its log ends:\n{tail}"
        assert time.monotonic() < deadline, f"MLflow does not answer; its log ends:\n{tail}"
        time.sleep(0.1)


def _is_healthy(url: str) -> bool:
    try:
        with urlopen(f"{url}/health", timeout=5) as reply:  # noqa: S310 - a server on loopback
            return bool(reply.status == 200)
    except (URLError, OSError):
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End it with all processes that it has started: they end when its input does."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(STOP_SECONDS)
    finally:
        process.kill()
        process.wait()
