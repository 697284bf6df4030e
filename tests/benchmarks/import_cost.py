"""Measures what importing and starting claimspan costs, as ratios to the libraries it stands on.

    python tests/benchmarks/import_cost.py [--rounds N] [--json]

Each round starts new interpreters in turn: one for our code and one for the library. Imports are
timed inside the interpreter, so that its own start does not dilute the ratio. Options of the
command line are timed from outside, start included, as a user waits for them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from typing import Final

IMPORTS: Final = {
    "import claimspan / import pydantic": ("import claimspan", "import pydantic"),
    "from claimspan import RagRecord / from pydantic import BaseModel": (
        "from claimspan import RagRecord",
        "from pydantic import BaseModel",
    ),
}
OPTIONS: Final = {
    f"claimspan {option} / python -c 'import typer'": (
        ("-m", "claimspan", option),
        ("-c", "import typer"),
    )
    for option in ("--version", "--help")
}


def import_seconds(statement: str) -> float:
    code = f"import time; t = time.perf_counter(); {statement}; print(time.perf_counter() - t)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def process_seconds(*arguments: str) -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    return time.perf_counter() - started


def ratios(rounds: int) -> dict[str, float]:
    """Median over the rounds of each ratio, by its name."""
    imports = {
        name: statistics.median(
            import_seconds(ours) / import_seconds(theirs) for _ in range(rounds)
        )
        for name, (ours, theirs) in IMPORTS.items()
    }
    options = {
        name: statistics.median(
            process_seconds(*ours) / process_seconds(*theirs) for _ in range(rounds)
        )
        for name, (ours, theirs) in OPTIONS.items()
    }
    return imports | options


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    table = ratios(options.rounds)
    if options.json:
        print(json.dumps(table))
    else:
        for name, ratio in table.items():
            print(f"{ratio:6.2f}  {name}")


if __name__ == "__main__":
    main()
