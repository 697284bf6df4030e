"""How long `claimspan compare` takes: three systems, 16 metrics, and ten times the records.

    python tests/benchmarks/compare_files.py

Prints seconds for reading and for comparing 1,000 and 10,000 records a system, and their ratio.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Final

from claimspan.comparison.compare import compare_systems
from claimspan.comparison.systems import read_systems
from claimspan.metrics import METRICS

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from result_files import result_row, write_results

SYSTEMS: Final = 3
DEFINED: Final = 0.97
"""Share of the records that have a value of a metric."""


def seconds(folder: Path, n: int) -> tuple[float, float]:
    """Seconds for reading and for comparing files of ``n`` records."""
    dice = Random(n)
    paths: list[Path] = []
    for system in range(SYSTEMS):
        rows = (
            result_row(i, {name: dice.random() for name in METRICS if dice.random() < DEFINED})
            for i in range(n)
        )
        paths.append(write_results(folder / f"{n}-{system}.jsonl", rows))
    started = time.perf_counter()
    systems = read_systems(paths)
    read = time.perf_counter()
    compare_systems(systems, metrics=["all"], progress=False)
    return read - started, time.perf_counter() - read


def main() -> None:
    """Measure, and print one line a size."""
    with tempfile.TemporaryDirectory() as folder:
        seconds(Path(folder), 50)  # numpy is imported before anything is measured
        few, many = (seconds(Path(folder), n) for n in (1_000, 10_000))
    for n, (reading, comparing) in ((1_000, few), (10_000, many)):
        print(f"{n:>6} records: {reading:.2f} s reading, {comparing:.2f} s comparing")
    print(f" ratio: {many[0] / few[0]:.1f} reading, {many[1] / few[1]:.1f} comparing")


if __name__ == "__main__":
    main()
