"""Runs the benchmarks in turn, prints what each found, and writes ``RESULTS.md`` with its plots.

    python tests/benchmarks/publish.py [--quick] [--only NAME]... [--samples FILE] [--no-page]
    python tests/benchmarks/publish.py --render

``--only overhead`` runs those whose names begin so, and leaves the other sections of the page as
they are; ``--render`` writes the page anew from what was found before. A benchmark that fails or
takes too long is said to on the page, and stops no other.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import ValidationError

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from published import (
    PAGE,
    Machine,
    Run,
    draw,
    keep,
    kept_runs,
    page_of,
    this_machine,
    today,
)
from results import Results, show

from environments import ROOT, environment

HERE: Final = Path(__file__).resolve().parent

MOST_SECONDS: Final = 1_200.0
"""For one benchmark, on a busy machine."""


class Benchmark(NamedTuple):
    """A script whose ``--json`` prints its ``Results``."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    """At any size."""
    quick: tuple[str, ...] = ()
    full: tuple[str, ...] = ()
    beside_peers: bool = False
    """Whether it measures in the environment of the peers."""
    samples: str = ""
    """The option that takes a file of samples; empty where there is none."""

    def command(self, *, quick: bool, samples: Path | None) -> list[str]:
        sizes = self.quick if quick else self.full
        own = [self.samples, str(samples)] if samples and self.samples else []
        path = str(HERE / self.script)
        return [sys.executable, path, *self.arguments, *sizes, *own, "--json"]


_QUICK_ROUNDS: Final = ("--rounds", "3", "--queries", "24")

BENCHMARKS: Final = (
    *(
        Benchmark(
            f"overhead-{framework}",
            "overhead.py",
            arguments=("--framework", framework),
            quick=_QUICK_ROUNDS,
            beside_peers=True,
        )
        for framework in ("langchain", "llama-index", "haystack")
    ),
    Benchmark(
        "overhead-memory",
        "overhead.py",
        quick=("--memory", "2000"),
        full=("--memory", "20000"),
        beside_peers=True,
    ),
    Benchmark(
        "host-latency",
        "host_latency.py",
        quick=("--rounds", "1", "--seconds", "3"),
        full=("--rounds", "3", "--seconds", "6"),
    ),
    Benchmark("judge-cost", "judge_cost.py", samples="--samples"),
    Benchmark("lexical-speed", "lexical_speed.py", quick=("--rounds", "2"), samples="--records"),
    Benchmark("local-speed", "local_speed.py"),
    Benchmark("local-skips", "local_skips.py", quick=("--claims", "40")),
    Benchmark(
        "growth", "growth.py", quick=("--most", "100", "--rounds", "1"), full=("--rounds", "2")
    ),
    Benchmark("simulation", "simulation.py", quick=("--processes", "1", "--hours", "3")),
    Benchmark("import-cost", "import_cost.py", quick=("--rounds", "3"), full=("--rounds", "10")),
)
"""All that are published, in the order of the page."""

NAMES: Final = [each.name for each in BENCHMARKS]


def run(benchmark: Benchmark, command: list[str], machine: Machine) -> Run:
    """Runs one benchmark to its end, whatever that is."""
    started = time.monotonic()
    results, why = _results(benchmark, command)
    return Run(
        name=benchmark.name,
        date=today(),
        seconds=time.monotonic() - started,
        load=os.getloadavg()[0],
        machine=machine,
        results=results,
        why=why,
    )


def _results(benchmark: Benchmark, command: list[str]) -> tuple[Results | None, str]:
    if not (HERE / benchmark.script).is_file():
        return None, f"there is no {benchmark.script}."
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return None, f"{benchmark.script} took longer than {MOST_SECONDS:.0f} s."
    if done.returncode:
        words = done.stderr.strip().splitlines() or ["nothing"]
        sys.stderr.write(done.stderr)
        # Paths of this machine have no place on the page.
        last = words[-1].replace(str(ROOT), ".").replace(str(Path.home()), "~")
        return None, f"{benchmark.script} ended with {done.returncode}: {last[:200]}"
    try:
        return Results.model_validate_json(done.stdout), ""
    except ValidationError:
        return None, f"{benchmark.script} does not print `Results` with `--json`."


@cache
def peers() -> Path:
    """The interpreter of the peers' environment, which the first call makes."""
    return environment("bench", ROOT / "requirements" / "bench.txt")


@cache
def machine_of(python: Path) -> Machine:
    return this_machine(python)


def publish(chosen: list[Benchmark], options: argparse.Namespace) -> Iterator[Run]:
    """Runs and shows the chosen ones in turn."""
    for benchmark in chosen:
        sys.stderr.write(f"{benchmark.name}: {benchmark.script}\n")
        command = benchmark.command(quick=options.quick, samples=options.samples)
        python = peers() if benchmark.beside_peers else Path(sys.executable)
        done = run(benchmark, command, machine_of(python))
        if done.results is None:
            sys.stdout.write(f"{benchmark.name} not measured: {done.why}\n")
        else:
            show(done.results, as_json=False)
            if done.results.plots:
                draw(done.results.plots, peers())
        yield done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="small sizes, in a few minutes")
    parser.add_argument("--only", action="append", help="names of benchmarks, or how they begin")
    parser.add_argument("--samples", type=Path, help="of the benchmarks of judges")
    parser.add_argument("--render", action="store_true", help="run nothing; write the page anew")
    parser.add_argument("--no-page", action="store_true", help="print the tables only")
    options = parser.parse_args()
    wanted = tuple(options.only or ("",))
    chosen = [each for each in BENCHMARKS if each.name.startswith(wanted)]
    if not chosen:
        parser.error(f"none begins with {' or '.join(wanted)}; there are {', '.join(NAMES)}")
    if options.render:
        render()
        return
    for done in publish(chosen, options):
        if not options.no_page:
            keep(done)
            render()


def render() -> None:
    """Writes the page from what was kept of all benchmarks."""
    PAGE.write_text(page_of(list(kept_runs(NAMES))), encoding="utf-8")


if __name__ == "__main__":
    main()
