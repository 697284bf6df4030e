"""The commands about judges: their cost, their agreement with people, and cascade thresholds."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from claimspan.cli.options import (
    JUDGE_HELP,
    AsJson,
    ColumnMap,
    Criteria,
    JudgeNames,
    JudgeOptions,
    Metrics,
    Progress,
    judge_from,
    judges_from,
    selection_from,
)
from claimspan.comparison.tables import MISSING, Table
from claimspan.errors import ClaimspanError, JudgeError
from claimspan.evaluation.estimate import REASONING_TOKENS_PER_CALL, Estimate, aestimate
from claimspan.files.names import Columns
from claimspan.files.record_files import RecordFile, read_usable_records
from claimspan.judges import JUDGE_VARIABLE, default_judge
from claimspan.judges.choice import parse_options
from claimspan.meta_evaluation.agreement import (
    Agreement,
    judge_labelled,
    measure_agreement,
    read_labelled,
)
from claimspan.meta_evaluation.calibration import MAX_LOSS, Calibration, calibrate, split_tune_test
from claimspan.text.percentages import in_percent
from claimspan.text.visible import visible

__all__ = ["calibrate_cascade", "estimate_command", "judge_agreement"]

ESTIMATED_MODEL: Final = "gpt-4o-mini"
"""Whose cost is estimated if neither an option nor the environment names a judge."""

_FIGURES: Final = ("accuracy", "balanced_accuracy", "auroc", "kappa")


def estimate_command(
    file: Annotated[
        Path, typer.Argument(help="Records: JSON lines, CSV, a JSON list, or RAGChecker's JSON.")
    ],
    judge: Annotated[
        str | None,
        typer.Option(
            "--judge",
            metavar="JUDGE",
            help=f"{JUDGE_HELP}; by default that of CLAIMSPAN_JUDGE, else "
            f"openai:{ESTIMATED_MODEL}.",
        ),
    ] = None,
    judge_options: JudgeOptions = None,
    metrics: Metrics = None,
    criteria: Criteria = None,
    columns: ColumnMap = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Estimate what evaluating a file will cost.

    Counts the calls, tokens and dollars of a judge. No call is made, and no key is needed. For a
    model that reasons before it replies, tokens and dollars are a range: from the replies alone to
    the replies with an assumed length of reasoning.
    """
    records, account = read_usable_records(RecordFile(file, Columns.of_options(columns or [])))
    if account.skipped:
        typer.echo(f"{account.skipped} of {account.rows} rows are no records: left out", err=True)
    if judge is None and not os.environ.get(JUDGE_VARIABLE):
        judge = f"openai:{ESTIMATED_MODEL}"
    estimated = default_judge(judge, options=parse_options(judge_options or ()), offline=True)
    selection = selection_from(metrics, criteria=criteria)
    estimate = asyncio.run(aestimate(records, estimated, selection, progress=progress))
    # A model by its own name: the name of its judge is that of the provider.
    shown: str = getattr(estimated, "model", estimated.name)
    told = estimate.model_dump_json() if as_json else visible(_estimate_table(estimate, shown))
    typer.echo(told)


class _Measured(NamedTuple):
    file: str
    judge: str
    agreement: Agreement


def judge_agreement(
    files: Annotated[list[Path], typer.Argument(help="Files of labelled claims, JSON lines.")],
    judges: JudgeNames = None,
    judge_options: JudgeOptions = None,
    limit: Annotated[
        int | None, typer.Option(help="Use only the first N claims of a file.", min=1)
    ] = None,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Measure how far judges agree with human labels.

    Without --judge that of lexical is measured. A judge that fails does not stop the others.
    Failures are reported at the end.
    """
    chosen = judges_from(judges or ["lexical"], judge_options)
    claims = {str(file): read_labelled(file)[:limit] for file in files}
    measured: list[_Measured] = []
    failures: list[str] = []
    for file, labelled in claims.items():
        for name, judge in chosen.items():
            try:
                judged = asyncio.run(judge_labelled(judge, labelled, progress=progress))
                measured.append(_Measured(file, name, measure_agreement(judged)))
            except ClaimspanError as error:
                failures.append(f"{name} on {file!r}: {error}")
    if len(measured) == len(claims) == len(chosen) == 1:
        (only,) = measured
        typer.echo(only.agreement.model_dump_json() if as_json else visible(_agreement_table(only)))
    elif measured and as_json:
        rows = [
            {"file": file, "judge": judge, **agreement.model_dump(mode="json")}
            for file, judge, agreement in measured
        ]
        typer.echo(json.dumps(rows))
    elif measured:
        typer.echo(visible(_comparison_table(measured)))
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

    Raises:
        ClaimspanError: A file cannot be read, or no thresholds keep to ``max_loss``.
    """
    claims = [claim for file in files for claim in read_labelled(file)[:limit]]
    cheap = judge_from(judge, judge_options)
    judged = asyncio.run(judge_labelled(cheap, claims, progress=progress))
    tune, test = split_tune_test(claims, judged)
    found = calibrate(tune, test, max_loss=max_loss, strong_accuracy=strong_accuracy)
    typer.echo(found.model_dump_json() if as_json else _calibration_table(found))


def _estimate_table(estimate: Estimate, judge: str) -> str:
    if not estimate.calls and estimate.cost_usd == 0:
        return f"{estimate.records} records, {judge}: no call of a model, which costs nothing"
    tokens = _range(f"{estimate.output_tokens:,}", f"{estimate.output_tokens_with_reasoning:,}")
    cost = "unknown: give --judge-option input_price=... and output_price=..."
    if estimate.cost_usd is not None and estimate.cost_usd_with_reasoning is not None:
        cost = _range(f"${estimate.cost_usd:.4f}", f"${estimate.cost_usd_with_reasoning:.4f}")
    lines = [
        f"{estimate.records} records, {judge}, nothing cached",
        f"  calls              {estimate.calls:>12,}",
        f"  prompt tokens      {estimate.input_tokens:>12,}",
        f"  completion tokens  {tokens:>12}",
        f"  cost               {cost:>12}",
    ]
    if most := estimate.max_reasoning_tokens_per_call:
        assumed = min(most, REASONING_TOKENS_PER_CALL)
        lines.append(
            f"The model reasons: from no reasoning at all to {assumed:,} tokens of it in a call, "
            f"which is an assumption; reasoning_tokens={most} is the most that a call can take."
        )
    return "\n".join(lines)


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} to {high}"


def _agreement_table(measured: _Measured) -> str:
    agreement = measured.agreement
    told = f"{measured.judge}: {agreement.n} claims, {agreement.undecided} undecided"
    figures = tuple((name, _figure(agreement, name)) for name in _FIGURES)
    labels = tuple(agreement.classes)
    confusion = tuple(
        (human, *(str(row[each]) for each in labels), _share(of.precision), _share(of.recall))
        for (human, row), of in zip(
            agreement.confusion.items(), agreement.classes.values(), strict=True
        )
    )
    head = ("people \\ judge", *labels, "precision", "recall")
    tables = Table(told, ("figure", "value [95 %]"), figures), Table("", head, confusion)
    return "\n".join(table.as_text() for table in tables)


def _comparison_table(measured: Sequence[_Measured]) -> str:
    head = ("file", "judge", "claims", "undecided", "AUROC", "balanced accuracy")
    rows = tuple(
        (
            *(Path(file).name, judge, f"{found.n:,}", f"{found.undecided:,}"),
            *(_figure(found, "auroc"), _figure(found, "balanced_accuracy")),
        )
        for file, judge, found in measured
    )
    return Table("", head, rows).as_text()


def _calibration_table(found: Calibration) -> str:
    low, high = found.thresholds.low, found.thresholds.high
    saved, lost, agreement_lost = (
        in_percent(each, in_table=True) for each in (found.saved, found.lost, found.agreement_lost)
    )
    return "\n".join(
        (
            f"Thresholds(low={low:.3f}, high={high:.3f}); expected, on {found.n} held-out claims:",
            f"  verdicts saved     {saved} are not asked of the strong judge",
            f"  wrongly decided    {lost} of all verdicts, by the cheap judge",
            f"  agreement lost     {agreement_lost}, at the strong judge's accuracy",
        )
    )


def _figure(agreement: Agreement, name: str) -> str:
    value: float | None = getattr(agreement, name)
    if name not in agreement.intervals:
        return _share(value)
    low, high = agreement.intervals[name]
    return f"{_share(value)} [{low:.3f}, {high:.3f}]"


def _share(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3f}"
