"""RAGChecker's results as a file to write, which ``ragchecker-cli`` reads, and goes on with.

The file is one JSON value, so it is replaced as a whole: as a checkpoint every half minute, and at
the end. Records since the last time stand in a file of results beside it, which is removed when the
JSON is complete. A process that is killed loses nothing.

A claim is written as three texts, since ragchecker's joint check reads the first three of each: as
subject, predicate and object if it came so, else as the claim and two empty texts. A matrix with an
undecided verdict is written as null, which means "still to be checked" there.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, TextIO

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError, FileError
from claimspan.evaluation.result import Evaluation
from claimspan.files.names import CHUNK_NAMES, Columns
from claimspan.files.private import replaced_private
from claimspan.files.raw_rows import SkippedRow
from claimspan.files.record_files import RecordFile
from claimspan.files.record_rows import InputRow, Recorded, RecordedClaim
from claimspan.metrics.compute import measure
from claimspan.records import RagRecord
from claimspan.results.result_file import ResultFile
from claimspan.results.rows import Mean, ResultRow
from claimspan.text.shapes import is_list, is_mapping
from claimspan.verdicts import Label, VerdictMatrix

__all__ = ["GROUPS", "RAGCHECKER_METRICS", "RagResult", "RagResultsFile", "per_cent"]

GROUPS: Final[Mapping[str, tuple[str, ...]]] = {
    "overall_metrics": ("precision", "recall", "f1"),
    "retriever_metrics": ("claim_recall", "context_precision"),
    "generator_metrics": (
        "context_utilization",
        "noise_sensitivity_in_relevant",
        "noise_sensitivity_in_irrelevant",
        "hallucination",
        "self_knowledge",
        "faithfulness",
    ),
}

RAGCHECKER_METRICS: Final = tuple(name for group in GROUPS.values() for name in group)

CHECKPOINT_SECONDS: Final = 30.0

SHARE: Final = 20
"""Writing may take one part in this many of the time: a file of 1 GB takes a while."""

_LABELS: Final[Mapping[Label, str]] = {
    Label.ENTAILED: "Entailment",
    Label.NEUTRAL: "Neutral",
    Label.CONTRADICTED: "Contradiction",
}
"""Label to RAGChecker's spelling, which its formulas compare letter by letter."""

_NAMED: Final = 5

_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})
"""Values that are as good as absent: nothing is lost with them. 0 and false are none of these."""

_Claims = Sequence[Sequence[str]] | None
_Column = Sequence[str] | None
_Table = Sequence[Sequence[str]] | None


class RagResult(BaseModel):
    """A record with its evaluation, with the fields and spellings of ragchecker 0.1.9."""

    model_config = ConfigDict(frozen=True)

    query_id: str | None
    query: str
    gt_answer: str
    response: str
    retrieved_context: Sequence[Mapping[str, str]]
    response_claims: _Claims
    gt_answer_claims: _Claims
    answer2response: _Column
    response2answer: _Column
    retrieved2response: _Table
    retrieved2answer: _Table
    metrics: Mapping[str, float]

    @classmethod
    def of(cls, record: RagRecord, recorded: Recorded, evaluation: Evaluation | None) -> RagResult:
        """A record as RAGChecker has it: what its file held, and what an evaluation adds."""
        whole = recorded
        if evaluation is not None and evaluation.error is None:
            whole = recorded.over(_found(evaluation))
        return cls(
            query_id=record.id,
            query=record.query,
            gt_answer=record.ground_truth or "",
            response=record.response,
            retrieved_context=[{"doc_id": each.id, "text": each.text} for each in record.chunks],
            response_claims=_triplets(whole.response_claims),
            gt_answer_claims=_triplets(whole.gt_answer_claims),
            answer2response=_spelled(whole.answer2response),
            response2answer=_spelled(whole.response2answer),
            retrieved2response=_table(whole.retrieved2response),
            retrieved2answer=_table(whole.retrieved2answer),
            metrics=whole.metrics,
        )


def _found(evaluation: Evaluation) -> Recorded:
    """The findings of an evaluation, with 0.0 for a metric without a value as ragchecker has."""
    # Whatever --undefined says: ragchecker has no value for "undefined", and computes the means
    # over all records.
    metrics = measure(evaluation.matrices, undefined="zero").metrics
    has_truth = evaluation.ground_truth_vs_response is not None
    truths = evaluation.ground_truth_claims if has_truth else None
    return Recorded(
        response_claims=tuple(claim.text for claim in evaluation.response_claims),
        gt_answer_claims=None if truths is None else tuple(claim.text for claim in truths),
        answer2response=_column(evaluation.response_vs_ground_truth),
        response2answer=_column(evaluation.ground_truth_vs_response),
        retrieved2response=_rows(evaluation.response_vs_chunks),
        retrieved2answer=_rows(evaluation.ground_truth_vs_chunks),
        metrics={name: metrics[name] for name in RAGCHECKER_METRICS if name in metrics},
    )


def _rows(matrix: VerdictMatrix | None) -> tuple[tuple[Label | None, ...], ...] | None:
    if matrix is None:
        return None
    # The format has no place for what was not seen: of an undecided claim nothing is written.
    pairs = zip(matrix.labels, matrix.merged, strict=True)
    return tuple(tuple(row) if label else (None,) * len(row) for row, label in pairs)


def _column(matrix: VerdictMatrix | None) -> tuple[Label | None, ...] | None:
    return None if matrix is None else tuple(row[0] for row in matrix.labels)


def _triplets(claims: Sequence[RecordedClaim] | None) -> _Claims:
    if claims is None:
        return None
    parts = ([claim] if isinstance(claim, str) else list(claim) for claim in claims)
    # Of a claim that is one text the joint check of ragchecker would read three letters.
    return [[*each, "", ""][: max(3, len(each))] for each in parts]


def _spelled(labels: Sequence[Label | None] | None) -> _Column:
    spelled = [_LABELS[label] for label in labels or () if label is not None]
    # One label that is missing would move all behind it to other claims, so the whole column waits.
    return None if labels is None or len(spelled) < len(labels) else spelled


def _table(rows: Sequence[Sequence[Label | None]] | None) -> _Table:
    spelled = [row for row in map(_spelled, rows or ()) if row is not None]
    return None if rows is None or len(spelled) < len(rows) else spelled


class RagResultsFile(ResultFile):
    """A file of RAGChecker's results, beside a file of results that grows line by line."""

    def __init__(self, path: Path, records: RecordFile) -> None:
        """Find the finished records of the input; no file is changed yet.

        Raises:
            ConfigError: The file holds something else than RAGChecker's results, or has fields that
                these have no place for.
        """
        super().__init__(path.with_name(f"{path.name}.journal.jsonl"))
        self._whole = path
        self._records = records
        self._prior = _prior(path)
        self._due = time.monotonic() + CHECKPOINT_SECONDS

    def recorded(self, row: InputRow) -> Recorded:
        """A record's evaluation in input and output; the output counts first."""
        prior = self._prior.get(_identity(row.record)) if self._prior else None
        return row.recorded if prior is None else prior.over(row.recorded)

    def check(self, n_done: int) -> None:
        """As for any file of results."""
        # Before anything is written: a record that the input lacks would be gone afterwards.
        if self._prior:
            found = {_identity(row.record) for row in self._records.records()}
            if not self._prior.keys() <= found:
                raise self.of_another_input()
        super().check(n_done)

    def add(self, row: ResultRow) -> None:
        """Append a line, and write the whole if the last time is long enough ago."""
        super().add(row)
        started = time.monotonic()
        if started < self._due:
            return
        self._write_whole(is_final=False)
        now = time.monotonic()
        # A file of 1,000 MB takes seconds to write, so the pause grows with it.
        self._due = now + max(CHECKPOINT_SECONDS, SHARE * (now - started))

    def close(self, *, is_final: bool = True) -> None:
        """Write the whole for the last time; with the means, and no lines, if it is final."""
        super().close()
        # The lines are removed only after this: until the new file is in its place, they are the
        # only copy.
        self._write_whole(is_final=is_final)
        if is_final:
            self.path.unlink(missing_ok=True)

    def _write_whole(self, *, is_final: bool) -> None:
        with replaced_private(self._whole, what="the results") as file:
            file.write('{"results": [\n')
            means = self._write_results(file)
            # ragchecker writes no means into its checkpoints either.
            groups = {
                group: {n: per_cent(means[n]) for n in names if n in means and is_final}
                for group, names in GROUPS.items()
            }
            file.write(f'\n], "metrics": {json.dumps(groups)}}}\n')

    def _write_results(self, file: TextIO) -> Mapping[str, Mean]:
        means: dict[str, Mean] = {}
        separator = ""
        # In the order of the input, which the lines do not have: records end in any order.
        for row in self._records.records():
            found = self.row(row.index)
            evaluation = None if found is None else found.evaluation
            result = RagResult.of(row.record, self.recorded(row), evaluation)
            for name, value in result.metrics.items():
                means.setdefault(name, Mean()).add(value)
            file.write(separator + result.model_dump_json())
            separator = ",\n"
        return means


def per_cent(mean: Mean) -> float:
    """Return a mean in per cent with one decimal, rounded as numpy does.

    numpy multiplies by 10 and rounds that; Python's ``round(x, 1)`` differs at ties.
    """
    return round(mean.mean * 100 * 10) / 10


def _prior(path: Path) -> dict[str, Recorded]:
    if not path.exists():
        return {}
    no_results = ConfigError(
        f"{path} holds something else than RAGChecker's results: give another path with -o, or "
        "--format jsonl to go on with JSON lines"
    )
    try:
        file = RecordFile(path)
    except FileError:
        raise no_results from None
    if file.document is None:
        if any(True for _ in file.rows()):
            raise no_results
        return {}
    # A file that holds more than this format has a place for must not be replaced.
    placeless = map(_without_a_place, file.document.values)
    if lost := {*file.document.others, *chain.from_iterable(placeless)}:
        names = ", ".join(sorted(lost)[:_NAMED])
        raise ConfigError(
            f"{path} has fields that RAGChecker's results have no place for ({names}), and would "
            "lose them: give another path with -o"
        )
    prior: dict[str, Recorded] = {}
    for row in file.rows():
        if isinstance(row, SkippedRow):
            raise no_results
        if isinstance(row, InputRow):
            prior[_identity(row.record)] = row.recorded
    return prior


def _without_a_place(row: object) -> Iterator[str]:
    if not is_mapping(row):
        return
    fields = {str(name): value for name, value in row.items()}
    read = Columns().read(fields)
    # Of two names of one field only one is read, and the other would be gone.
    placed = {*RagResult.model_fields, *(read[name] for name in read if name != "metadata")}
    yield from (name for name in fields if name not in placed and fields[name] not in _EMPTY)
    chunks = fields.get(read.get("chunks", ""))
    for chunk in chunks if is_list(chunks) else ():
        parts = chunk if is_mapping(chunk) else dict[object, object]()
        held = {next((n for n in CHUNK_NAMES[p] if n in parts), "") for p in ("id", "text")}
        others = parts.keys() - held
        yield from (f"{read['chunks']}.{part}" for part in others if parts[part] not in _EMPTY)


def _identity(record: RagRecord) -> str:
    """What this format keeps of a record: it has no scores and no metadata."""
    texts = [record.id, record.query, record.response, record.ground_truth or ""]
    chunks = [chunk.text for chunk in record.chunks]
    return hashlib.sha256(json.dumps([texts, chunks]).encode()).hexdigest()[:32]
