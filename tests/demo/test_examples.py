"""Runs every example unchanged with the real model, and checks that its queries are evaluated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from claimspan_tracing.trace_file.records import read_trace_file

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))


def test_there_is_an_example_for_every_framework() -> None:
    sources = "".join((EXAMPLES / name).read_text(encoding="utf-8") for name in SCRIPTS)

    for package in ("claimspan_langchain", "claimspan_llama_index", "claimspan_haystack"):
        assert package in sources


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_example_runs_and_its_queries_are_evaluated(name: str, tmp_path: Path) -> None:
    quiet = {"HAYSTACK_TELEMETRY_ENABLED": "False", "LANGSMITH_TRACING": "false"}
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        cwd=tmp_path,
        env=os.environ | quiet,
        capture_output=True,
        text=True,
        timeout=600,
    )

    assert done.returncode == 0, done.stderr
    assert "evaluated=2" in done.stdout
    entries = read_trace_file(tmp_path / "claimspan-traces.jsonl")
    assert [entry.status for entry in entries] == ["evaluated", "evaluated"]
    assert all(
        entry.chunks and entry.response and "faithfulness" in entry.scores for entry in entries
    )
