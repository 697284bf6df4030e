"""The benchmark of the application's latency runs, and says what it promises to say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pydantic import BaseModel

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


class Table(BaseModel):
    """The rows of a table."""

    rows: list[list[str]]


class Results(BaseModel):
    """What is looked at here of a benchmark's results."""

    tables: list[Table]
    bars: list[dict[str, str | bool]]


def test_a_short_run_has_a_table_for_each_mode_and_a_promise_for_each_worker() -> None:
    done = subprocess.run(
        [
            *(sys.executable, str(BENCHMARKS / "host_latency.py"), "--json"),
            *("--rounds=1", "--seconds=0.3", "--rate=30", "--judge=lexical"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    results = Results.model_validate_json(done.stdout)
    subjects = [[row[0] for row in table.rows] for table in results.tables]
    assert subjects == [["bare", "off", "thread", "process"]] * 2
    assert len(results.bars) == 4
