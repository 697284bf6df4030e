"""What ``claimspan demo --phoenix`` does where Phoenix cannot be had; the rest needs Phoenix."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from claimspan.errors import ConfigError
from claimspan_demo import phoenix_environment
from claimspan_demo.phoenix_server import serve_phoenix


def test_options_about_phoenix_need_it(tmp_path: Path) -> None:
    failed = subprocess.run(
        [sys.executable, "-m", "claimspan", "demo", "--keep", "here"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert failed.returncode == 2
    assert failed.stderr == ("claimspan: --keep and --wait are about Phoenix: add --phoenix\n")


def test_a_cache_that_is_no_folder_is_said_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ConfigError, match="Set XDG_CACHE_HOME to a folder that you may write"):
        phoenix_environment.make_environment(tmp_path / "file" / "below", print)


def test_size_and_time_are_said_before_an_installation_that_fails_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    # Nothing can be had: the one index refuses connections.
    for variable in ("UV_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_INDEX_URL"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9/simple")
    for variable in ("UV_OFFLINE", "PIP_NO_INDEX"):
        monkeypatch.setenv(variable, "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "pip"))

    with pytest.raises(ConfigError, match="Install it yourself beside claimspan"):
        phoenix_environment.make_environment(tmp_path / "cache", said.append)

    assert ["850 MB" in line for line in said] == [True]
    assert os.listdir(tmp_path / "cache") == []


def test_a_phoenix_that_does_not_start_is_said_with_the_end_of_its_log() -> None:
    expected = r"(?s)did not start \(exit status 1\).*No module named"
    with pytest.raises(ConfigError, match=expected), serve_phoenix(Path(sys.executable)):
        pass


def test_a_database_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    keep = tmp_path / "file" / "below"
    expected = "cannot keep its database in"
    with pytest.raises(ConfigError, match=expected), serve_phoenix(Path(sys.executable), keep):
        pass
