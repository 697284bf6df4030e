"""The page of results, from what each benchmark has found.

Each benchmark's latest ``Run`` is kept as JSON in ``published/``, and the page is made of all of
them: a benchmark that was run alone changes its own section.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from pydantic import BaseModel
from results import Bar, Plot, Results, Table

__all__ = [
    "FOLDER",
    "PAGE",
    "Machine",
    "Run",
    "draw",
    "keep",
    "kept_runs",
    "page_of",
    "this_machine",
]

HERE: Final = Path(__file__).resolve().parent
FOLDER: Final = HERE / "published"
PAGE: Final = HERE / "RESULTS.md"

COMPARED: Final = (
    "langchain-core",
    "llama-index-core",
    "haystack-ai",
    "opentelemetry-sdk",
    "openinference-instrumentation-langchain",
    "openinference-instrumentation-llama-index",
    "openinference-instrumentation-haystack",
    "opentelemetry-instrumentation-langchain",
    "opentelemetry-instrumentation-llamaindex",
    "opentelemetry-haystack",
    "langfuse",
    "onnxruntime",
)
"""Packages whose versions the page states."""

_TITLE: Final = "# What claimspan costs, beside its peers"
_PREFACE: Final = (
    "`make bench` measures all of this and writes this page, so no figure on it is typed. "
    "Subjects that are compared ran side by side, turn by turn: ratios hold on other machines, "
    "milliseconds do not. A figure is a median, with its quartiles in brackets where there are "
    "any. OpenLLMetry is `opentelemetry-instrumentation-*` of Traceloop."
)


class Machine(BaseModel):
    """Where figures were measured, in general words."""

    cores: int
    gigabytes: int
    system: str
    python: str
    versions: dict[str, str]
    """Of the packages that were compared."""


class Run(BaseModel):
    """What became of one benchmark."""

    name: str
    date: str
    seconds: float
    load: float
    """How many processes were ready to run, on average over a minute before the end."""
    machine: Machine
    results: Results | None
    why: str = ""
    """Why there are no results."""


def this_machine(python: Path) -> Machine:
    """This machine, with the packages of an interpreter's environment."""
    page, pages = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_PHYS_PAGES")
    return Machine(
        cores=os.cpu_count() or 1,
        gigabytes=round(page * pages / 2**30),
        system=f"{platform.system()} on {platform.machine()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions=_versions(python),
    )


def _versions(python: Path) -> dict[str, str]:
    code = (
        "import json, sys; from importlib.metadata import distributions;"
        "found = {each.name.lower(): each.version for each in distributions()};"
        "print(json.dumps({name: found[name] for name in sys.argv[1:] if name in found}))"
    )
    command = [str(python), "-c", code, *COMPARED]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    versions: dict[str, str] = json.loads(printed)
    return {"claimspan": version("claimspan"), **versions}


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def keep(run: Run) -> None:
    """Keep what a benchmark found, in place of what it found before."""
    FOLDER.mkdir(exist_ok=True)
    text = run.model_dump_json(indent=1) + "\n"
    (FOLDER / f"{run.name}.json").write_text(text, encoding="utf-8")


def kept_runs(names: Iterable[str]) -> Iterator[Run]:
    """The latest runs of these benchmarks, of those that have one."""
    for name in names:
        file = FOLDER / f"{name}.json"
        if file.is_file():
            yield Run.model_validate_json(file.read_text(encoding="utf-8"))


def draw(plots: Sequence[Plot], python: Path) -> None:
    """Draw the plots beside the page, with the packages of an interpreter's environment."""
    document = json.dumps([plot.model_dump() for plot in plots])
    command = [str(python), str(HERE / "plots.py"), str(FOLDER)]
    subprocess.run(command, input=document, text=True, check=True)


# --- the page ------------------------------------------------------------------------------------


def page_of(runs: Sequence[Run]) -> str:
    """The whole page, as Markdown."""
    parts = [_TITLE, _PREFACE, *_promises(runs)]
    for run in runs:
        parts += _section(run)
    return "\n\n".join(parts) + "\n"


def _promises(runs: Sequence[Run]) -> Iterator[str]:
    bars = [bar for run in runs if run.results is not None for bar in run.results.bars]
    if bars:
        kept = sum(bar.is_kept for bar in bars)
        yield "## Promises"
        yield f"{kept} of {len(bars)} are kept."
        yield _markdown(_bar_table(bars))


def _bar_table(bars: Sequence[Bar]) -> Table:
    rows = [[bar.promise, bar.measured, "yes" if bar.is_kept else "**no**"] for bar in bars]
    return Table(caption="Promises", columns=["promise", "measured", "kept"], rows=rows)


def _section(run: Run) -> Iterator[str]:
    results = run.results
    yield f"## {results.title if results is not None else run.name}"
    if results is None:
        yield f"Not measured: {run.why}"
        return
    yield f"`{results.command}`"
    yield results.how
    for table in results.tables:
        yield f"**{table.caption}**"
        yield _markdown(table)
    for plot in results.plots:
        yield f"![{plot.y_label} against {plot.x_label}](published/{plot.name}.svg)"
    if results.notes:
        yield "\n".join(f"- {note}" for note in results.notes)
    yield _where(run)


def _where(run: Run) -> str:
    machine = run.machine
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    return (
        f"<sub>{run.date}, {run.seconds:.0f} s at a load of {run.load:.1f}: {machine.cores} cores, "
        f"{machine.gigabytes} GiB, {machine.system}, {machine.python}; {versions}</sub>"
    )


def _markdown(table: Table) -> str:
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
