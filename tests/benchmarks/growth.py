"""How cost grows with the size of records, files, prompts and queues.

    python tests/benchmarks/growth.py [--most N] [--rounds N] [--only KIND ...] [--json]

Each curve is CPU time of the process against one size, best of some rounds in which the sizes take
turns. Its exponent is the slope in log-log over the last decade of sizes, where what a call costs
whatever its size counts least: 1 is linear, 2 is quadratic. The range beside it is that of single
rounds.
"""

from __future__ import annotations

import argparse
import gc
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from growth_curves import MOST, Curve
from growth_files import file_curves
from growth_frameworks import framework_curves
from growth_judging import judging_curves, local_curves
from growth_stores import store_curves
from growth_tracing import tracing_curves
from results import Curve as Line
from results import Plot, Results, Table, show

KINDS: Final = ("judging", "tracing", "frameworks", "stores", "files", "local")
"""What ``--only`` may name."""

GROUPS: Final = {
    "chunks": "CPU of one record against its chunks",
    "claims": "CPU of judging by words against claims, 10 chunks",
    "words": "CPU of judging by words against the length of the answer, 10 chunks",
    "documents": "CPU of one record against the length of its one chunk",
    "history": "CPU of one record against the length of its prompt's history",
    "open": "CPU of the caller's hooks while other queries are open",
    "memory": "Memory that open queries take",
    "queue": "CPU of one record while others wait in the queue",
    "calls": "CPU of calls that are open on a budget at once",
    "records": "CPU of work on many records",
    "frameworks": "CPU of one asynchronous query while others are open, framework included",
    "stores": "CPU of one item while others are kept",
    "truths": "CPU of reading a ground truth",
}


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="How cost grows with size.")
    parser.add_argument("--most", type=int, default=1000, help="chunks of the largest record")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--local", type=int, default=10, help="chunks for the local model")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    logging.getLogger("claimspan").setLevel(logging.ERROR)
    gc.freeze()  # each measurement collects before: what was imported stays
    curves: list[Curve] = []
    for curve in _curves(options.only, options.most, options.rounds, options.local):
        curves.append(curve)
        print(f"{curve.name} against {curve.x_label}: {_told(curve)}", file=sys.stderr)
    show(_results(curves, options.most, options.rounds), as_json=options.json)


def _curves(kinds: Sequence[str], most: int, rounds: int, local: int) -> Iterator[Curve]:
    families: dict[str, Callable[[], Iterator[Curve]]] = {
        "judging": lambda: judging_curves(most, rounds),
        "tracing": lambda: tracing_curves(most, rounds),
        "frameworks": lambda: framework_curves(most * 10, min(rounds, 2)),
        "stores": lambda: store_curves(most * 10, rounds),
        "files": lambda: file_curves(most * 3, rounds),
        "local": lambda: local_curves(local),
    }
    return chain.from_iterable(families[kind]() for kind in kinds)


def _results(curves: list[Curve], most: int, rounds: int) -> Results:
    groups = {group: [c for c in curves if c.group == group] for group in GROUPS}
    return Results(
        title="How cost grows",
        command=f"python tests/benchmarks/growth.py --most {most} --rounds {rounds}",
        how=(
            "CPU time of the process, the least of some rounds in which the sizes take turns. The "
            "exponent is the slope in log-log over the last decade of sizes, with the least and "
            f"the most of single rounds. Up to {MOST} counts as linear: n log n and what outgrows "
            "the processor's caches measure 1.1 to 1.3, quadratic work 2. Where the cost is that "
            f"of one item among many, linear work has exponent 0, and up to {MOST - 1:.2f} counts "
            "as such. Exponents below show a bound, or costs that do not depend on size."
        ),
        tables=[_table(GROUPS[name], found) for name, found in groups.items() if found],
        bars=[curve.bar for curve in curves],
        plots=[_plot(name, found) for name, found in groups.items() if found],
    )


def _table(caption: str, curves: list[Curve]) -> Table:
    return Table(
        caption=caption,
        columns=["what", "size: cost", "exponent"],
        rows=[[f"{c.name}, {c.unit} by {c.x_label}", _points(c), _told(c)] for c in curves],
    )


def _points(curve: Curve) -> str:
    pairs = zip(curve.sizes, curve.costs, strict=True)
    return "  ".join(f"{size:,.0f}: {cost:.3g}" for size, cost in pairs)


def _told(curve: Curve) -> str:
    slope = curve.slope
    return f"{slope.value:.2f} [{slope.low:.2f} to {slope.high:.2f}]"


def _plot(name: str, curves: list[Curve]) -> Plot:
    return Plot(
        name=f"growth-{name}",
        x_label=curves[0].x_label,
        y_label=f"{'kB' if curves[0].unit == 'kB' else 'CPU, ms'}",
        curves=[Line(name=c.name, x=c.sizes, y=c.costs) for c in curves],
    )


if __name__ == "__main__":
    main()
