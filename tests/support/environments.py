"""Python environments of other packages, which cannot be installed beside one another.

A requirements file with hashes says all that is in one. It is made in the checkout, once, by
whichever process comes first, and made anew when the file changes.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["ROOT", "SOURCES", "environment"]

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""

SOURCES = os.pathsep.join(
    str(ROOT / each) for each in ("core", "core/local_weights", "tracing", "integrations")
)
"""``PYTHONPATH`` that finds the packages of this checkout in an environment."""

INSTALL_SECONDS = 900.0
"""For hundreds of megabytes from a registry that is far away."""


def environment(name: str, requirements_file: Path) -> Path:
    """Make an environment, unless it is there already.

    Several processes may ask for it at once: one makes it, and the others wait.

    Args:
        name: Of the environment, which lies in ``.venv-NAME`` of the checkout.
        requirements_file: Every package with its version and hashes; nothing is resolved.

    Returns:
        The Python of the environment. The packages of this checkout are not in it: give it
        ``PYTHONPATH=SOURCES``.
    """
    folder = ROOT / f".venv-{name}"
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    wanted = hashlib.sha256(requirements_file.read_bytes()).hexdigest()
    with _alone(ROOT / f".venv-{name}.lock"):
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            # From scratch: what an older file had asked for must not stay.
            shutil.rmtree(folder, ignore_errors=True)
            for command in _commands(folder, python, requirements_file):
                _run(command)
            stamp.write_text(wanted, encoding="utf-8")
    return python


def _commands(folder: Path, python: Path, requirements_file: Path) -> list[list[str]]:
    # uv is faster by far where it is there; pip comes with Python.
    uv = shutil.which("uv")
    if uv is not None:
        make = [uv, "venv", "--quiet", "--python", sys.executable, str(folder)]
        install = [uv, "pip", "install", "--quiet", "--python", str(python)]
    else:
        make = [sys.executable, "-m", "venv", str(folder)]
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    return [make, [*install, "--no-deps", "--require-hashes", "-r", str(requirements_file)]]


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, timeout=INSTALL_SECONDS
    )
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{done.stderr}"


@contextmanager
def _alone(lock_file: Path) -> Generator[None]:
    """Keep other processes out until the block ends; the system lets go of a dead one's lock."""
    with lock_file.open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
