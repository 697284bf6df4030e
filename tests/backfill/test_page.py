"""The page about the command says what is true."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from claimspan_backfill import _run, _sources

from command_line import run
from stored_traces import group, spans_of

PAGE: Final = (Path(__file__).parents[2] / "docs" / "backfill.md").read_text("utf-8")
COMMANDS: Final = re.findall(r"^\$ claimspan backfill (.*)$", PAGE, re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_the_commands_is_one(command: str) -> None:
    known = run("backfill", "--help")

    assert [e for e in shlex.split(command) if e.startswith("--") and e not in known] == []


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.startswith("traces/")])
def test_the_command_for_files_works(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("traces").mkdir()
    Path("traces", "a.jsonl").write_text(
        json.dumps({"resourceSpans": [group(spans_of(0, 10**18))]})
    )

    assert "1 judged" in run("backfill", *shlex.split(command))


def test_the_numbers_are_those_of_the_code() -> None:
    assert len(COMMANDS) == 5
    assert f"at most {_run.BATCH} records" in PAGE
    assert f"one page of {_sources.PAGE} traces" in PAGE
    assert len(_sources.WAITS) + 1 == 5
    assert "asked five times" in PAGE
