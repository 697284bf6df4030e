"""Commands of the ``claimspan`` command line that read traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from claimspan.errors import ConfigError
from claimspan.report import render_report, summarise
from claimspan_tracing.export.sample import read_sample
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Turn a trace file into one HTML page that opens offline."""
    entries = read_trace_file(trace_file)
    _write(output, render_report(entries, title=trace_file.stem))
    means = {summary.metric.name: summary.mean for summary in summarise(entries)}
    if as_json:
        typer.echo(json.dumps({"report": str(output), "entries": len(entries), "means": means}))
    else:
        typer.echo(f"{output}: {len(entries)} records")
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Estimate the mean scores of all traffic from the sampled part."""
    found = group_stats(read_sample(trace_file, by), reweight=reweight)
    if as_json:
        typer.echo(json.dumps(as_json_value(found)))
    else:
        print_stats(found, by)


def _write(path: Path, page: str) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"cannot write {path}: {reason}; give another path with -o") from None
