"""Finds a Python that has Phoenix, or makes an environment with it in the user's cache folder.

Phoenix pins versions that do not fit beside other packages, and is large. So it is no dependency
of claimspan: it gets an environment of its own when somebody asks for it, once.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from claimspan.errors import ConfigError

__all__ = ["INSTALLING", "find_phoenix", "make_environment"]

INSTALLING: Final = (
    "installing Phoenix into {folder} (once; about 850 MB, one to three minutes) ..."
)
"""What is said before; the numbers were measured with arize-phoenix 20.26.1."""

_DISTRIBUTION: Final = "arize-phoenix"
_INSTALL_SECONDS: Final = 1800.0  # 36 s on a fast line; a slow one gets half an hour
_LOG_LINES: Final = 5


def find_phoenix(say: Callable[[str], None]) -> Path:
    """Return a Python that has Phoenix: this one, else one in the user's cache folder.

    Args:
        say: Told before an installation what is about to happen.

    Returns:
        The path of the Python.

    Raises:
        ConfigError: Phoenix could not be installed; the message says what to do.
    """
    try:
        importlib.metadata.distribution(_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return make_environment(_cache_folder(), say)
    return Path(sys.executable)


def make_environment(cache: Path, say: Callable[[str], None]) -> Path:
    """Make the environment below a folder, unless it is there already.

    Args:
        cache: The folder; other versions of Phoenix lie beside this one in it.
        say: Told before an installation what is about to happen.

    Returns:
        The path of its Python.

    Raises:
        ConfigError: The folder cannot be written, or a package cannot be had.
    """
    pins = files("claimspan_demo").joinpath("phoenix.txt").read_bytes()
    folder = cache / f"phoenix-{hashlib.sha256(pins).hexdigest()[:12]}"
    if not folder.exists():
        say(INSTALLING.format(folder=folder))
        try:
            cache.mkdir(parents=True, exist_ok=True)
            _install(folder, pins)
        except OSError as error:
            raise ConfigError(
                f"Phoenix cannot be installed into {folder}: {error.strerror}. Set "
                "XDG_CACHE_HOME to a folder that you may write"
            ) from error
    return folder / "bin" / "python"


def _cache_folder() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "claimspan"


def _install(folder: Path, pins: bytes) -> None:
    """Install beside the folder, and rename at the end: a folder that is there is whole."""
    with TemporaryDirectory(prefix=f"{folder.name}-", dir=folder.parent) as beside:
        requirements = Path(beside, "requirements.txt")
        requirements.write_bytes(pins)
        for command in _commands(Path(beside, "env"), requirements):
            _run(command)
        try:
            Path(beside, "env").rename(folder)
        except OSError:
            if not folder.exists():  # where it does, another process was faster
                raise


def _commands(folder: Path, requirements: Path) -> list[list[str]]:
    python = str(folder / "bin" / "python")
    # uv is several times faster where it is there; pip comes with Python.
    uv = shutil.which("uv")
    if uv is not None:
        make = [uv, "venv", "--quiet", "--python", sys.executable, str(folder)]
        install = [uv, "pip", "install", "--quiet", "--python", python]
    else:
        make = [sys.executable, "-m", "venv", str(folder)]
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # No resolving: the file names every package with its hashes.
    return [make, [*install, "--no-deps", "--require-hashes", "-r", str(requirements)]]


def _run(command: Sequence[str]) -> None:
    try:
        ended = subprocess.run(  # noqa: S603 - pip or uv with arguments of ours, no shell
            command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ConfigError(_failed(f"it took longer than {_INSTALL_SECONDS:.0f} s")) from None
    if ended.returncode != 0:
        raise ConfigError(_failed("\n".join(ended.stderr.strip().splitlines()[-_LOG_LINES:])))


def _failed(why: str) -> str:
    return (
        f"Phoenix could not be installed: {why}\nInstall it yourself beside claimspan, "
        f"`pip install {_DISTRIBUTION}`, or leave --phoenix out"
    )
