"""The command ``claimspan curate``: picks records worth labelling out of traces or results."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from claimspan.files.private import check_replaceable, refuse_input
from claimspan.text.visible import visible
from claimspan_tracing.curate.candidates import read_candidates
from claimspan_tracing.curate.golden_file import GoldenFile
from claimspan_tracing.curate.picking import REASONS, checked_reasons, pick

__all__ = ["curate"]


def curate(
    files: Annotated[
        list[Path], typer.Argument(help="Trace files, or results of `claimspan evaluate` or `run`.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to fill in; JSON lines, or CSV by its ending."),
    ] = Path("golden.jsonl"),
    n: Annotated[int, typer.Option("--n", "-n", help="Records to pick.", min=1)] = 50,
    by: Annotated[
        str, typer.Option(help=f"What to pick for, an equal share each: {', '.join(REASONS)}.")
    ] = ",".join(REASONS),
    seed: Annotated[int, typer.Option(help="Of the random share.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Pick records worth labelling, as a file of ground truths to fill in.

    What is in the file already stays. `Monitor(ground_truth=FILE)` takes the lines that are
    filled in.
    """
    reasons = checked_reasons(by)
    # Before it is read: what is no file may have no end.
    check_replaceable(output, what="the ground truths")
    refuse_input(output, files, option="-o")
    golden = GoldenFile(output)
    candidates = read_candidates(files)
    picks = pick(candidates, n, reasons, known=golden.queries, seed=seed)
    if picks:
        golden.add(picks)
    counts = Counter(each.reason for each in picks)
    result = {
        "output": str(output),
        "candidates": len(candidates),
        "picked": {reason: counts[reason] for reason in reasons},
        "lines": len(golden),
        "unfilled": golden.unfilled,
    }
    if json_:
        typer.echo(json.dumps(result))
        return
    listed = ", ".join(f"{counts[reason]} {reason}" for reason in reasons)
    typer.echo(visible(f"{output}: {len(picks)} picked of {len(candidates)} ({listed})"))
    if not candidates:
        typer.echo("every record of the files has a ground truth already: nothing is left to label")
    typer.echo(f"{golden.unfilled} of {len(golden)} lines wait for a ground truth")
