"""Measures what importing and starting claimspan costs, as ratios to the libraries it stands on.

    python tests/benchmarks/import_cost.py [--rounds N] [--json]

Each round starts new interpreters in turn: one for our code and one for the library. Imports are
timed inside the interpreter, so that its own start does not dilute the ratio. Options of the
command line are timed from outside, start included, as a user waits for them.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from typing import Final

from results import Results, Table, show

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


def ratios(rounds: int) -> dict[str, list[float]]:
    """Each ratio, once a round, by its name."""
    imports = {
        name: [import_seconds(ours) / import_seconds(theirs) for _ in range(rounds)]
        for name, (ours, theirs) in IMPORTS.items()
    }
    options = {
        name: [process_seconds(*ours) / process_seconds(*theirs) for _ in range(rounds)]
        for name, (ours, theirs) in OPTIONS.items()
    }
    return imports | options


def spread(values: list[float]) -> str:
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


def measured(rounds: int) -> Results:
    rows = [[name, spread(values)] for name, values in ratios(rounds).items()]
    return Results(
        title="Imports, and the start of the command line",
        command="python tests/benchmarks/import_cost.py",
        how="Seconds of ours by those of the library it stands on, in new interpreters by turns: "
        f"medians of {rounds} rounds, quartiles in brackets.",
        tables=[Table(caption="Start", columns=["what", "ratio"], rows=rows)],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    show(measured(options.rounds), as_json=options.json)


if __name__ == "__main__":
    main()
