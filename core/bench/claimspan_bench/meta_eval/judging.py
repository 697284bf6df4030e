"""Has a judge score both answers of every pair by precision, recall and F1, as RAGChecker does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from claimspan.concurrency import SingleFlight
from claimspan.errors import JudgeError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.evaluation.result import Evaluation
from claimspan.judges.protocol import Cell, Judge, SparseJudge
from claimspan.records import RagRecord
from claimspan.verdicts import Claim, VerdictMatrix
from claimspan_bench.meta_eval.agreement import Differences
from claimspan_bench.meta_eval.pairs import Pair
from claimspan_bench.resumed import evaluate_resumed

__all__ = ["METRIC_OF_ASPECT", "differences_of", "judge_pairs", "records_of", "sharing_claims"]

METRIC_OF_ASPECT: Final = {"correctness": "precision", "completeness": "recall", "overall": "f1"}
"""Aspect to the metric that stands for it in RAGChecker's data."""


def records_of(pairs: Sequence[Pair]) -> list[RagRecord]:
    """Return two records a pair, one for each answer; without chunks, which the data has not."""
    return [
        RagRecord(
            id=f"{pair.id}/{place}",
            query=pair.query,
            response=answer,
            ground_truth=pair.ground_truth,
            chunks=(),
        )
        for pair in pairs
        for place, answer in enumerate(pair.answers, start=1)
    ]


async def judge_pairs(
    pairs: Sequence[Pair],
    judge: Judge,
    *,
    results: Path | None = None,
    concurrency: int = 4,
    progress: bool | None = None,
) -> Differences:
    """Score both answers of every pair.

    Args:
        pairs: The pairs.
        judge: The judge. It extracts the claims of each ground truth once.
        results: File of results, which a run goes on with; None keeps nothing.
        concurrency: Answers under evaluation at once.
        progress: As in ``evaluate_many``.

    Raises:
        JudgeError: The judge failed on every answer.
        ConfigError: As in ``evaluate_resumed``.
    """
    sharing = sharing_claims(judge)

    async def evaluate_one(record: RagRecord) -> Evaluation:
        return await aevaluate(record, judge=sharing, metrics="all")

    evaluations = await evaluate_resumed(
        records_of(pairs),
        evaluate_one,
        judge=judge,
        results=results,
        concurrency=concurrency,
        progress=progress,
    )
    found = differences_of(evaluations)
    if sum(found.failed.values()) == len(evaluations):
        raise JudgeError(f"judge {judge.name!r} failed on every answer: {next(iter(found.failed))}")
    return found


def differences_of(evaluations: Sequence[Evaluation]) -> Differences:
    """Return the scores of each second answer minus those of the first.

    Args:
        evaluations: Of ``records_of``, two a pair. An undefined metric, of an answer without
            claims, counts as 0.0 as in RAGChecker.
    """
    by_aspect: dict[str, list[float | None]] = {}
    undefined: dict[str, int] = {}
    for aspect, metric in METRIC_OF_ASPECT.items():
        values = [_value(each, metric) for each in evaluations]
        by_aspect[aspect] = [
            None if first is None or second is None else second - first
            for first, second in zip(values[::2], values[1::2], strict=True)
        ]
        undefined[aspect] = sum(
            metric not in each.metrics for each in evaluations if each.error is None
        )
    errors = Counter(each.error for each in evaluations if each.error is not None)
    return Differences(by_aspect, undefined, dict(errors))


def _value(evaluation: Evaluation, metric: str) -> float | None:
    return None if evaluation.error is not None else evaluation.metrics.get(metric, 0.0)


def sharing_claims(judge: Judge) -> Judge:
    """Return a judge that extracts the claims of a text once, whoever asks for them."""
    # A judge without ``check_cells`` must not seem to have it: it would be called.
    return _SparseSharing(judge) if isinstance(judge, SparseJudge) else _Sharing(judge)


class _Sharing:
    """A judge that remembers the claims of the texts that it has read."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._known: dict[str, list[Claim]] = {}
        self._flights = SingleFlight[list[Claim]]()

    @property
    def name(self) -> str:
        return self._judge.name

    @property
    def version(self) -> str:
        return str(getattr(self._judge, "version", ""))

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        # With the question, since a judge may read a text by it.
        key = f"{question}\0{text}"
        if key not in self._known:
            self._known[key] = await self._flights.run(
                key, lambda: self._judge.extract_claims(text, question=question)
            )
        return self._known[key]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        return await self._judge.check(claims, references, question=question)


class _SparseSharing(_Sharing):
    """As ``_Sharing``, for a judge that answers several matrices in one call."""

    def __init__(self, judge: SparseJudge) -> None:
        super().__init__(judge)
        self._sparse = judge

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        return await self._sparse.check_cells(claims, references, cells, question=question)
