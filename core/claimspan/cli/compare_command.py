"""The command ``claimspan compare``: several systems over one dataset, and which is better."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from claimspan.cli.options import AsJson, Progress
from claimspan.comparison.compare import compare_files
from claimspan.comparison.tables import as_markdown, as_text
from claimspan.evaluation.selection import names_given
from claimspan.files.private import refuse_input, write_private
from claimspan.text.visible import visible

__all__ = ["compare_command"]


def compare_command(
    files: Annotated[
        list[Path], typer.Argument(help="Results of claimspan evaluate -o, one file a system.")
    ],
    baseline: Annotated[
        str | None,
        typer.Option(help="The system to compare with, by name or file; the first by default."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option(
            help="Metrics with commas between them; default, paper (RAGChecker's) or all."
        ),
    ] = None,
    slice_by: Annotated[
        str | None, typer.Option("--slice", help="Metadata key: the same for each of its values.")
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option(
            "--group", help="Metadata key: records with the same value are resampled together."
        ),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the tables to this file, as Markdown.")
    ] = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Compare systems over one dataset, with intervals and tests.

    Every mean has its bootstrap interval. A system is called better or worse than the baseline
    if a paired permutation test shows it, adjusted for all tests of the table.
    """
    refuse_input(markdown, files, option="--markdown")
    found = compare_files(
        files,
        baseline=baseline,
        metrics=None if metrics is None else names_given(metrics),
        slice_by=slice_by,
        group_by=group_by,
        progress=progress,
    )
    if markdown is not None:
        write_private(markdown, visible(as_markdown(found)), what="the comparison")
    typer.echo(found.model_dump_json() if as_json else visible(as_text(found)))
