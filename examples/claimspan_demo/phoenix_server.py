"""Runs Phoenix on loopback, for as long as a block runs, and says where to look."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from claimspan.errors import ConfigError
from claimspan_demo.child_server import failed_to_start, is_healthy, stop

__all__ = ["Phoenix", "serve_phoenix"]

_START_SECONDS: Final = 180.0  # 8 s with a new database, far more from a cold disk
_REQUEST_SECONDS: Final = 30.0


class Phoenix(NamedTuple):
    """A running Phoenix."""

    url: str
    """Where it answers, such as ``http://127.0.0.1:40123``."""

    process: subprocess.Popen[bytes]

    def open_project(self, name: str, description: str) -> str:
        """Make a project, unless it is there already, and return the address of its spans."""
        try:
            found = _request(f"{self.url}/v1/projects/{quote(name)}")
        except HTTPError:
            body = {"name": name, "description": description}
            found = _request(f"{self.url}/v1/projects", json.dumps(body).encode())
        return f"{self.url}/projects/{found['data']['id']}/spans"


@contextmanager
def serve_phoenix(python: Path, keep: Path | None = None) -> Generator[Phoenix]:
    """Run Phoenix in a process of its own while the block runs.

    Args:
        python: A Python that has Phoenix, from `claimspan_demo.phoenix_environment`.
        keep: The folder of its database, which stays; None for one that is deleted at the end.

    Yields:
        Phoenix, as soon as it answers.

    Raises:
        ConfigError: It did not start; the message contains the end of its log.
    """
    with ExitStack() as stack:
        temporary = Path(stack.enter_context(TemporaryDirectory(prefix="claimspan-phoenix-")))
        script = stack.enter_context(as_file(files("claimspan_demo").joinpath("_phoenix.py")))
        log = temporary / "log"
        port, grpc_port = _free_ports()
        url = f"http://127.0.0.1:{port}"
        environment = _environment(_database_folder(keep or temporary / "data"), port, grpc_port)
        process = _start([str(python), "-I", str(script)], log, environment)
        stack.callback(stop, process)
        _await_health(process, url, log)
        yield Phoenix(url, process)


def _request(url: str, body: bytes | None = None) -> dict[str, dict[str, str]]:
    request = Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - loopback
    with urlopen(request, timeout=_REQUEST_SECONDS) as reply:  # noqa: S310 - our own loopback URL
        found: dict[str, dict[str, str]] = json.load(reply)
        return found


def _database_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"Phoenix cannot keep its database in {folder}: {error.strerror}"
        ) from error
    return folder.resolve()


def _environment(folder: Path, port: int, grpc_port: int) -> Mapping[str, str]:
    """The variables of the process. The user's own settings of Phoenix do not count here.

    They may name a database that others use, which a demo must not write to.
    """
    others = {k: v for k, v in os.environ.items() if not k.startswith(("PHOENIX_", "OTEL_"))}
    return others | {
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(grpc_port),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
        # Its assistant, which needs a key and asks for it on every page.
        "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
    }


def _free_ports() -> tuple[int, int]:
    """Two ports that nobody listens on now; Phoenix cannot choose them by itself."""
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("127.0.0.1", 0)) as other,
    ):
        return one.getsockname()[1], other.getsockname()[1]


def _start(
    command: list[str], log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(  # noqa: S603 - a Python and a file of ours, no shell
            command,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=environment,
            # Ctrl-C in a terminal goes to the whole group: we end Phoenix when we are done.
            start_new_session=True,
        )


def _await_health(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if is_healthy(f"{url}/healthz"):
            return
        time.sleep(0.1)
    raise failed_to_start("Phoenix", process, log)
