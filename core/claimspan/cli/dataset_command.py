"""The command ``claimspan dataset``: makes a ground-truth file of a public dataset."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import typer

from claimspan.errors import ConfigError
from claimspan.files.datasets import AUTO, FORMATS, BadLine, DatasetItem, read_dataset
from claimspan.files.private import refuse_input, replaced_private
from claimspan.text.visible import visible

__all__ = ["dataset"]

SOME_LEFT_OUT: Final = 1
"""Exit code if lines could not be read; the account says how many, and why."""


def dataset(
    format: Annotated[
        str,
        typer.Argument(help=f"One of {', '.join(FORMATS)}; {AUTO} finds it out by the first line."),
    ],
    file: Annotated[Path, typer.Argument(help="A file of the dataset: .jsonl, .tsv, also .gz.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The ground-truth file to write, JSON lines.")
    ],
    chunks: Annotated[
        bool, typer.Option("--chunks", help="Write the passages of the dataset as well.")
    ] = False,
    limit: Annotated[int | None, typer.Option(help="Take only the first N items.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the account as JSON.")] = False,
) -> None:
    """Make a ground-truth file of a public question-answering dataset.

    Nothing is downloaded. Questions without an answer are left out of the file and counted. Exits
    with 1 if lines could not be read.
    """
    # The dataset is read while the output is written.
    refuse_input(output, [file], option="-o")
    bad: list[BadLine] = []
    items = read_dataset(format, file, on_bad=bad.append)
    counts = _write(items, output, with_chunks=chunks, limit=limit)
    if as_json:
        lines = [each._asdict() for each in bad]
        typer.echo(json.dumps({**counts, "unreadable": len(bad), "lines": lines}))
    else:
        typer.echo(visible(_as_text(counts, bad, output)))
    if bad:
        raise typer.Exit(SOME_LEFT_OUT)


def _write(
    items: Iterator[DatasetItem], output: Path, *, with_chunks: bool, limit: int | None
) -> Counter[str]:
    counts = Counter[str](written=0, without_answer=0, repeated=0)
    seen: set[str] = set()
    # As a whole or not at all: a dataset that breaks off in the middle must not replace the ground
    # truths of an earlier run, and half of them would pass for all.
    with replaced_private(output, what="the ground truths") as file:
        for item in items:
            # The first ground truth of a query wins in a look-up, so that a second one would never
            # be found.
            if item.ground_truth is None or item.query in seen:
                counts["without_answer" if item.ground_truth is None else "repeated"] += 1
            else:
                seen.add(item.query)
                counts["written"] += 1
                row = item.model_dump(mode="json", exclude=set() if with_chunks else {"chunks"})
                given = {key: value for key, value in row.items() if value is not None}
                file.write(f"{json.dumps(given)}\n")
            if limit is not None and counts.total() >= limit:
                break
        # Within the block, so that nothing is put into place.
        if not counts.total():
            raise ConfigError(
                f"no line is a question of the dataset, so {str(output)!r} is not written: give "
                f"its format, one of {', '.join(FORMATS)}, and a file of it"
            )
    return counts


def _as_text(counts: Counter[str], bad: list[BadLine], output: Path) -> str:
    lines = [f"{counts['written']:,} ground truths written to {output}"]
    if counts["without_answer"]:
        lines.append(f"  {counts['without_answer']:,} questions have no answer, and are left out")
    if counts["repeated"]:
        lines.append(f"  {counts['repeated']:,} questions stand there more than once")
    reasons = Counter(each.reason for each in bad)
    for reason, n in reasons.most_common():
        first = next(each.line for each in bad if each.reason == reason)
        lines.append(f"  {n:,} lines left out, the first is line {first}: {reason}")
    return "\n".join(lines)
