"""The command ``claimspan bench human-agreement``."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Final

import typer

from claimspan.benchmarks.human_agreement.figures import (
    PUBLISHED,
    HumanAgreement,
    check_options,
    measure_human_agreement,
)
from claimspan.benchmarks.human_agreement.graded import GradedAnswer, read_graded
from claimspan.benchmarks.human_agreement.judged import METRIC, ajudge_graded
from claimspan.benchmarks.resumed import results_of_judge
from claimspan.cli.bench.human_agreement_tables import as_markdown, as_text
from claimspan.cli.options import JudgeNames, JudgeOptions, judges_from
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import CONCURRENCY
from claimspan.metrics.catalogue import CATALOGUE
from claimspan.text.visible import visible

__all__ = ["human_agreement"]

SOME_FAILED: Final = 1
"""Exit code where a judge failed on some answers."""


_Files = Annotated[
    list[Path],
    typer.Argument(help="FinanceBench's graded answers: a folder, or JSON-lines files."),
]
_Metric = Annotated[str, typer.Option(help="The metric that an answer is called right by.")]
_Threshold = Annotated[
    float | None,
    typer.Option(help="A fixed threshold; by default one half of the questions chooses it."),
]
_Folds = Annotated[
    int, typer.Option(help="Parts for cross-fitting as a second reading; 0: none.", min=0)
]
_Seed = Annotated[int, typer.Option(help="Seed of the split by question.")]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Folder for what is evaluated, a file for each judge. A run goes on with it.",
    ),
]
_Concurrency = Annotated[int, typer.Option(help="Answers under evaluation at once.", min=1)]
_Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
    ),
]
_Markdown = Annotated[bool, typer.Option("--markdown", help="Print the tables as Markdown.")]
_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def human_agreement(
    files: _Files,
    judges: JudgeNames = None,
    judge_options: JudgeOptions = None,
    metric: _Metric = METRIC,
    threshold: _Threshold = None,
    folds: _Folds = 5,
    seed: _Seed = 0,
    output: _Output = None,
    concurrency: _Concurrency = CONCURRENCY,
    progress: _Progress = None,
    markdown: _Markdown = False,
    as_json: _Json = False,
) -> None:
    """Compare which answers a judge calls right with people's grades.

    An answer is called right where its metric reaches a threshold. The threshold is chosen on one
    half of the questions, and the errors are measured on the other half. Without --judge that of
    lexical is measured. Exits with 1 where a judge failed on some answers.
    """
    usable = [name for name, each in CATALOGUE.items() if each.lower_is_better is False]
    if metric not in usable:
        raise ConfigError(
            f"{metric!r} is no metric that is high for a right answer: give one of "
            f"{', '.join(usable)}"
        )
    if markdown and as_json:
        raise ConfigError("--markdown and --json do not go together: give one of them")
    answers = read_graded(files)
    check_options(answers, threshold=threshold, folds=folds)
    found = [
        measure_human_agreement(
            asyncio.run(
                ajudge_graded(
                    answers,
                    judge,
                    metric=metric,
                    results=results_of_judge(output, name),
                    concurrency=concurrency,
                    progress=progress,
                )
            ),
            name,
            metric=metric,
            threshold=threshold,
            folds=folds,
            seed=seed,
        )
        for name, judge in judges_from(judges or ["lexical"], judge_options).items()
    ]
    if as_json:
        typer.echo(_as_json(answers, found))
    else:
        typer.echo(visible(as_markdown(found) if markdown else as_text(found)))
    if any(each.failed for each in found):
        raise typer.Exit(SOME_FAILED)


def _as_json(answers: list[GradedAnswer], found: list[HumanAgreement]) -> str:
    return json.dumps(
        {
            "answers": len(answers),
            "judges": [each.model_dump(mode="json") for each in found],
            "published_false_positives": PUBLISHED,
        }
    )
