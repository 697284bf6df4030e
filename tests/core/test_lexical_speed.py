"""The benchmark of the lexical judge's speed runs and says what it found."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

BENCHMARK: Final = Path(__file__).resolve().parents[1] / "benchmarks" / "lexical_speed.py"


def test_the_benchmark_of_its_speed_gives_results_without_any_file() -> None:
    command = [sys.executable, str(BENCHMARK), "--json", "--rounds", "1", "--limit", "1"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    results = json.loads(done.stdout)
    first, again = (float(row[1].split()[0]) for row in results["tables"][0]["rows"])
    assert first > 0
    assert again > 0
    assert results["bars"][0]["measured"] == f"{first:.1f} ms"
