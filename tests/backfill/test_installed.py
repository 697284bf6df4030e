"""The command works with what its extra brings, and says what to install without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from installed import only_with
from processes import run_python
from stored_traces import group, spans_of

COMMAND = """
import sys
from claimspan.cli.main import main
sys.argv = ["claimspan", "backfill", "traces.jsonl", "--judge", "lexical", "-o", "out.jsonl"]
main()
"""


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ("backfill", "1 judged"),
        ("cli", "pip install 'claimspan[backfill]'"),
    ],
)
def test_an_installation_works_or_says_what_is_missing(
    tmp_path: Path, extra: str, said: str
) -> None:
    request = {"resourceSpans": [group(spans_of(0, 10**18))]}
    (tmp_path / "traces.jsonl").write_text(json.dumps(request))

    ended = run_python(only_with(f'".[{extra}]"') + COMMAND, tmp_path)

    assert said in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
