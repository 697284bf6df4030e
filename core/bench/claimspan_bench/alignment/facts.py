"""Evaluates an answer by the facts of its ground truth alone, as Pinecone's Evaluation API does.

Two questions to the judge: which facts the ground truth states, and which of them the answer
entails or contradicts. What the answer says beyond them is not looked at.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Final, cast

from claimspan.cost.usage import Usage, metered
from claimspan.errors import JudgeError
from claimspan.evaluation.evaluate import EVALUATION_SECONDS, MAX_CALLS, MAX_CLAIMS, MAX_TOKENS
from claimspan.evaluation.matrices import guarded, judge_matrices
from claimspan.evaluation.result import Evaluation
from claimspan.judges.protocol import Judge
from claimspan.metrics.compute import matrices_of_labels, measure
from claimspan.records import RagRecord
from claimspan.verdicts import Claim, Label, VerdictMatrices
from claimspan_bench.alignment.bodies import (
    AlignmentResponse,
    EvaluatedFact,
    Fact,
    Metrics,
    Reasoning,
    TokenCounts,
)

__all__ = [
    "DIGITS",
    "FACT_METRICS",
    "evaluate_facts",
    "evaluation_of",
    "labels_of",
    "response_of",
]

FACT_METRICS: Final = ("correctness", "completeness", "alignment", "soft_alignment")
"""The metrics that rest on the facts of the ground truth alone."""

DIGITS: Final = 4
"""Digits after the point in the example of Pinecone's documentation: 0.3333."""


async def evaluate_facts(record: RagRecord, *, judge: Judge) -> Evaluation:
    """Evaluate the answer of a record by the facts of its ground truth.

    Args:
        record: The record; its chunks are not looked at.
        judge: The judge. The first 50 facts are judged, the others counted in ``claims_dropped``.

    Returns:
        An evaluation with the metrics of ``FACT_METRICS`` as far as they are defined.

    Raises:
        JudgeError: The judge failed, or took longer than 300 seconds.
    """
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
            "judge_version": str(getattr(judge, "version", "")),
            "usage": meter.usage + Usage(seconds=time.perf_counter() - started),
        }
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
        evaluation: Of ``evaluate_facts``. A metric without a value becomes 0.0, since the API has
            a number for each; a fact that the judge left undecided is not among the facts.
        digits: Digits after the point that metrics are rounded to; None rounds nothing.
    """
    # The fourth, ``soft_alignment``, is ours: the API's body has no place for it.
    values = [evaluation.metrics.get(name, 0.0) for name in FACT_METRICS[:3]]
    if digits is not None:
        values = [round(value, digits) for value in values]
    correctness, completeness, alignment = values
    usage = evaluation.usage
    return AlignmentResponse(
        metrics=Metrics(correctness=correctness, completeness=completeness, alignment=alignment),
        reasoning=Reasoning(
            evaluated_facts=tuple(
                EvaluatedFact(fact=Fact(content=claim.text), entailment=label)
                for claim, label in zip(
                    evaluation.ground_truth_claims, labels_of(evaluation), strict=True
                )
                if label is not None
            )
        ),
        usage=TokenCounts(
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            total_tokens=usage.input_tokens + usage.output_tokens,
        ),
    )


def labels_of(evaluation: Evaluation) -> Sequence[Label | None]:
    """Return what the answer says of each fact; None where the judge left it undecided."""
    matrix = evaluation.ground_truth_vs_response
    return [] if matrix is None else [row[0] for row in matrix.labels]


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
    claims = cast("Sequence[object]", found)
    return [claim for claim in claims if isinstance(claim, Claim)]


def _measured(facts: Sequence[Claim], matrices: VerdictMatrices) -> Evaluation:
    measurement = measure(matrices)
    return Evaluation(
        metrics={n: v for n, v in measurement.metrics.items() if n in FACT_METRICS},
        undefined={n: why for n, why in measurement.undefined.items() if n in FACT_METRICS},
        ground_truth_claims=tuple(facts),
        matrices=matrices,
    )
