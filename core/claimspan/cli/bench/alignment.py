"""The command ``claimspan bench alignment``: Pinecone's Evaluation API on a file of requests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from claimspan.benchmarks.alignment import (
    DIGITS,
    FACT_METRICS,
    AlignmentResponse,
    AlignmentSummary,
    evaluate_alignment,
    evaluation_of,
    read_requests,
    read_responses,
    response_of,
    summarise,
)
from claimspan.cli.options import JudgeName, JudgeOptions, judge_from
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import CONCURRENCY
from claimspan.evaluation.result import Evaluation
from claimspan.files.private import refuse_input, write_private
from claimspan.judges import Judge
from claimspan.text.visible import visible

__all__ = ["alignment_command"]

SOME_FAILED: Final = 1
"""Exit code where the judge failed on some answers, or recorded metrics are others."""


_File = Annotated[
    Path,
    typer.Argument(
        help="Requests, JSON lines or a list: question, answer, ground_truth_answer; or records. "
        "With --recorded: responses."
    ),
]
_Recorded = Annotated[
    bool,
    typer.Option(
        "--recorded", help="Compute the metrics of recorded responses anew from their facts."
    ),
]
_Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", help="File of response bodies, one JSON line a request, in order."
    ),
]
_Results = Annotated[
    Path | None,
    typer.Option(help="File of results, one JSON line a request. A run goes on with it."),
]
_Rounded = Annotated[
    bool, typer.Option("--rounded", help="Round metrics to 4 digits, as Pinecone does.")
]
_Concurrency = Annotated[int, typer.Option(help="Answers under evaluation at once.", min=1)]
_Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
    ),
]


def alignment_command(
    file: _File,
    judge: JudgeName = None,
    judge_options: JudgeOptions = None,
    recorded: _Recorded = False,
    output: _Output = None,
    results: _Results = None,
    rounded: _Rounded = False,
    concurrency: _Concurrency = CONCURRENCY,
    progress: _Progress = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Evaluate answers as Pinecone's Evaluation API does.

    Each fact of the ground truth is entailed, contradicted or left out by the answer. Metrics are
    averaged over the answers. Exits with 1 where the judge failed on some, or where the metrics of
    a recorded response are not those of its facts.
    """
    if recorded and (judge is not None or judge_options or results is not None):
        raise ConfigError("--recorded takes no --judge and no --results: nothing is judged")
    refuse_input(output, [file, results], option="-o")
    if recorded:
        found = _recomputed(file)
    else:
        chosen = judge_from(judge, judge_options)
        found = _judged(file, chosen, results, concurrency, progress)
    digits = DIGITS if rounded else None
    if output is not None:
        _write(output, found.evaluations, digits)
    typer.echo(_as_json(found, digits) if as_json else _as_text(found, digits))
    if found.summary.failed or found.deviations:
        raise typer.Exit(SOME_FAILED)


class _Found(NamedTuple):
    """What a run has found."""

    evaluations: Sequence[Evaluation]
    summary: AlignmentSummary
    groups: str
    """What the intervals resample."""
    deviations: Sequence[str] = ()


def _recomputed(file: Path) -> _Found:
    responses = read_responses(file)
    evaluations = [evaluation_of(each) for each in responses]
    deviations = list(_deviations(responses, evaluations))
    return _Found(evaluations, summarise(evaluations), "responses", deviations)


def _judged(
    file: Path, judge: Judge, results: Path | None, concurrency: int, progress: bool | None
) -> _Found:
    records = read_requests(file)
    evaluations = evaluate_alignment(
        records, judge=judge, results=results, concurrency=concurrency, progress=progress
    )
    questions = [each.query for each in records]
    return _Found(evaluations, summarise(evaluations, questions), "questions")


def _deviations(
    responses: Sequence[AlignmentResponse], evaluations: Sequence[Evaluation]
) -> Iterator[str]:
    """The responses whose metrics are not those of their facts, at the digits they are given in."""
    for number, (response, found) in enumerate(zip(responses, evaluations, strict=True), start=1):
        computed = response_of(found).metrics.model_dump()
        for name, value in response.metrics.model_dump().items():
            if name not in found.metrics:
                continue  # nobody has said what the API has for a metric without a value
            # Half a unit of the last digit, and what floating point adds.
            if abs(value - computed[name]) > 0.5 * 10**-DIGITS + 1e-12:
                yield f"row {number}: {name} is {value:g}, but its facts give {computed[name]:.4f}"


def _write(path: Path, evaluations: Sequence[Evaluation], digits: int | None) -> None:
    """Write the response bodies; of an answer that failed, the body of the API's errors."""
    bodies = [
        json.dumps({"message": each.error})
        if each.error is not None
        else response_of(each, digits=digits).model_dump_json()
        for each in evaluations
    ]
    write_private(path, "".join(f"{body}\n" for body in bodies), what="the responses")


def _as_json(found: _Found, digits: int | None) -> str:
    values = found.summary.model_dump(mode="json")
    if digits is not None:
        for each in values["means"].values():
            each |= {end: round(each[end], digits) for end in ("value", "low", "high")}
    return json.dumps({**values, "deviations": list(found.deviations)})


def _as_text(found: _Found, digits: int | None) -> str:
    summary = found.summary
    failed = sum(summary.failed.values())
    shown = digits or 3
    lines = [f"{summary.answers - failed} of {summary.answers} answers evaluated"]
    for name in FACT_METRICS:
        lines.append(f"  {name:<16}{_mean(summary, name, shown)}")
    facts = ", ".join(f"{n:,} {label}" for label, n in summary.facts.items())
    lines += [
        f"  facts           {facts}",
        "Means are point-wise: of each answer's own metric, with 95 % intervals over "
        f"{found.groups}.",
    ]
    if summary.harmonic_mean_of_means is not None:
        lines.append(
            "For comparison, the harmonic mean of mean correctness and mean completeness is "
            f"{summary.harmonic_mean_of_means:.{shown}f}; it is not the mean alignment."
        )
    lines += [f"failed: {reason} ({n})" for reason, n in summary.failed.items()]
    lines += [f"deviation: {each}" for each in found.deviations]
    return visible("\n".join(lines))


def _mean(summary: AlignmentSummary, name: str, digits: int) -> str:
    undefined = summary.undefined[name]
    absent = f"; undefined for {undefined:,}" if undefined else ""
    mean = summary.means.get(name)
    if mean is None:
        return f"-{absent}"
    low, high = f"{mean.low:.{digits}f}", f"{mean.high:.{digits}f}"
    return f"{mean.value:.{digits}f}  [{low}, {high}]  over {mean.n:,}{absent}"
