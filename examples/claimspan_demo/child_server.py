"""A server that the demo runs as a child: is it healthy, what does its log say, how does it end."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

from claimspan.errors import ConfigError

__all__ = ["failed_to_start", "is_healthy", "stop"]

_STOP_SECONDS: Final = 15.0
_LOG_LINES: Final = 15


def is_healthy(url: str) -> bool:
    """Whether a server answers with success.

    Args:
        url: Its page for that, on the loopback address.
    """
    try:
        with urlopen(url, timeout=5) as response:  # noqa: S310 - our own loopback URL
            return bool(response.status == 200)
    except (URLError, OSError):
        return False


def failed_to_start(what: str, process: subprocess.Popen[bytes], log: Path) -> ConfigError:
    """Return the error of a server that does not answer, with the end of its log.

    Args:
        what: What the server is, at the start of the message.
        process: The server.
        log: Where its output goes.
    """
    status = "still starting" if process.poll() is None else f"exit status {process.returncode}"
    tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
    return ConfigError("\n".join([f"{what} did not start ({status}); its log ends:", *tail]))


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a server by closing its input; kill it if it does not exit in time."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
