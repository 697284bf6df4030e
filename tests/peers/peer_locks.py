"""Pins what the suite of a peer runs with: every package, with the hashes of all its files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from peer_sources import HERE, ROOT, Peer, published
from pydantic import TypeAdapter

LOCKS: Final = HERE / "locks"

RUNNER: Final = ("pytest", "pytest-timeout")
"""What the runner itself needs in each environment."""


def lock_file(peer: Peer) -> Path:
    """Return the requirements of a peer's environment, with hashes."""
    return LOCKS / f"{peer.name}.txt"


def lock(peer: Peer) -> None:
    """Resolve the environment of a peer anew, and write its lock."""
    with tempfile.TemporaryDirectory() as folder:
        python = Path(folder, "venv", "bin", "python")
        report = Path(folder, "report.json")
        wanted = [f"{peer.name}=={peer.version}", *peer.requirements, *_ours(), *RUNNER]
        _run([sys.executable, "-m", "venv", str(python.parents[1])])
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*install, "--dry-run", "--ignore-installed", "--report", str(report), *wanted])
        chosen = json.loads(report.read_text(encoding="utf-8"))["install"]
    found = sorted((_normal(e["metadata"]["name"]), str(e["metadata"]["version"])) for e in chosen)
    text = "".join(_pinned(name, version) for name, version in found)
    LOCKS.mkdir(exist_ok=True)
    lock_file(peer).write_text(text, encoding="utf-8")


def _ours() -> list[str]:
    """Return what claimspan needs; its packages are found in the checkout."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return TypeAdapter(list[str]).validate_python(project["dependencies"])


def _pinned(name: str, version: str) -> str:
    # The name of a file has the version second; that of a wheel may leave out what is equal in
    # PEP 440, so both are compared without it.
    files = [each for each in published(name) if version in _versions(each.name)]
    hashes = "".join(f" \\\n    --hash=sha256:{each.sha256}" for each in files)
    return f"{name}=={version}{hashes}\n"


def _versions(file: str) -> set[str]:
    stem = re.sub(r"\.(whl|tar\.gz|zip)$", "", file)
    return set(stem.split("-")[1:2]) | {stem.rpartition("-")[2]}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{done.stderr[-3000:]}")
