"""``claimspan report``: one page of the traces or results of one system, or of several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from claimspan.cli.options import AsJson
from claimspan.comparison.systems import system_names
from claimspan.errors import ConfigError, NoRecordsError
from claimspan.files.jsonl import other_kinds
from claimspan.files.private import refuse_input, write_private
from claimspan.report import (
    ReportSystem,
    TraceLinks,
    compare_entries,
    outline,
    render_comparison,
    render_markdown,
    render_report,
    summarise,
)
from claimspan.report.evaluated import holds_results, read_results
from claimspan.report.outline import WORST
from claimspan.text.visible import visible
from claimspan_tracing.trace_file.records import read_trace_file
from claimspan_tracing.trace_file.spans import Skipped

__all__ = ["ReportFormat", "read_system", "report"]


class ReportFormat(StrEnum):
    """What ``claimspan report`` writes."""

    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"


_ENDINGS: Final = {
    ReportFormat.HTML: ".html",
    ReportFormat.MARKDOWN: ".md",
    ReportFormat.JSON: ".json",
}
_NAME: Final = "claimspan-report"


def report(
    files: Annotated[
        list[Path],
        typer.Argument(help="OTLP JSON lines, or results of `evaluate -o`; one file a system."),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The file to write.", show_default=f"{_NAME}.html"),
    ] = None,
    wanted: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="By the ending of the output where not given."),
    ] = None,
    worst: Annotated[
        int, typer.Option(help="Answers told one by one in Markdown and JSON.", min=0)
    ] = WORST,
    trace_url: Annotated[
        str | None,
        typer.Option(help="Address of a trace in your backend, with {trace_id} for its id."),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    strict: Annotated[bool, typer.Option(help="Stop at the first line that is broken.")] = False,
    as_json: AsJson = False,
) -> None:
    """Turn traces or results into one HTML page that opens offline.

    Several files are several systems over the same dataset: the page compares them. Broken parts of
    a file are skipped and counted. The command fails with code 1 if a file has no record.
    """
    by_ending = {ending: each for each, ending in _ENDINGS.items()}
    chosen = wanted or by_ending.get(output.suffix if output else "", ReportFormat.HTML)
    output = output or Path(_NAME + _ENDINGS[chosen])
    refuse_input(output, files, option="-o")
    links = None if trace_url is None else TraceLinks(trace_url)
    systems: list[ReportSystem] = []
    broken: list[Skipped] = []
    for path, name in zip(files, system_names(files), strict=True):
        skipped = Skipped(path, strict=strict)
        try:
            system = read_system(path, name, skipped)
        except NoRecordsError as error:
            if as_json:
                nothing = {"entries": 0, "means": {}, "skipped": skipped.counts}
                typer.echo(json.dumps({"report": None, **nothing}))
            typer.echo(visible(f"claimspan: {error}{other_kinds([str(path)])}"), err=True)
            raise typer.Exit(1) from None
        systems.append(system)
        broken.append(skipped)
    text = _rendered(systems, chosen, worst, links, progress=False if as_json else None)
    # Readable by its owner alone: it holds the questions and answers of users.
    write_private(output, text, what="the report")
    if as_json:
        figures: dict[str, dict[str, object]] = {
            system.name: {
                "entries": len(system.entries),
                "means": {each.metric.name: each.mean for each in summarise(system.entries)},
                "skipped": skipped.counts,
            }
            for system, skipped in zip(systems, broken, strict=True)
        }
        # The figures of a single system need no name.
        told = {"systems": figures} if len(figures) > 1 else next(iter(figures.values()))
        typer.echo(json.dumps({"report": str(output), **told}))
    else:
        counts: list[str] = []
        for system in systems:
            n = len(system.entries)
            of = f" of {system.name}" if len(systems) > 1 else ""
            counts.append(f"{n} record{'' if n == 1 else 's'}{of}")
        typer.echo(visible(f"{output}: {', '.join(counts)}"))
    if show:
        typer.launch(output.resolve().as_uri())


def read_system(path: Path, name: str, skipped: Skipped) -> ReportSystem:
    """Read the records of a trace file or a file of results; tells broken parts on standard error.

    Raises:
        ConfigError: The file is a pipe or cannot be read; or a part of it if reading is strict.
        NoRecordsError: The file has no record.
    """
    # What tells the kind of a file is read before its records: a pipe would lose that part.
    if path.is_fifo():
        raise ConfigError(f"{path} is a pipe, which can be read once only: give a file")
    # By what the file holds and not by its name: all kinds are called .json or .jsonl.
    if holds_results(path):
        entries = read_results(path, skip=skipped.add_line)
    else:
        entries = read_trace_file(path, skipped=skipped)
    if skipped.counts:
        typer.echo(visible(f"claimspan: {path} is damaged; skipped: {skipped}"), err=True)
    return ReportSystem(name, tuple(entries))


def _rendered(
    systems: Sequence[ReportSystem],
    wanted: ReportFormat,
    worst: int,
    links: TraceLinks | None,
    *,
    progress: bool | None,
) -> str:
    title = " vs ".join(system.name for system in systems)
    # A single system needs no name beside its figures: the title has it.
    if len(systems) == 1:
        systems = [ReportSystem("", systems[0].entries)]
    comparison = compare_entries(systems, progress=progress) if len(systems) > 1 else None
    if wanted is not ReportFormat.HTML:
        found = outline(systems, comparison, title=title, worst=worst, links=links)
        is_json = wanted is ReportFormat.JSON
        return found.model_dump_json(indent=2) + "\n" if is_json else render_markdown(found)
    if comparison:
        return render_comparison(systems, comparison, title=title, links=links, progress=progress)
    return render_report(systems[0].entries, title=title, links=links, progress=progress)
