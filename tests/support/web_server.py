"""A server of somebody else's in a process of its own, on loopback, as long as a test needs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from pydantic import JsonValue

__all__ = ["WebServer"]

START_SECONDS: Final = 120.0
"""From a cold disk, on a busy machine."""

STOP_SECONDS: Final = 30.0
CALL_SECONDS: Final = 60.0
LOG_LINES: Final = 30


class WebServer:
    """Runs from ``start`` to ``stop``, or to the end of a block."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url: Final = url
        self.folder: Final = folder
        """Its working directory."""
        self._log: Final = folder / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """All that it has printed."""
        return self._log.read_text(encoding="utf-8")

    def start(self, command: Sequence[str], health: str, **variables: str) -> None:
        """Start it, and wait until it answers.

        Args:
            command: The server.
            health: A path that answers as soon as it serves.
            **variables: Its environment variables, beside those of this process.
        """
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "COV"))}
        with self._log.open("wb") as out:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=clean | variables,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a test that is interrupted ends it as any other
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers(health):
            tail = "\n".join(self.log.splitlines()[-LOG_LINES:])
            assert self._process.poll() is None, f"the server has ended; its log ends:\n{tail}"
            assert time.monotonic() < deadline, f"the server does not answer; its log ends:\n{tail}"
            time.sleep(0.1)

    def post(self, path: str, body: Mapping[str, JsonValue]) -> str:
        """Send JSON, and return all that comes back, whole or as a stream."""
        request = Request(  # noqa: S310 - a server on loopback
            self.url + path,
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urlopen(request, timeout=CALL_SECONDS) as reply:  # noqa: S310 - as above
            text: bytes = reply.read()
        return text.decode()

    def stop(self, number: signal.Signals) -> int:
        """End it by a signal; return its exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(STOP_SECONDS)

    def kill(self) -> None:
        """End it in any case, with what it has started."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _answers(self, path: str) -> bool:
        try:
            with urlopen(self.url + path, timeout=5) as reply:  # noqa: S310 - as above
                return bool(reply.status == 200)
        except (URLError, OSError):
            return False
