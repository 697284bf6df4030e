"""Makes entries of a report from evaluations, and reads them from files of results.

These are the JSON lines of ``claimspan evaluate -o``, or RAGChecker's results in one JSON value.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Final

from claimspan.errors import FileError, NoRecordsError
from claimspan.evaluation.claims import reported_claims
from claimspan.evaluation.evaluate import run_to_end
from claimspan.evaluation.judgement import judgement_of
from claimspan.evaluation.result import Evaluation
from claimspan.evaluation.selection import Selection
from claimspan.files.jsonl import unreadable
from claimspan.files.raw_rows import SkippedRow
from claimspan.files.record_files import RecordFile
from claimspan.files.record_rows import InputRow
from claimspan.records import RagRecord
from claimspan.report.entries import ReportEntry
from claimspan.results.recorded_judge import evaluate_recorded
from claimspan.results.rows import WANTED, ResultRow, read_lines
from claimspan.results.rows import holds_results as has_lines_of_results

__all__ = ["entry_of_evaluation", "holds_results", "read_results"]

_LOOKED_AT: Final = 5
"""Records that tell whether a file holds results: some may not be evaluated yet."""


def entry_of_evaluation(record: RagRecord, evaluation: Evaluation) -> ReportEntry:
    """Return the entry of a record that was evaluated from a file."""
    response_claims, ground_truth_claims = reported_claims(record.chunks, evaluation)
    return ReportEntry(
        record_id=record.id,
        query=record.query,
        response=record.response,
        # A blank one was not judged against, and the page would show an empty text for it.
        ground_truth=record.ground_truth or None,
        chunks=record.chunks,
        response_claims=response_claims,
        ground_truth_claims=ground_truth_claims,
        claims_undecided=evaluation.undecided_claims,
        scores=dict(evaluation.metrics),
        undefined=dict(evaluation.undefined),
        lower_is_better=evaluation.lower_is_better,
        judgement=judgement_of(evaluation, chunk_ids=[chunk.id for chunk in record.chunks]),
        metadata=record.metadata,
        abstained=evaluation.abstained,
        status="evaluated" if evaluation.error is None else "judge_error",
        reason=evaluation.error,
        judge=evaluation.judge_name,
        judge_calls=evaluation.usage.calls,
        cost_usd=evaluation.usage.cost_usd,
    )


def holds_results(path: Path) -> bool:
    """Whether a file holds results rather than traces; False if it cannot be read."""
    try:
        return has_lines_of_results(path) or _is_recorded(path)
    except FileError:
        return False


def read_results(path: Path, *, skip: Callable[[int], None] | None = None) -> list[ReportEntry]:
    """Read the records of a file of results, one line at a time, in the order of the file.

    Of RAGChecker's results the recorded labels and metrics are shown as they are. ``skip`` takes
    the number of each line that is no result, from 1.

    Raises:
        FileError: The file cannot be read, or a line is no result and ``skip`` is None.
        NoRecordsError: No line is a result.
    """
    if _is_recorded(path):
        return run_to_end(lambda: _recorded_entries(path, skip))
    broken: Callable[[int, bool], None] | None = skip and (lambda number, _: skip(number))
    try:
        entries = [
            entry_of_evaluation(row.record, row.evaluation)
            for row in read_lines(path, ResultRow, broken)
        ]
    except OSError as error:
        raise unreadable(path, error, wanted=WANTED) from None
    if not entries:
        raise NoRecordsError(f"{str(path)!r} holds no results: give a {WANTED}")
    return entries


def _is_recorded(path: Path) -> bool:
    """Whether a file is one JSON value with claims, labels or metrics of records."""
    try:
        file = RecordFile(path)
        if file.document is None:
            return False
        return any(not row.recorded.is_empty for row in islice(file.records(), _LOOKED_AT))
    except FileError:
        return False


async def _recorded_entries(path: Path, skip: Callable[[int], None] | None) -> list[ReportEntry]:
    entries: list[ReportEntry] = []
    file = RecordFile(path)
    for row in file.rows():
        if isinstance(row, SkippedRow):
            if skip is None:
                raise file.refusal(row)
            skip(row.place)
        if not isinstance(row, InputRow):
            continue
        if row.recorded.is_empty:
            # Ragchecker has not come to it: no judge failed, and none was asked.
            pending = {"status": "pending", "reason": "not evaluated yet"}
            entry = entry_of_evaluation(row.record, Evaluation())
            entries.append(entry.model_copy(update=pending))
            continue
        found = await evaluate_recorded(row.record, row.recorded, None, "omit", Selection.of("all"))
        # What is recorded may be another version's figures: they are shown, not ours.
        known = row.recorded.metrics
        undefined = {name: why for name, why in found.undefined.items() if name not in known}
        shown = {"metrics": {**found.metrics, **known}, "undefined": undefined}
        entries.append(entry_of_evaluation(row.record, found.model_copy(update=shown)))
    return entries
