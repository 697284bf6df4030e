"""The benchmark of the local judge, at its smallest."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[1] / "benchmarks" / "local_speed.py"


def test_it_gives_its_figures_as_one_document() -> None:
    command = [sys.executable, str(SCRIPT), "--json", "--pairs", "2", "--rounds", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)

    record, beside = json.loads(ended.stdout)["tables"]
    assert [row[0] for row in record["rows"]] == ["lexical", "local", "local, again"]
    assert record["rows"][2][-1] == "0"
    assert beside["rows"][0][0] == "claimspan"
