"""The commands about judges: their cost, their agreement with people, and cascade thresholds."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import JsonValue

from claimspan.cli.evaluate_command import ColumnMap
from claimspan.cli.judge_options import (
    JUDGE_HELP,
    JudgeNames,
    JudgeOptions,
    judge_from,
    judges_from,
)
from claimspan.cli.judge_tables import (
    MeasuredJudge,
    agreement_table,
    calibration_table,
    comparison_table,
    estimate_table,
)
from claimspan.cli.metric_options import Criteria, Metrics, selection_from
from claimspan.errors import ClaimspanError, ConfigError, JudgeError
from claimspan.evaluation.estimate import CLAIMS_PER_SENTENCE, aestimate
from claimspan.files.names import Columns
from claimspan.files.no_records import no_records
from claimspan.files.record_files import RecordFile, read_usable_records
from claimspan.judges import JUDGE_VARIABLE, Judge, default_judge
from claimspan.judges.options import parse_options
from claimspan.meta_evaluation.agreement import (
    Agreement,
    LabelledClaim,
    judge_labelled,
    measure_agreement,
    read_labelled,
)
from claimspan.meta_evaluation.calibration import MAX_LOSS, calibrate, split_tune_test
from claimspan.text.visible import visible

__all__ = ["calibrate_cascade", "estimate_command", "judge_agreement"]

ESTIMATED_MODEL: Final = "gpt-4o-mini"
"""Whose cost is estimated if neither an option nor the environment names a judge."""

_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
_Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
    ),
]
_Labelled = Annotated[list[Path], typer.Argument(help="Files of labelled claims, JSON lines.")]
_Limit = Annotated[int | None, typer.Option(help="Use only the first N claims of a file.", min=1)]
_Records = Annotated[
    Path, typer.Argument(help="Records: JSON lines, CSV, a JSON list, or RAGChecker's JSON.")
]
_EstimatedJudge = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="JUDGE",
        help=f"{JUDGE_HELP}; by default that of CLAIMSPAN_JUDGE, else openai:{ESTIMATED_MODEL}.",
    ),
]
_Model = Annotated[
    str | None, typer.Option(help="Short for --judge openai:MODEL, also of models elsewhere.")
]
_ChunksPerCall = Annotated[
    int | None,
    typer.Option(help="Texts that one call checks claims against; 0: as many as fit.", min=0),
]
_Reasoned = Annotated[bool, typer.Option(help="Extract claims with chain-of-thought reasoning.")]
_ClaimsPerSentence = Annotated[
    float, typer.Option(help="Claims that the model is expected to extract per sentence.")
]
_InputPrice = Annotated[float | None, typer.Option(help="US dollars per million prompt tokens.")]
_OutputPrice = Annotated[
    float | None, typer.Option(help="US dollars per million completion tokens.")
]


def estimate_command(
    file: _Records,
    judge: _EstimatedJudge = None,
    judge_options: JudgeOptions = None,
    model: _Model = None,
    metrics: Metrics = None,
    criteria: Criteria = None,
    columns: ColumnMap = None,
    chunks_per_call: _ChunksPerCall = None,
    reasoned: _Reasoned = False,
    claims_per_sentence: _ClaimsPerSentence = CLAIMS_PER_SENTENCE,
    input_price: _InputPrice = None,
    output_price: _OutputPrice = None,
    progress: _Progress = None,
    as_json: _Json = False,
) -> None:
    """Estimate what evaluating a file will cost.

    Counts the calls, tokens and dollars of a judge. No call is made, and no key is needed. For a
    model that reasons before it replies, tokens and dollars are a range: from the replies alone to
    the replies with an assumed length of reasoning.
    """
    by = Columns.of_options(columns or [])
    given = RecordFile(file, by)
    records, account = read_usable_records(given)
    if not records:
        raise no_records(given, account)
    account.check_columns(by)
    if account.skipped:
        typer.echo(f"{account.skipped} of {account.rows} rows are no records: left out", err=True)
    set_by = {
        "chunks_per_call": chunks_per_call,
        "extraction": "reasoned" if reasoned else None,
        "input_price": input_price,
        "output_price": output_price,
    }
    name = _estimated(judge, model)
    options = _with(parse_options(judge_options or ()), set_by)
    estimated = default_judge(name, options=options, offline=True)
    estimate = asyncio.run(
        aestimate(
            records,
            estimated,
            selection_from(metrics, criteria=criteria),
            claims_per_sentence=claims_per_sentence,
            progress=progress,
        )
    )
    if as_json:
        typer.echo(estimate.model_dump_json())
        return
    # A model by its own name: the name of its judge is that of the provider.
    shown: str = getattr(estimated, "model", estimated.name)
    typer.echo(visible(estimate_table(estimate, shown)))


def judge_agreement(
    files: _Labelled,
    judges: JudgeNames = None,
    judge_options: JudgeOptions = None,
    limit: _Limit = None,
    progress: _Progress = None,
    as_json: _Json = False,
) -> None:
    """Measure how far judges agree with human labels.

    Without --judge that of lexical is measured. A judge that fails does not stop the others.
    Failures are reported at the end.
    """
    chosen = judges_from(judges or ["lexical"], judge_options)
    claims = {str(file): read_labelled(file)[:limit] for file in files}
    measured, failures = _measure_all(claims, chosen, progress)
    if len(measured) == len(claims) == len(chosen) == 1:
        (only,) = measured
        typer.echo(only.agreement.model_dump_json() if as_json else visible(agreement_table(only)))
    elif measured:
        typer.echo(_rows_as_json(measured) if as_json else visible(comparison_table(measured)))
    if failures:
        raise JudgeError("; ".join(failures))


def calibrate_cascade(
    files: Sequence[Path],
    judge: str,
    *,
    judge_options: Sequence[str] = (),
    max_loss: float = MAX_LOSS,
    strong_accuracy: float = 1.0,
    limit: int | None = None,
    progress: bool | None = None,
    as_json: bool = False,
) -> None:
    """Find the thresholds of a cascade on labelled claims, and print them.

    Args:
        files: Labelled claims, JSON lines.
        judge: The cheap judge, as ``default_judge`` takes it.
        judge_options: Its options, each as ``key=value``.
        max_loss: Share of verdicts that the cheap judge may get wrong.
        strong_accuracy: Share of verdicts that the strong judge gets right.
        limit: Use only the first claims of a file; None for all.
        progress: As in ``evaluate_many``.
        as_json: Print JSON.

    Raises:
        ClaimspanError: A file cannot be read, or no thresholds keep to ``max_loss``.
    """
    claims = [claim for file in files for claim in read_labelled(file)[:limit]]
    cheap = judge_from(judge, judge_options)
    judged = asyncio.run(judge_labelled(cheap, claims, progress=progress))
    tune, test = split_tune_test(claims, judged)
    found = calibrate(tune, test, max_loss=max_loss, strong_accuracy=strong_accuracy)
    typer.echo(found.model_dump_json() if as_json else calibration_table(found))


def _estimated(judge: str | None, model: str | None) -> str | None:
    """The name of the judge to estimate; None for that of the environment."""
    if judge is not None and model is not None:
        raise ConfigError("--judge and --model do not go together: --model is short for --judge")
    if model is None and (judge is not None or os.environ.get(JUDGE_VARIABLE)):
        return judge
    return f"openai:{ESTIMATED_MODEL if model is None else model}"


def _with(
    options: Mapping[str, JsonValue], set_by: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Options of a judge, and those that have an option of their own; None is not given."""
    given: dict[str, JsonValue] = {n: value for n, value in set_by.items() if value is not None}
    if twice := sorted(options.keys() & given.keys()):
        raise ConfigError(f"{', '.join(twice)} is given twice: leave it out of --judge-option")
    if given.get("chunks_per_call") == 0:
        given["chunks_per_call"] = None
    return {**options, **given}


def _measure_all(
    files: Mapping[str, Sequence[LabelledClaim]],
    judges: Mapping[str, Judge],
    progress: bool | None,
) -> tuple[list[MeasuredJudge], list[str]]:
    """Measure every judge on every file; also return one message for each that failed."""
    measured: list[MeasuredJudge] = []
    failures: list[str] = []
    for file, claims in files.items():
        for name, judge in judges.items():
            try:
                measured.append(MeasuredJudge(file, name, _measure(judge, claims, progress)))
            except ClaimspanError as error:
                failures.append(f"{name} on {file!r}: {error}")
    return measured, failures


def _measure(judge: Judge, claims: Sequence[LabelledClaim], progress: bool | None) -> Agreement:
    return measure_agreement(asyncio.run(judge_labelled(judge, claims, progress=progress)))


def _rows_as_json(measured: Sequence[MeasuredJudge]) -> str:
    rows = [
        {"file": file, "judge": judge, **agreement.model_dump(mode="json")}
        for file, judge, agreement in measured
    ]
    return json.dumps(rows)
