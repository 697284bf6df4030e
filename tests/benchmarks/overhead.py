"""What observing a pipeline costs its application: claimspan beside its peers, in one run.

    python tests/benchmarks/overhead.py --framework langchain [--modes sync,threads,async]
        [--rounds N] [--queries N] [--subjects A,B] [--memory N] [--here] [--json]

The peers are in an environment of their own, ``.venv-bench``, which the first run makes from
``requirements/bench.txt``; ``--here`` measures what is installed beside this interpreter instead.
``--memory N`` measures how memory grows over N queries, in place of time. Linux only.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from overhead_host import JUDGED, OFF, SAMPLED_OUT
from overhead_rounds import (
    Interpreter,
    UnmeasurableError,
    measure_costs,
    measure_growth,
    this_python,
)
from overhead_tables import TITLES, bars, cost_table, growth_bar, growth_table
from overhead_worker import FRAMEWORKS, MODES
from results import Results, show

from environments import ROOT, environment

SCRIPT: Final = "python tests/benchmarks/overhead.py"

HOW: Final = (
    "A pipeline finds 10 chunks of 800 characters, and its model answers with 400 at once, so that "
    "what is measured is the framework and who observes it. Each subject is a warm process of its "
    "own; each turn gives every subject a round of {queries} queries in shuffled order, and a "
    "round is compared with the bare pipeline's of the same turn: medians of {rounds} turns, "
    "quartiles in brackets. Request CPU is that of the process while requests run, without "
    "background threads; all CPU has these and child processes, until everything is flushed and "
    "its OTLP bytes are built. Subjects that judge every record get few queries and rounds, with "
    "max_cpu_share as it comes."
)
HOW_MEMORY: Final = (
    "Resident memory of a process over {queries} queries by one caller without a pause, after as "
    "many as a tenth of them, in MiB: by how much it had grown after each quarter, the most that "
    "it grew by, and what is left after a flush and a collection. Each is beside the memory at "
    "rest after the warm-up, when no span waits for its export. Whether it goes on growing is seen "
    "from the level: the median while queries run, in the second half of the warm-up and in each "
    "quarter."
)


def costs(python: Interpreter, options: argparse.Namespace) -> Results:
    """The cost of a query with each subject."""
    modes: list[str] = options.modes.split(",")
    measured, failed = measure_costs(
        python, options.framework, partial(chosen, options), modes, options.rounds, options.queries
    )
    title = TITLES[options.framework]
    return Results(
        title=f"Added to a query of {title}",
        command=f"{SCRIPT} --framework {options.framework} --modes {options.modes} "
        f"--rounds {options.rounds} --queries {options.queries}",
        how=HOW.format(queries=options.queries, rounds=options.rounds),
        tables=[cost_table(title, measured)],
        bars=list(bars(options.framework, measured)),
        notes=_notes(failed),
    )


def growth(python: Interpreter, options: argparse.Namespace) -> Results:
    """How memory grows with each subject."""

    def lasting(known: list[str]) -> list[str]:
        names = chosen(options, known)
        return [each for each in names if each not in {*JUDGED, OFF} and SAMPLED_OUT not in each]

    measured, failed = measure_growth(python, options.framework, lasting, options.memory)
    title = TITLES[options.framework]
    return Results(
        title=f"Memory of an application with {title}",
        command=f"{SCRIPT} --framework {options.framework} --memory {options.memory}",
        how=HOW_MEMORY.format(queries=f"{options.memory:,}"),
        tables=[growth_table(title, measured)],
        bars=growth_bar(title, options.memory, measured),
        notes=_notes(failed),
    )


def chosen(options: argparse.Namespace, known: list[str]) -> list[str]:
    """The subjects that the options name, or all."""
    if options.subjects is None:
        return known
    names: list[str] = options.subjects.split(";")
    if unknown := set(names) - set(known):
        there = "; ".join(known)
        raise UnmeasurableError(f"no subject {', '.join(sorted(unknown))}; there are {there}")
    return names


def _notes(failed: Mapping[str, str]) -> list[str]:
    return [f"Not measured: {subject} ({why})." for subject, why in failed.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--framework", choices=list(FRAMEWORKS), default="langchain")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--queries", type=int, default=64, help="of one round")
    parser.add_argument("--subjects", help="names as the table shows them, by semicolons")
    parser.add_argument("--memory", type=int, default=0, help="queries; instead of time")
    parser.add_argument("--here", action="store_true", help="measure what is installed here")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not Path("/proc/self/task").is_dir():
        parser.error("it reads the processor time of threads from /proc, which only Linux has")
    python = (
        this_python() if options.here else environment("bench", ROOT / "requirements" / "bench.txt")
    )
    try:
        results = (growth if options.memory else costs)(python, options)
    except UnmeasurableError as error:
        parser.exit(1, f"{error}\n")
    show(results, as_json=options.json)


if __name__ == "__main__":
    main()
