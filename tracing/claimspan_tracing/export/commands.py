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
from claimspan_tracing.export.sample import read_sample
from claimspan_tracing.export.skipped import Skipped
from claimspan_tracing.export.stats import group_stats
from claimspan_tracing.export.stats_table import as_json_value, print_stats
from claimspan_tracing.export.trace_file import read_trace_file

__all__ = ["report", "stats"]


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
    _warn_of(skipped, trace_file)
    return entries


def _warn_of(skipped: Skipped, trace_file: Path) -> None:
    if skipped.counts:
        typer.echo(visible(f"claimspan: {trace_file} is damaged; skipped: {skipped}"), err=True)
