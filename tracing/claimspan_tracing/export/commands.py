"""Commands of the ``claimspan`` command line that read traces, and results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

import typer

from claimspan.errors import NoRecordsError
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
from claimspan.report.outline import WORST
from claimspan.text.visible import visible
from claimspan_tracing.export.report_input import SystemFile, system_files
from claimspan_tracing.export.sample import read_sample
from claimspan_tracing.export.skipped import Skipped
from claimspan_tracing.export.stats import group_stats
from claimspan_tracing.export.stats_table import as_json_value, print_stats

__all__ = ["ReportFormat", "report", "stats"]


class ReportFormat(StrEnum):
    """What ``claimspan report`` writes."""

    HTML = "html"
    MARKDOWN = "markdown"
    JSON = "json"


_ENDINGS: Final = {".md": ReportFormat.MARKDOWN, ".json": ReportFormat.JSON}
"""The ending of a file to its format; every other one is a page."""

_NAMES: Final = {
    ReportFormat.HTML: "claimspan-report.html",
    ReportFormat.MARKDOWN: "claimspan-report.md",
    ReportFormat.JSON: "claimspan-report.json",
}


def report(
    files: Annotated[
        list[Path],
        typer.Argument(help="OTLP JSON lines, or results of `evaluate -o`; one file a system."),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The file to write.", show_default=_NAMES[ReportFormat.HTML]
        ),
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Turn traces or results into one HTML page that opens offline.

    Several files are several systems over the same dataset: the page compares them. What is broken
    in a file is skipped and counted. The command fails with code 1 where a file has no record.
    """
    chosen = wanted or _ENDINGS.get(output.suffix if output else "", ReportFormat.HTML)
    output = output or Path(_NAMES[chosen])
    refuse_input(output, files, option="-o")
    links = None if trace_url is None else TraceLinks(trace_url)
    inputs = system_files(files, strict=strict)
    systems = [_read(each, as_json=as_json) for each in inputs]
    text = _rendered(systems, chosen, worst, links, progress=False if as_json else None)
    # Readable by its owner alone: it holds the questions and answers of users.
    write_private(output, text, what="the report")
    if as_json:
        typer.echo(json.dumps({"report": str(output), **_figures(inputs, systems)}))
    else:
        counts = [f"{_records(system)} of {system.name}" for system in systems]
        told = ", ".join(counts) if len(counts) > 1 else _records(systems[0])
        typer.echo(visible(f"{output}: {told}"))
    if show:
        typer.launch(output.resolve().as_uri())


def _records(system: ReportSystem) -> str:
    n = len(system.entries)
    return f"{n} record{'' if n == 1 else 's'}"


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
    match wanted:
        case ReportFormat.HTML if comparison:
            return render_comparison(
                systems, comparison, title=title, links=links, progress=progress
            )
        case ReportFormat.HTML:
            return render_report(systems[0].entries, title=title, links=links, progress=progress)
        case _:
            found = outline(systems, comparison, title=title, worst=worst, links=links)
            if wanted is ReportFormat.MARKDOWN:
                return render_markdown(found)
            return found.model_dump_json(indent=2) + "\n"


def _figures(inputs: Sequence[SystemFile], systems: Sequence[ReportSystem]) -> dict[str, object]:
    """What ``--json`` prints of the systems; of one without its name."""
    found = {
        each.name: {
            "entries": len(system.entries),
            "means": {s.metric.name: s.mean for s in summarise(system.entries)},
            "skipped": each.skipped.counts,
        }
        for each, system in zip(inputs, systems, strict=True)
    }
    return {"systems": found} if len(found) > 1 else dict(*found.values())


def stats(
    trace_file: Annotated[Path, typer.Argument(help="A file of OTLP JSON lines.")],
    by: Annotated[
        str | None,
        typer.Option(help="Group by `route`, or by an attribute of the root span."),
    ] = None,
    reweight: Annotated[
        bool,
        typer.Option("--reweight", help="Let evaluated records stand for lost ones of their rule."),
    ] = False,
    strict: Annotated[bool, typer.Option(help="Stop at the first line that is broken.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Estimate the mean scores of all traffic from the sampled part."""
    skipped = Skipped(trace_file, strict=strict)
    found = group_stats(read_sample(trace_file, by, skipped=skipped), reweight=reweight)
    _warn_of(skipped, trace_file)
    if as_json:
        typer.echo(json.dumps({**as_json_value(found), "skipped": skipped.counts}))
    else:
        print_stats(found, by)


def _read(file: SystemFile, *, as_json: bool) -> ReportSystem:
    """Read the records, and say on standard error what was skipped."""
    try:
        system = file.read()
    except NoRecordsError as error:
        if as_json:
            nothing = {"entries": 0, "means": {}, "skipped": file.skipped.counts}
            typer.echo(json.dumps({"report": None, **nothing}))
        typer.echo(visible(f"claimspan: {error}{other_kinds([str(file.path)])}"), err=True)
        raise typer.Exit(1) from None
    _warn_of(file.skipped, file.path)
    return system


def _warn_of(skipped: Skipped, trace_file: Path) -> None:
    if skipped.counts:
        typer.echo(visible(f"claimspan: {trace_file} is damaged; skipped: {skipped}"), err=True)
