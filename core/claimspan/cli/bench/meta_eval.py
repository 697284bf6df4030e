"""The command ``claimspan bench meta-eval``: RAGChecker's table 5, with rows of other judges."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from claimspan.benchmarks.meta_eval import meta_evaluate
from claimspan.cli.bench.meta_eval_tables import as_markdown, as_text
from claimspan.cli.options import JudgeNames, JudgeOptions, judges_from
from claimspan.errors import ConfigError
from claimspan.text.visible import visible

__all__ = ["meta_eval_command"]

SOME_FAILED: Final = 1
"""Exit code where a judge has failed on some answers; the notes say why."""


def meta_eval_command(
    directory: Annotated[
        Path,
        typer.Argument(
            help="Folder with human_labeled_data.json and baseline_ragchecker.json, as in "
            "RAGChecker's data/meta_evaluation."
        ),
    ],
    judges: JudgeNames = None,
    judge_options: JudgeOptions = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of results, one file a judge. A run goes on with what it holds.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Use only the first N pairs.", min=2)] = None,
    concurrency: Annotated[int, typer.Option(help="Answers under evaluation at once.", min=1)] = 4,
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the tables as Markdown.")
    ] = False,
) -> None:
    """Compare judges with people on RAGChecker's pairs of answers.

    People said of two answers to a query which is the better one, and so do the differences of
    their scores. Prints how far the two go together: as RAGChecker has published it, from its own
    files, and for each judge that is given. Exits with 1 where a judge failed on some answers.
    """
    if as_json and markdown:
        raise ConfigError("--json and --markdown do not go together: give one of them")
    found = meta_evaluate(
        directory,
        judges_from(judges or (), judge_options),
        limit=limit,
        results=output,
        concurrency=concurrency,
        progress=progress,
    )
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        typer.echo(visible(as_markdown(found) if markdown else as_text(found)))
    if any(row.failed for row in found.rows):
        raise typer.Exit(SOME_FAILED)
