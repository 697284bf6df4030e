"""The command ``claimspan bench ragchecker``: RAGChecker's figures, recomputed from its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Final

import typer

from claimspan.cli.evaluate_command import UndefinedRule
from claimspan.text.visible import visible
from claimspan_bench.ragchecker.recomputed import recompute
from claimspan_bench.ragchecker.tables import as_json, as_markdown, as_text

__all__ = ["NOT_EQUAL", "ragchecker_command"]

NOT_EQUAL: Final = 1
"""Exit code where a figure in a file is not the one that its labels give, or a record of it cannot
be read: then the figures are not those of the whole file."""


def ragchecker_command(
    files: Annotated[
        list[Path], typer.Argument(help="RAGChecker's results with labels, one file a system.")
    ],
    undefined: Annotated[
        UndefinedRule,
        typer.Option(
            help="A metric without a value is 0 as in ragchecker 0.1.9, or left out of the mean."
        ),
    ] = UndefinedRule.ZERO,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the table in Markdown.")
    ] = False,
    as_json_: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Recompute RAGChecker's metrics from recorded labels.

    Shows each system in the columns of the paper's table 3, in per cent, beside the figures in its
    file. Exits with 1 where one of these is not equal, or a record cannot be read. No judge is
    asked.
    """
    systems = [recompute(file, undefined=undefined.value) for file in files]
    if as_json_:
        typer.echo(json.dumps(as_json(systems, undefined.value)))
    else:
        typer.echo(visible(as_markdown(systems) if markdown else as_text(systems)))
    # Leaving values out gives other figures on purpose.
    is_compared = undefined is UndefinedRule.ZERO
    if any(each.account.skipped or (is_compared and not each.is_equal) for each in systems):
        raise typer.Exit(NOT_EQUAL)
