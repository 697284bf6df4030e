"""The commands about judges: their cost, their agreement with people, and cascade thresholds."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import ValidationError

from claimspan.cli.judge_tables import (
    MeasuredJudge,
    agreement_table,
    calibration_table,
    comparison_table,
    estimate_table,
)
from claimspan.cost.pricing import Price
from claimspan.errors import ClaimspanError, ConfigError, JudgeError
from claimspan.evaluation.estimate import CLAIMS_PER_SENTENCE, aestimate
from claimspan.files.no_records import no_records
from claimspan.files.record_files import RecordFile, read_usable_records
from claimspan.judges import Judge, default_judge
from claimspan.judges.llm.extraction import Extraction
from claimspan.judges.llm.judge import OpenAIJudge
from claimspan.meta_evaluation.agreement import Agreement, measure_agreement
from claimspan.meta_evaluation.calibration import MAX_LOSS, calibrate, split_tune_test
from claimspan.meta_evaluation.labelled import LabelledClaim, judge_labelled, read_labelled
from claimspan.text.visible import visible

__all__ = ["calibrate_cascade", "estimate_command", "judge_agreement"]

# An estimate sends nothing. A given base URL keeps the judge from asking for a key.
_NO_ENDPOINT: Final = "http://127.0.0.1:9/v1"

_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
_Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
    ),
]
_Labelled = Annotated[list[Path], typer.Argument(help="Files of labelled claims, JSON lines.")]
_Limit = Annotated[int | None, typer.Option(help="Use only the first N claims of a file.", min=1)]
_JudgeNames = Annotated[
    list[str] | None,
    typer.Option(
        "--judge", help="lexical (the default), local, or openai:MODEL; may be given repeatedly."
    ),
]


def estimate_command(
    file: Annotated[
        Path, typer.Argument(help="Records: JSON lines, CSV, a JSON list, or RAGChecker's JSON.")
    ],
    model: Annotated[str, typer.Option(help="The judge's model.")] = "gpt-4o-mini",
    chunks_per_call: Annotated[
        int | None,
        typer.Option(help="Texts that one call checks claims against; 0: as many as fit.", min=0),
    ] = None,
    reasoned: Annotated[
        bool, typer.Option(help="Extract claims with chain-of-thought reasoning.")
    ] = False,
    claims_per_sentence: Annotated[
        float, typer.Option(help="Claims that the model is expected to extract per sentence.")
    ] = CLAIMS_PER_SENTENCE,
    input_price: Annotated[
        float | None, typer.Option(help="US dollars per million prompt tokens.")
    ] = None,
    output_price: Annotated[
        float | None, typer.Option(help="US dollars per million completion tokens.")
    ] = None,
    progress: _Progress = None,
    as_json: _Json = False,
) -> None:
    """Estimate what evaluating a file will cost.

    Counts the calls, tokens and dollars of an OpenAI-compatible judge. No call is made.
    """
    given = RecordFile(file)
    records, account = read_usable_records(given)
    if not records:
        raise no_records(given, account)
    if account.skipped:
        typer.echo(f"{account.skipped} of {account.rows} rows are no records: left out", err=True)
    price = _price(input_price, output_price)
    judge = _offline_judge(model, chunks_per_call, "reasoned" if reasoned else "direct", price)
    estimate = asyncio.run(
        aestimate(records, judge, claims_per_sentence=claims_per_sentence, progress=progress)
    )
    typer.echo(estimate.model_dump_json() if as_json else visible(estimate_table(estimate, model)))


def judge_agreement(
    files: _Labelled,
    judges: _JudgeNames = None,
    limit: _Limit = None,
    progress: _Progress = None,
    as_json: _Json = False,
) -> None:
    """Measure how far judges agree with human labels.

    A judge that fails does not stop the others. Failures are reported at the end.
    """
    chosen = {name: default_judge(name) for name in judges or ["lexical"]}
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
        max_loss: Share of verdicts that the cheap judge may get wrong.
        strong_accuracy: Share of verdicts that the strong judge gets right.
        limit: Use only the first claims of a file; None for all.
        progress: As in ``evaluate_many``.
        as_json: Print JSON.

    Raises:
        ClaimspanError: A file cannot be read, or no thresholds keep to ``max_loss``.
    """
    claims = [claim for file in files for claim in read_labelled(file)[:limit]]
    judged = asyncio.run(judge_labelled(default_judge(judge), claims, progress=progress))
    tune, test = split_tune_test(claims, judged)
    found = calibrate(tune, test, max_loss=max_loss, strong_accuracy=strong_accuracy)
    typer.echo(found.model_dump_json() if as_json else calibration_table(found))


def _offline_judge(
    model: str, chunks_per_call: int | None, extraction: Extraction, price: Price | None
) -> OpenAIJudge:
    """Build the judge to estimate; `chunks_per_call` None keeps the judge's own default."""
    if chunks_per_call is None:
        return OpenAIJudge(model, base_url=_NO_ENDPOINT, extraction=extraction, price=price)
    return OpenAIJudge(
        model,
        base_url=_NO_ENDPOINT,
        extraction=extraction,
        price=price,
        chunks_per_call=chunks_per_call or None,
    )


def _price(input_price: float | None, output_price: float | None) -> Price | None:
    if input_price is None and output_price is None:
        return None
    if input_price is None or output_price is None:
        raise ConfigError("one price is missing: give --input-price and --output-price together")
    try:
        return Price(input=input_price, output=output_price)
    except ValidationError:
        raise ConfigError(
            f"--input-price {input_price!r} or --output-price {output_price!r} is not a price in "
            "US dollars: give 0 or more"
        ) from None


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
