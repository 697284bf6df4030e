"""The short forms of the soak runs; ``make soak`` runs the long ones.

Rows L2, L4 and L7 of the reliability matrix.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

# Not measured by coverage, which keeps memory of its own and takes time.
ENVIRONMENT: Final = os.environ | {"LANGSMITH_TRACING": "false", "COVERAGE_PROCESS_CONFIG": ""}

SOAK: Final = Path(__file__).parents[1] / "benchmarks" / "soak.py"


@pytest.mark.parametrize(
    ("form", "seconds", "rate"), [("steady", 10, 60), ("overload", 10, 80), ("leak", 9, 40)]
)
def test_a_process_under_load_keeps_its_memory_its_books_and_its_lag(
    tmp_path: Path, form: str, seconds: int, rate: int
) -> None:
    done = subprocess.run(
        [
            sys.executable,
            SOAK,
            form,
            f"--seconds={seconds}",
            f"--rate={rate}",
            "--hold=5",
            "--json",
        ],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    # Under overload the first record without scores is told; nothing else is said.
    assert all(line.startswith("claimspan: no scores, ") for line in done.stderr.splitlines())
    bars = json.loads(done.stdout)
    assert len(bars) > 5
    assert [bar for bar in bars if not bar["is_met"]] == []
    assert done.returncode == 0


def test_a_bar_that_is_missed_is_an_exit_status_of_1(tmp_path: Path) -> None:
    # No machine runs so many chains in a second.
    done = subprocess.run(
        [sys.executable, SOAK, "steady", "--seconds=1", "--rate=1000000"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 1
    assert "MISSED" in done.stdout
