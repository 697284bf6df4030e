"""The benchmarks of growth and of scale run, at sizes that say nothing about speed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

BENCHMARKS: Final = Path(__file__).parents[1] / "benchmarks"


def results_of(script: str, *options: str) -> dict[str, Any]:
    command = [sys.executable, str(BENCHMARKS / script), *options, "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def test_the_growth_benchmark_measures_every_kind_of_work() -> None:
    kinds = ("judging", "tracing", "frameworks", "stores", "files")

    found = results_of("growth.py", "--most", "2", "--rounds", "1", "--only", *kinds)

    assert len(found["bars"]) == sum(len(table["rows"]) for table in found["tables"]) > 30
    assert len(found["plots"]) == len(found["tables"])
    assert all(cost > 0 for plot in found["plots"] for c in plot["curves"] for cost in c["y"])


def test_the_simulation_counts_every_query_in_one_state_and_stays_within_its_budget() -> None:
    small = ("--hours", "0.3", "--processes", "2", "--queries", "600", "--budget", "1")

    found = results_of("simulation.py", *small, "--outage", "0.1", "0.15")

    states = found["tables"][0]
    for row in states["rows"]:
        figures = dict(zip(states["columns"][1:], row[1:], strict=True))
        counts = {name: int(cell.replace(",", "")) for name, cell in figures.items()}
        late, lost = counts.pop("scores that came late"), counts.pop("uncounted")
        assert late >= 0 == lost
        assert counts.pop("queries") == sum(counts.values())
        assert counts["evaluated"] > 0
    assert all(bar["is_kept"] for bar in found["bars"])
