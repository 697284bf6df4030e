"""Commands of the ``claimspan`` command line that read traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from claimspan.errors import NoRecordsError
from claimspan.files.private import write_private
from claimspan.report import ReportEntry, render_report, summarise
from claimspan.text.visible import visible
from claimspan_tracing.export.skipped import Skipped
from claimspan_tracing.export.trace_file import read_trace_file

__all__ = ["report"]


def report(
    trace_file: Annotated[Path, typer.Argument(help="A file of OTLP JSON lines.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path(
        "claimspan-report.html"
    ),
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    strict: Annotated[bool, typer.Option(help="Stop at the first line that is broken.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Turn a trace file into one HTML page that opens offline.

    What is broken in the file is skipped and counted. The command fails with code 1 where no
    record is left.
    """
    skipped = Skipped(trace_file, strict=strict)
    entries = _read(trace_file, skipped, as_json=as_json)
    page = render_report(entries, title=trace_file.stem)
    write_private(output, page, what="the report")
    means = {summary.metric.name: summary.mean for summary in summarise(entries)}
    if as_json:
        figures = {"entries": len(entries), "means": means, "skipped": skipped.counts}
        typer.echo(json.dumps({"report": str(output), **figures}))
    else:
        typer.echo(visible(f"{output}: {len(entries)} records"))
    if show:
        typer.launch(output.resolve().as_uri())


def _read(trace_file: Path, skipped: Skipped, *, as_json: bool) -> list[ReportEntry]:
    """Read the records, and say on standard error what was skipped."""
    try:
        entries = read_trace_file(trace_file, skipped=skipped)
    except NoRecordsError as error:
        if as_json:
            nothing = {"entries": 0, "means": {}, "skipped": skipped.counts}
            typer.echo(json.dumps({"report": None, **nothing}))
        typer.echo(visible(f"claimspan: {error}"), err=True)
        raise typer.Exit(1) from None
    if skipped.counts:
        typer.echo(visible(f"claimspan: {trace_file} is damaged; skipped: {skipped}"), err=True)
    return entries
