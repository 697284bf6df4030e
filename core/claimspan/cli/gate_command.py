"""The command ``claimspan gate``: fails a build whose scores are too low, or worse than before."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from claimspan.cli.options import AsJson
from claimspan.comparison.gate import MAX_FAILED, Gate, check_gate
from claimspan.comparison.systems import read_system
from claimspan.comparison.tables import gate_as_markdown, gate_as_text, gate_line
from claimspan.errors import ConfigError, FileError
from claimspan.evaluation.selection import names_given
from claimspan.files.private import refuse_input, write_private
from claimspan.text.percentages import from_percent
from claimspan.text.visible import visible

__all__ = ["GATE_FAILED", "gate_command"]

GATE_FAILED: Final = 1
"""Exit code if a rule does not hold; bad input exits with 2."""

STEP_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""Names the file whose content GitHub Actions shows on the page of a run."""


def gate_command(
    file: Annotated[Path, typer.Argument(help="Results of claimspan evaluate -o.")],
    minima: Annotated[
        list[str] | None,
        typer.Option("--min", help="METRIC=VALUE: the lowest mean that passes; repeatable."),
    ] = None,
    maxima: Annotated[
        list[str] | None,
        typer.Option("--max", help="METRIC=VALUE: the highest mean that passes; repeatable."),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="Results to compare with: no metric may get worse.")
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="What may not get worse than the baseline's: metrics with commas between them; "
            "default, paper or all."
        ),
    ] = None,
    primary: Annotated[
        str | None,
        typer.Option(help="The metric that matters most: tested as if it were the only one."),
    ] = None,
    confident: Annotated[
        bool, typer.Option("--confident", help="The whole 95 % interval has to hold a threshold.")
    ] = False,
    tolerance: Annotated[
        float,
        typer.Option(help="By how much a metric may get worse than the baseline's.", min=0, max=1),
    ] = 0.0,
    min_records: Annotated[
        int, typer.Option(help="Records that must be evaluated, and have each metric.", min=1)
    ] = 1,
    max_failed: Annotated[
        float,
        typer.Option(
            help="Share of records that may have failed, and of the baseline's that may be "
            "missing.",
            min=0,
            max=1,
        ),
    ] = MAX_FAILED,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the table to this file, as Markdown.")
    ] = None,
    github_summary: Annotated[
        bool,
        typer.Option("--github-summary", help="Add the table to the summary of a GitHub step."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fail if scores are too low, or worse than before.

    Exits with 1 if a rule does not hold: a threshold, a metric that got worse than the
    baseline's by more than chance, or too many records without an evaluation.
    """
    gate = Gate(
        metrics=None if metrics is None else names_given(metrics),
        primary=primary,
        min=_thresholds(minima or (), "--min"),
        max=_thresholds(maxima or (), "--max"),
        confident=confident,
        tolerance=tolerance,
        min_records=min_records,
        max_failed=max_failed,
    )
    refuse_input(markdown, [file, baseline], option="--markdown")
    before = None if baseline is None else read_system(baseline)
    result = check_gate(read_system(file), gate, baseline=before)
    page = visible(gate_as_markdown(result))
    # Before the exit: the table of a gate that failed is the one that is read.
    if markdown is not None:
        write_private(markdown, page, what="the outcome of the gate")
    if github_summary:
        _add_to_summary(page)
    typer.echo(result.model_dump_json() if as_json else visible(gate_as_text(result)))
    if as_json:
        typer.echo(visible(gate_line(result)), err=True)  # beside the JSON, for readers of the log
    if not result.passed:
        raise typer.Exit(GATE_FAILED)


def _thresholds(given: Sequence[str], option: str) -> Mapping[str, float]:
    found: dict[str, float] = {}
    for each in given:
        metric, _, value = each.partition("=")
        metric = metric.strip()
        try:
            limit = float(value)
        except ValueError:
            limit = float("nan")
        # NaN is neither above nor below any mean: a rule with it could never fail.
        if not metric or limit != limit or abs(limit) == float("inf"):
            share = from_percent(value)
            example = f"{metric or 'faithfulness'}={0.8 if share is None else share:g}"
            raise ConfigError(f"{option} {each!r} is no threshold: write {example}")
        if metric in found:
            raise ConfigError(f"{option} gives {metric} twice: give it once")
        found[metric] = limit
    return found


def _add_to_summary(page: str) -> None:
    path = os.environ.get(STEP_SUMMARY)
    if not path:
        typer.echo(f"{STEP_SUMMARY} is not set, so no summary was written", err=True)
        return
    try:
        # Other commands of the step may have written to the file already.
        with open(path, "a", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise FileError(f"cannot add to the summary of the step ({error.strerror})") from None
