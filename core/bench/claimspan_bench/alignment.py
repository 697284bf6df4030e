"""``claimspan bench alignment``: Pinecone's Evaluation API on this machine, with any judge.

An answer is evaluated by the facts of its ground truth alone, with two questions to the judge:
which facts the ground truth states, and which of them the answer entails or contradicts. What the
answer says beyond them is not looked at. Recorded responses are computed anew from their facts, as
published numbers are checked.

The bodies are those of the API's OpenAPI description, version 2026-04, which are the same since
2025-01.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, cast

import typer
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from claimspan.cli.options import JudgeName, JudgeOptions, judge_from
from claimspan.cost.usage import Usage, metered
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.evaluation.evaluate import (
    CONCURRENCY,
    EVALUATION_SECONDS,
    MAX_CALLS,
    MAX_CLAIMS,
    MAX_TOKENS,
)
from claimspan.evaluation.matrices import guarded, judge_matrices
from claimspan.evaluation.result import Evaluation
from claimspan.files.jsonl import parse_json_lines, read_text
from claimspan.files.private import refuse_input, write_private
from claimspan.judges.protocol import Judge
from claimspan.metrics.compute import matrices_of_labels, measure
from claimspan.records import RagRecord
from claimspan.statistics import Estimate, mean_estimate
from claimspan.text.visible import visible
from claimspan.verdicts import Claim, Label, VerdictMatrices
from claimspan_bench.resumed import evaluate_resumed, version_of
from claimspan_bench.shown import SOME_FAILED, AsJson, Concurrency, Progress, interval, validated

__all__ = [
    "AlignmentResponse",
    "AlignmentSummary",
    "aevaluate_alignment",
    "alignment_command",
    "evaluation_of",
    "read_requests",
    "read_responses",
    "response_of",
    "summarise",
]

FACT_METRICS: Final = ("correctness", "completeness", "alignment", "soft_alignment")
"""The metrics that rest on the facts of the ground truth alone. The last one is ours: the API's
body has no place for it."""

DIGITS: Final = 4
"""Digits after the point in the example of Pinecone's documentation: 0.3333."""

_OURS: Final = ("results", "records")
"""Names under which an object may hold the rows: RAGChecker's, and ours."""


# --- the bodies of the API ---


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Metrics(_Body):
    """The three metrics; the API has a number for each, 0.0 where a metric is undefined."""

    correctness: float
    """Share of the facts that the answer takes up which it has right."""

    completeness: float
    """Share of the facts that the answer states."""

    alignment: float
    """Harmonic mean of both."""


class Fact(_Body):
    """A fact of the ground truth."""

    content: str


class EvaluatedFact(_Body):
    """A fact with what the answer says of it."""

    fact: Fact
    entailment: Label


class Reasoning(_Body):
    """What the metrics rest on: every fact that was decided."""

    evaluated_facts: tuple[EvaluatedFact, ...]


class TokenCounts(_Body):
    """Tokens of the judge; 0 for one that works without a model behind an endpoint."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class AlignmentResponse(_Body):
    """The body of a response."""

    metrics: Metrics
    reasoning: Reasoning
    usage: TokenCounts


class _Request(BaseModel):
    """A request body, or a record of ours or RAGChecker's; other fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    question: str = Field(validation_alias=AliasChoices("question", "query"))
    answer: str = Field(validation_alias=AliasChoices("answer", "response"))
    ground_truth_answer: str = Field(
        validation_alias=AliasChoices(
            "ground_truth_answer", "ground_truth", "gt_answer", "reference"
        )
    )
    id: str | int | None = Field(default=None, validation_alias=AliasChoices("id", "query_id"))


class _Recorded(BaseModel):
    """A line with a response, as it is or beside its request."""

    model_config = ConfigDict(extra="ignore")

    response: AlignmentResponse


def read_requests(path: Path) -> list[RagRecord]:
    """Read requests as records without chunks.

    Args:
        path: JSON lines, or a list, of ``{question, answer, ground_truth_answer}``, each as it is
            or as the ``request`` of an object that also has the response; records of ours and
            RAGChecker's names are understood as well.

    Raises:
        FileError: The file cannot be read, is empty, or a row lacks a text; names the row.
    """
    wanted = "give question, answer and ground_truth_answer (texts)"
    records: list[RagRecord] = []
    for place, row in _rows(path):
        # A record of ours may have other fields, but only a log of the API has a request as one.
        given = validated(_Request, row.get("request", row), place, wanted)
        records.append(
            RagRecord(
                id=None if given.id is None else str(given.id),
                query=given.question,
                response=given.answer,
                ground_truth=given.ground_truth_answer,
                chunks=(),
            )
        )
    return records


def read_responses(path: Path) -> list[AlignmentResponse]:
    """Read recorded responses.

    Args:
        path: JSON lines, or a list, of response bodies, each as it is or as the ``response`` of an
            object that also has the request.

    Raises:
        FileError: The file cannot be read, is empty, or a row is no response; names the row.
    """
    wanted = "give the response bodies of Pinecone's Evaluation API"
    return [
        validated(
            _Recorded, row if "response" in row else {"response": row}, place, wanted
        ).response
        for place, row in _rows(path)
    ]


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Each row of a file, and its place for an error message.

    Raises:
        FileError: The file cannot be read, or holds no row.
    """
    text = read_text(path, wanted="JSON or JSON-lines file of requests or responses")
    # A file of several lines is no JSON as a whole, and fails at its second line.
    try:
        whole: object = json.loads(text)
    except (ValueError, RecursionError):
        found = [
            (f"{str(path)!r} line {number}", cast("object", row))
            for number, row in parse_json_lines(text, path)
        ]
    else:
        rows: Sequence[object] = [whole]
        if isinstance(whole, list):
            rows = cast("Sequence[object]", whole)
        elif isinstance(whole, dict):
            fields = cast("Mapping[str, object]", whole)
            held = [fields[name] for name in _OURS if isinstance(fields.get(name), list)]
            rows = cast("Sequence[object]", held[0]) if held else [fields]
        found = [(f"{str(path)!r} row {number}", row) for number, row in enumerate(rows, start=1)]
    if not found:
        raise FileError(f"{str(path)!r} holds nothing: write one JSON object a line")
    for place, row in found:
        if not isinstance(row, dict):
            raise FileError(f"{place} is not a JSON object: write one object a row")
        yield place, cast("Mapping[str, object]", row)


# --- an evaluation by facts ---


async def aevaluate_alignment(
    records: Sequence[RagRecord],
    judge: Judge,
    *,
    results: Path | None = None,
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
) -> list[Evaluation]:
    """Evaluate the answers of records by the facts of their ground truths.

    Args:
        records: The records, as ``read_requests`` gives them; each needs a ground truth. Chunks are
            not looked at.
        judge: The judge. The first 50 facts of a record are judged, the others counted in
            ``claims_dropped``.
        results: File of results, which a run goes on with; None keeps nothing.
        concurrency: Records under evaluation at once.
        progress: As in ``evaluate_many``.

    Returns:
        One evaluation per record, in order, with the metrics of ``FACT_METRICS`` as far as they are
        defined. If the judge failed, or took longer than 300 seconds, its ``error`` says so.

    Raises:
        ConfigError: A record has no ground truth, or as in ``evaluate_resumed``.
    """
    # Before anything is judged: the API demands a ground truth as well.
    without = [place for place, each in enumerate(records) if each.ground_truth is None]
    if without:
        raise ConfigError(f"record {without[0]} has no ground truth: give one to each record")
    return await evaluate_resumed(
        records,
        judge,
        evaluate_one=lambda record: _evaluate_facts(record, judge),
        results=results,
        concurrency=concurrency,
        progress=progress,
    )


async def _evaluate_facts(record: RagRecord, judge: Judge) -> Evaluation:
    started = time.perf_counter()
    # With chunks the judge would be paid for matrices that no metric here reads.
    bare = record.model_copy(update={"chunks": ()})
    with metered(MAX_CALLS, MAX_TOKENS) as meter:
        timeout = asyncio.timeout(EVALUATION_SECONDS)
        try:
            async with timeout:
                facts = await _facts_of(record, judge)
                judged = facts[:MAX_CLAIMS]
                matrices = await judge_matrices(judge, bare, [], judged)
        except TimeoutError:
            # A TimeoutError of the judge's own is not ours to explain.
            if not timeout.expired():
                raise
            raise JudgeError(f"no verdicts within {EVALUATION_SECONDS:g} s") from None
    answer = matrices.ground_truth_vs_response  # None without a ground truth
    found = _measured(judged, VerdictMatrices(ground_truth_vs_response=answer))
    return found.model_copy(
        update={
            "claims_dropped": len(facts) - len(judged),
            "undecided": dict(meter.undecided),
            "notes": dict(meter.notes),
            "judge_name": judge.name,
            "judge_version": version_of(judge),
            "usage": meter.usage + Usage(seconds=time.perf_counter() - started),
        }
    )


async def _facts_of(record: RagRecord, judge: Judge) -> Sequence[Claim]:
    truth = record.ground_truth or ""
    if not truth.strip():  # no call is paid for a text that can state no fact
        return []
    found = await guarded(judge, lambda: judge.extract_claims(truth, question=record.query))
    if not isinstance(found, list | tuple):
        raise JudgeError(
            f"judge {judge.name!r} returned something else than a list of Claim: "
            "return one from extract_claims"
        )
    return [claim for claim in cast("Sequence[object]", found) if isinstance(claim, Claim)]


def _measured(facts: Sequence[Claim], matrices: VerdictMatrices) -> Evaluation:
    measurement = measure(matrices)
    return Evaluation(
        metrics={n: v for n, v in measurement.metrics.items() if n in FACT_METRICS},
        undefined={n: why for n, why in measurement.undefined.items() if n in FACT_METRICS},
        ground_truth_claims=tuple(facts),
        matrices=matrices,
    )


def evaluation_of(response: AlignmentResponse) -> Evaluation:
    """Compute the metrics anew from the facts of a recorded response."""
    facts = response.reasoning.evaluated_facts
    # A fact without a text would be no claim; its entailment counts all the same.
    claims = [Claim(text=each.fact.content or "-") for each in facts]
    matrices = matrices_of_labels(ground_truth_vs_response=[each.entailment for each in facts])
    usage = Usage(
        input_tokens=max(0, response.usage.prompt_tokens),
        output_tokens=max(0, response.usage.completion_tokens),
    )
    return _measured(claims, matrices).model_copy(update={"usage": usage})


def response_of(evaluation: Evaluation, *, digits: int | None = None) -> AlignmentResponse:
    """Return the response body of an evaluation.

    Args:
        evaluation: By facts. A metric without a value becomes 0.0, since the API has a number for
            each; a fact that the judge left undecided is not among the facts.
        digits: Digits after the point that metrics are rounded to; None rounds nothing.
    """
    values = {name: evaluation.metrics.get(name, 0.0) for name in Metrics.model_fields}
    if digits is not None:
        values = {name: round(value, digits) for name, value in values.items()}
    facts = zip(evaluation.ground_truth_claims, _labels_of(evaluation), strict=True)
    usage = evaluation.usage
    return AlignmentResponse(
        metrics=Metrics(**values),
        reasoning=Reasoning(
            evaluated_facts=tuple(
                EvaluatedFact(fact=Fact(content=claim.text), entailment=label)
                for claim, label in facts
                if label is not None
            )
        ),
        usage=TokenCounts(
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            total_tokens=usage.input_tokens + usage.output_tokens,
        ),
    )


def _labels_of(evaluation: Evaluation) -> Sequence[Label | None]:
    """What the answer says of each fact; None where the judge left it undecided."""
    matrix = evaluation.ground_truth_vs_response
    return [] if matrix is None else [row[0] for row in matrix.labels]


# --- averages ---


class AlignmentSummary(BaseModel):
    """Point-wise averages: the mean of what each answer has, over the answers that have it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    answers: int

    failed: Mapping[str, int]
    """Why the judge has failed, to the number of answers; they are in no average."""

    means: Mapping[str, Estimate]
    """Metric to its mean over the answers that have a value, with an interval over questions.
    ``alignment`` is the figure to report."""

    undefined: Mapping[str, int]
    """Metric to number of evaluated answers without a value, which are left out of its mean."""

    harmonic_mean_of_means: float | None
    """Harmonic mean of mean correctness and mean completeness: not the mean alignment, and higher
    wherever answers differ. None where either has no mean, or both are 0."""

    facts: Mapping[str, int]
    """``entailed``, ``contradicted``, ``neutral`` and ``undecided`` to number of facts."""

    usage: Usage


def summarise(
    evaluations: Sequence[Evaluation], questions: Sequence[str] | None = None
) -> AlignmentSummary:
    """Average evaluations point by point.

    Args:
        evaluations: One of each answer.
        questions: The question of each answer, shape ``(n_answers,)``; answers to one question go
            together, and are resampled together. None where each stands for itself.
    """
    groups = list(map(str, range(len(evaluations)))) if questions is None else questions
    pairs = list(zip(evaluations, groups, strict=True))
    decided = [(each, group) for each, group in pairs if each.error is None]
    means: dict[str, Estimate] = {}
    for name in FACT_METRICS:
        # Groups and values stay in pairs, since each metric lacks a value for other answers.
        found = [(each.metrics[name], group) for each, group in decided if name in each.metrics]
        estimate = mean_estimate([value for value, _ in found], [group for _, group in found])
        if estimate is not None:
            means[name] = estimate
    harmonic = None
    if {"correctness", "completeness"} <= means.keys():
        left, right = means["correctness"].value, means["completeness"].value
        harmonic = 2 * left * right / (left + right) if left + right else None
    labels = [label for each, _ in decided for label in _labels_of(each)]
    facts = {label.value: labels.count(label) for label in Label}
    return AlignmentSummary(
        answers=len(evaluations),
        failed=Counter(each.error for each in evaluations if each.error is not None),
        means=means,
        undefined={
            name: sum(name not in each.metrics for each, _ in decided) for name in FACT_METRICS
        },
        harmonic_mean_of_means=harmonic,
        facts={**facts, "undecided": labels.count(None)},
        usage=sum((each.usage for each in evaluations), Usage()),
    )


# --- the command ---


def alignment_command(
    file: Annotated[
        Path,
        typer.Argument(
            help="Requests, JSON lines or a list: question, answer, ground_truth_answer; or "
            "records. With --recorded: responses."
        ),
    ],
    judge: JudgeName = None,
    judge_options: JudgeOptions = None,
    recorded: Annotated[
        bool,
        typer.Option(
            "--recorded", help="Compute the metrics of recorded responses anew from their facts."
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="File of response bodies, one JSON line a request, in order."
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="File of results, one JSON line a request. A run goes on with it."),
    ] = None,
    rounded: Annotated[
        bool, typer.Option("--rounded", help="Round metrics to 4 digits, as Pinecone does.")
    ] = False,
    concurrency: Concurrency = CONCURRENCY,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Evaluate answers as Pinecone's Evaluation API does.

    Each fact of the ground truth is entailed, contradicted or left out by the answer. Metrics are
    averaged over the answers. Exits with 1 where the judge failed on some, or where the metrics of
    a recorded response are not those of its facts.
    """
    if recorded and (judge is not None or judge_options or results is not None):
        raise ConfigError("--recorded takes no --judge and no --results: nothing is judged")
    refuse_input(output, [file, results], option="-o")
    deviations: list[str] = []
    if recorded:
        responses = read_responses(file)
        evaluations = [evaluation_of(each) for each in responses]
        summary, groups = summarise(evaluations), "responses"
        deviations = list(_deviations(responses, evaluations))
    else:
        chosen = judge_from(judge, judge_options)
        records = read_requests(file)
        evaluations = asyncio.run(
            aevaluate_alignment(
                records, chosen, results=results, concurrency=concurrency, progress=progress
            )
        )
        summary, groups = summarise(evaluations, [each.query for each in records]), "questions"
    digits = DIGITS if rounded else None
    if output is not None:
        # Of an answer that failed, the body of the API's errors.
        bodies = [
            json.dumps({"message": each.error})
            if each.error is not None
            else response_of(each, digits=digits).model_dump_json()
            for each in evaluations
        ]
        write_private(output, "".join(f"{body}\n" for body in bodies), what="the responses")
    if as_json:
        values = summary.model_dump(mode="json")
        if digits is not None:
            for each in values["means"].values():
                each |= {end: round(each[end], digits) for end in ("value", "low", "high")}
        typer.echo(json.dumps({**values, "deviations": deviations}))
    else:
        typer.echo(visible("\n".join(_lines(summary, groups, deviations, digits or 3))))
    if summary.failed or deviations:
        raise typer.Exit(SOME_FAILED)


def _deviations(
    responses: Sequence[AlignmentResponse], evaluations: Sequence[Evaluation]
) -> Iterator[str]:
    """The responses whose metrics are not those of their facts, at the digits they are given in."""
    for number, (response, found) in enumerate(zip(responses, evaluations, strict=True), start=1):
        for name, value in response.metrics.model_dump().items():
            # Nothing says what the API has for a metric without a value.
            computed = found.metrics.get(name, value)
            # Half a unit of the last digit, and what floating point adds.
            if abs(value - computed) > 0.5 * 10**-DIGITS + 1e-12:
                yield f"row {number}: {name} is {value:g}, but its facts give {computed:.4f}"


def _lines(
    summary: AlignmentSummary, groups: str, deviations: Sequence[str], digits: int
) -> Iterator[str]:
    failed = sum(summary.failed.values())
    yield f"{summary.answers - failed} of {summary.answers} answers evaluated"
    for name in FACT_METRICS:
        mean, undefined = summary.means.get(name), summary.undefined[name]
        value = interval(mean, digits=digits).replace(" [", "  [")
        over = f"  over {mean.n:,}" if mean else ""
        absent = f"; undefined for {undefined:,}" if undefined else ""
        yield f"  {name:<16}{value}{over}{absent}"
    yield f"  facts           {', '.join(f'{n:,} {label}' for label, n in summary.facts.items())}"
    yield f"Means are point-wise: of each answer's own metric, with 95 % intervals over {groups}."
    if summary.harmonic_mean_of_means is not None:
        yield (
            "For comparison, the harmonic mean of mean correctness and mean completeness is "
            f"{summary.harmonic_mean_of_means:.{digits}f}; it is not the mean alignment."
        )
    yield from (f"failed: {reason} ({n})" for reason, n in summary.failed.items())
    yield from (f"deviation: {each}" for each in deviations)
