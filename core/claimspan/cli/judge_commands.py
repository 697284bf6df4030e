"""Commands of the command line about judges: what they cost, and how far they agree with people."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from pydantic import ValidationError

from claimspan.cost.pricing import Price
from claimspan.errors import ClaimspanError, ConfigError, JudgeError
from claimspan.evaluation.estimate import CLAIMS_PER_SENTENCE, Estimate, aestimate
from claimspan.files.record_files import read_records
from claimspan.judges import Judge, default_judge
from claimspan.judges.llm.extraction import Extraction
from claimspan.judges.llm.judge import OpenAIJudge
from claimspan.meta_evaluation.agreement import Agreement, measure_agreement
from claimspan.meta_evaluation.calibration import MAX_LOSS, Calibration, calibrate, split_tune_test
from claimspan.meta_evaluation.labelled import LabelledClaim, judge_labelled, read_labelled

__all__ = ["calibrate_command", "estimate_command", "judge_agreement"]

# The rehearsal sends nothing: it needs no key, and goes nowhere.
_NOWHERE: Final = "http://127.0.0.1:9/v1"
_CONFUSION_WIDTH: Final = 8
_FIGURE_WIDTH: Final = 24

_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
_Progress = Annotated[
    bool | None, typer.Option("--progress/--no-progress", help="Show a bar; default on a terminal.")
]
_Limit = Annotated[int | None, typer.Option(help="Take the first so many claims only.", min=1)]
_JudgeName = Annotated[str, typer.Option("--judge", help="lexical, local, or openai:MODEL.")]
_JudgeNames = Annotated[
    list[str] | None, typer.Option("--judge", help="lexical, local, or openai:MODEL; repeatable.")
]


def estimate_command(
    file: Annotated[Path, typer.Argument(help="Records: JSON lines, or RAGChecker's JSON.")],
    model: Annotated[str, typer.Option(help="The model of the judge.")] = "gpt-4o-mini",
    chunks_per_call: Annotated[
        int | None, typer.Option(help="Texts in one check; 0 for as many as fit.", min=0)
    ] = None,
    reasoned: Annotated[bool, typer.Option(help="Claims after a chain of thought.")] = False,
    claims_per_sentence: Annotated[
        float, typer.Option(help="How finely the model takes texts apart.")
    ] = CLAIMS_PER_SENTENCE,
    input_price: Annotated[
        float | None, typer.Option(help="US dollars for a million prompt tokens.")
    ] = None,
    output_price: Annotated[
        float | None, typer.Option(help="US dollars for a million completion tokens.")
    ] = None,
    progress: _Progress = None,
    as_json: _Json = False,
) -> None:
    """Say what evaluating a file will cost, in calls, tokens and money. Nothing is sent."""
    records = read_records(file)
    if not records:
        raise ConfigError(f"{str(file)!r} holds no records")
    judge = _rehearsed(model, chunks_per_call, reasoned, _price(input_price, output_price))
    estimate = asyncio.run(
        aestimate(records, judge, claims_per_sentence=claims_per_sentence, progress=progress)
    )
    typer.echo(estimate.model_dump_json() if as_json else _estimate_text(estimate, model))


def judge_agreement(
    files: Annotated[list[Path], typer.Argument(help="Labelled claims, JSON lines.")],
    judges: _JudgeNames = None,
    limit: _Limit = None,
    progress: _Progress = None,
    as_json: _Json = False,
) -> None:
    """Measure how far judges agree with people on labelled claims.

    One of several that fails does not stop the others; who failed is said at the end.
    """
    names = judges or ["lexical"]
    chosen = {name: default_judge(name) for name in names}
    sets = {str(file): read_labelled(file)[:limit] for file in files}
    found, failed = _agreements(sets, chosen, progress)
    if found and len(sets) == len(chosen) == 1:
        _, name, agreement = found[0]
        typer.echo(agreement.model_dump_json() if as_json else _agreement_text(agreement, name))
    elif found:
        typer.echo(_agreements_json(found) if as_json else _agreements_text(found))
    if failed:
        raise JudgeError("; ".join(failed))


def _agreements(
    sets: Mapping[str, Sequence[LabelledClaim]],
    judges: Mapping[str, Judge],
    progress: bool | None,
) -> tuple[list[tuple[str, str, Agreement]], list[str]]:
    """What was found for every file and judge, and who failed where; none stops the others."""
    found: list[tuple[str, str, Agreement]] = []
    failed: list[str] = []
    for file, claims in sets.items():
        for name, judge in judges.items():
            try:
                found.append((file, name, _agreement(judge, claims, progress)))
            except ClaimspanError as error:
                failed.append(f"{name} on {file!r}: {error}")
    return found, failed


def _agreement(judge: Judge, claims: Sequence[LabelledClaim], progress: bool | None) -> Agreement:
    return measure_agreement(asyncio.run(judge_labelled(judge, claims, progress=progress)))


def calibrate_command(
    files: Annotated[list[Path], typer.Argument(help="Labelled claims, JSON lines.")],
    judge: _JudgeName = "lexical",
    max_loss: Annotated[
        float, typer.Option(help="Share of verdicts that the cheap judge may get wrong.")
    ] = MAX_LOSS,
    strong_accuracy: Annotated[
        float, typer.Option(help="How often the strong judge is right, where known.")
    ] = 1.0,
    limit: _Limit = None,
    progress: _Progress = None,
    as_json: _Json = False,
) -> None:
    """Find the thresholds of a cascade, and say what they save and lose."""
    claims = [claim for file in files for claim in read_labelled(file)[:limit]]
    judged = asyncio.run(judge_labelled(default_judge(judge), claims, progress=progress))
    tune, test = split_tune_test(claims, judged)
    found = calibrate(tune, test, max_loss=max_loss, strong_accuracy=strong_accuracy)
    typer.echo(found.model_dump_json() if as_json else _calibration_text(found))


def _rehearsed(
    model: str, chunks_per_call: int | None, reasoned: bool, price: Price | None
) -> OpenAIJudge:
    extraction: Extraction = "reasoned" if reasoned else "direct"
    if chunks_per_call is None:
        return OpenAIJudge(model, base_url=_NOWHERE, extraction=extraction, price=price)
    return OpenAIJudge(
        model,
        base_url=_NOWHERE,
        extraction=extraction,
        price=price,
        chunks_per_call=chunks_per_call or None,
    )


def _price(input_price: float | None, output_price: float | None) -> Price | None:
    if input_price is None and output_price is None:
        return None
    if input_price is None or output_price is None:
        raise ConfigError("give --input-price and --output-price together")
    try:
        return Price(input=input_price, output=output_price)
    except ValidationError:
        raise ConfigError("--input-price and --output-price are dollars: give 0 or more") from None


def _estimate_text(estimate: Estimate, model: str) -> str:
    cost = "unknown: give --input-price and --output-price"
    if estimate.cost_usd is not None:
        cost = f"${estimate.cost_usd:.4f}"
    return "\n".join(
        (
            f"{estimate.records} records, {model}, nothing cached",
            f"  calls              {estimate.calls:>12,}",
            f"  prompt tokens      {estimate.input_tokens:>12,}",
            f"  completion tokens  {estimate.output_tokens:>12,}",
            f"  cost               {cost:>12}",
        )
    )


def _agreement_text(agreement: Agreement, judge: str) -> str:
    figures = {
        "accuracy": agreement.accuracy,
        "balanced_accuracy": agreement.balanced_accuracy,
        "auroc": agreement.auroc,
        "kappa": agreement.kappa,
    }
    names = list(agreement.classes)
    lines = [f"{judge}: {agreement.n} claims, {agreement.undecided} undecided"]
    for name, value in figures.items():
        low, high = agreement.intervals.get(name, (0.0, 0.0))
        lines.append(f"  {name:<18}{_share(value)}  [{low:.3f}, {high:.3f}]")
    lines.append("  people \\ judge" + "".join(f"{name:>{_CONFUSION_WIDTH}}" for name in names))
    for name, row in agreement.confusion.items():
        cells = "".join(f"{row[each]:>{_CONFUSION_WIDTH}}" for each in names)
        one = agreement.classes[name]
        shares = f"precision {_share(one.precision)}, recall {_share(one.recall)}"
        lines.append(f"  {name:<14}{cells}  {shares}")
    return "\n".join(lines)


def _agreements_json(found: Sequence[tuple[str, str, Agreement]]) -> str:
    rows = [
        {"file": file, "judge": judge, **agreement.model_dump(mode="json")}
        for file, judge, agreement in found
    ]
    return json.dumps(rows)


def _agreements_text(found: Sequence[tuple[str, str, Agreement]]) -> str:
    """A line for every file and judge."""
    width = max(len(Path(file).name) for file, _, _ in found)
    wide = max(len(judge) for _, judge, _ in found)
    figures = "".join(f"{name:>{_FIGURE_WIDTH}}" for name in ("AUROC", "balanced accuracy"))
    lines = [f"{'file':<{width}}  {'judge':<{wide}}{'claims':>8}{'undecided':>11}{figures}"]
    for file, judge, agreement in found:
        cells = "".join(
            f"{_with_interval(agreement, name):>{_FIGURE_WIDTH}}"
            for name in ("auroc", "balanced_accuracy")
        )
        counts = f"{agreement.n:>8,}{agreement.undecided:>11,}"
        lines.append(f"{Path(file).name:<{width}}  {judge:<{wide}}{counts}{cells}")
    return "\n".join(lines)


def _with_interval(agreement: Agreement, name: str) -> str:
    value: float | None = getattr(agreement, name)
    if value is None or name not in agreement.intervals:
        return _share(value)
    low, high = agreement.intervals[name]
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _calibration_text(found: Calibration) -> str:
    low, high = found.thresholds.low, found.thresholds.high
    return "\n".join(
        (
            f"Thresholds(low={low:.3f}, high={high:.3f}); expected, on {found.n} claims set aside:",
            f"  verdicts saved     {found.saved:.1%} are not asked of the strong judge",
            f"  wrongly decided    {found.lost:.1%} of all verdicts, by the cheap judge",
            f"  agreement lost     {found.agreement_lost:.1%}, at the strong judge's accuracy",
        )
    )
