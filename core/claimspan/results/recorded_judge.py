"""Evaluates records with the claims and labels of a file: a judge is asked only for the rest."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, product
from typing import Final, NamedTuple

from claimspan.errors import JudgeError
from claimspan.evaluation.evaluate import MAX_CLAIMS, aevaluate_many
from claimspan.evaluation.matrices import ground_truth_of
from claimspan.evaluation.result import Evaluation
from claimspan.evaluation.selection import Selection
from claimspan.files.record_rows import Recorded
from claimspan.judges.protocol import Cell, Judge, SparseJudge, matrix_of_cells
from claimspan.metrics.compute import Undefined
from claimspan.records import RagRecord
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = ["RECORDED", "evaluate_recorded", "is_complete"]

RECORDED: Final = "recorded"
"""Name of the judge if a file has given the verdicts."""

_Labels = Sequence[Sequence[Label | None]]

_VERDICTS: Final = {label: Verdict(label=label) for label in Label}
"""One verdict for each label: a file has thousands of cells."""


class _Area(NamedTuple):
    """One of the four matrices, as a part of all claims against all texts."""

    rows: range
    columns: range
    labels: _Labels | None
    """The recorded value; None if the judge has to be asked."""


def is_complete(record: RagRecord, recorded: Recorded) -> bool:
    """Whether the recorded values leave nothing to ask a judge for."""
    known = dict(recorded)
    wanted = ["response_claims"] + ["retrieved2response"] * bool(record.chunks)
    if ground_truth_of(record) is not None:
        wanted += ["gt_answer_claims", "answer2response", "response2answer"]
        wanted += ["retrieved2answer"] * bool(record.chunks)
    return all(known[name] is not None for name in wanted)


async def evaluate_recorded(
    record: RagRecord,
    recorded: Recorded,
    judge: Judge | None,
    undefined: Undefined,
    selection: Selection,
) -> Evaluation:
    """Evaluate a record, and take its recorded values as they are.

    A judge is asked for the rest, and is None only if nothing is left to ask for. If it fails, the
    ``error`` of the evaluation says why.
    """
    # Straight to the judge, so that its own name, batches and sparse checks stay as they are.
    asked = judge
    if asked is None or not recorded.is_empty:
        asked = _RecordedJudge(record, recorded, judge)
    sizes = (len(recorded.response_claims or ()), len(recorded.gt_answer_claims or ()))
    found = await aevaluate_many(
        [record],
        judge=asked,
        metrics=selection,
        undefined=undefined,
        # Claims that are recorded have their labels, and cost nothing.
        max_claims=max(MAX_CLAIMS, *sizes),
        progress=False,
    )
    return found[0]


class _RecordedJudge(SparseJudge):
    """Answers from a file for one record, and asks a judge for the rest.

    Labels without their claims do not count: claims that are extracted anew may be others, in
    another order.
    """

    is_recorded: Final = True
    """The verdicts are others': an evaluation takes them as they are, coherent or not."""

    def __init__(self, record: RagRecord, recorded: Recorded, judge: Judge | None) -> None:
        self._judge = judge
        self._recorded = recorded
        self._n_chunks = len(record.chunks)
        # An evaluation extracts from the response first, and not at all from a blank text.
        # The protocol tells a judge no more than the text, and both texts may be equal. So the
        # order of the questions has to tell which one is meant.
        texts = {"response": record.response, "ground truth": ground_truth_of(record) or ""}
        self._texts = deque(name for name, text in texts.items() if text.strip())
        self._n_response = 0
        self._has_asked = False
        self._has_answered = False

    @property
    def name(self) -> str:
        """``recorded``, the judge's name, or both, by who has given the verdicts."""
        name = "" if self._judge is None else self._judge.name
        if not self._has_asked:
            return RECORDED
        return f"{name}+{RECORDED}" if self._has_answered else name

    @property
    def version(self) -> str:
        return str(getattr(self._judge, "version", "")) if self._has_asked else ""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        is_response = self._texts.popleft() == "response"
        known = self._recorded.response() if is_response else self._recorded.ground_truth()
        if known is None:
            known = await self._asked().extract_claims(text, question=question)
        else:
            self._has_answered = True
        if is_response:
            self._n_response = len(known)
        return known

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        found: dict[Cell, Verdict | None] = {}
        asked = frozenset(cells)
        for area in self._areas(len(claims), len(references)):
            if not area.rows or not area.columns or (area.rows[0], area.columns[0]) not in asked:
                continue
            if area.labels is None:
                asked_of = [claims[i] for i in area.rows]
                texts = [references[j] for j in area.columns]
                answer = await self._asked().check(asked_of, texts, question=question)
                verdicts = list(answer.verdicts())
            else:
                self._has_answered = True
                labels = chain.from_iterable(area.labels)
                verdicts = [None if each is None else _VERDICTS[each] for each in labels]
            found |= zip(product(area.rows, area.columns), verdicts, strict=True)
        return matrix_of_cells(found, len(claims), len(references))

    def _areas(self, n_claims: int, n_references: int) -> Iterator[_Area]:
        """The matrices; the texts are all chunks, then the ground truth and the response."""
        known = self._recorded
        response, chunks = range(self._n_response), range(self._n_chunks)
        is_known = known.response_claims is not None
        yield _Area(response, chunks, known.retrieved2response if is_known else None)
        if n_references == self._n_chunks:  # there is no ground truth
            return
        truth = range(self._n_response, n_claims)
        of_truth, of_response = (range(self._n_chunks + i, self._n_chunks + i + 1) for i in (0, 1))
        yield _Area(response, of_truth, _column(known.answer2response) if is_known else None)
        is_known = known.gt_answer_claims is not None
        yield _Area(truth, of_response, _column(known.response2answer) if is_known else None)
        yield _Area(truth, chunks, known.retrieved2answer if is_known else None)

    def _asked(self) -> Judge:
        self._has_asked = True
        if self._judge is None:
            raise JudgeError("claims or labels are missing, and there is no judge to ask")
        return self._judge


def _column(labels: Sequence[Label | None] | None) -> _Labels | None:
    return None if labels is None else [[label] for label in labels]
