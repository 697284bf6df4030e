"""Records that might be labelled, read from trace files and from files of results."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from claimspan.errors import FileError
from claimspan.evaluation.result import Evaluation
from claimspan.files.ground_truth_similarity import normalise
from claimspan.files.jsonl import parse_json_lines, read_text
from claimspan.records import Chunk
from claimspan.report import ReportEntry
from claimspan.results.rows import ResultRow
from claimspan.text.words import FUNCTION_WORDS, tokenize
from claimspan.verdicts import Label, VerdictMatrix
from claimspan_tracing import semconv
from claimspan_tracing.export.otlp_json import read_spans
from claimspan_tracing.export.skipped import Skipped
from claimspan_tracing.export.trace_file import read_trace_file

__all__ = ["Candidate", "read_candidates"]

LOW_IS_BAD: Final = ("faithfulness", "precision", "recall", "claim_recall", "alignment")
"""Metrics of which the lowest says how bad an answer is."""

_WANTED: Final = "trace file, or file of results (claimspan evaluate -o, claimspan run -o)"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One query that might be labelled."""

    query: str
    """The user's question."""

    response: str = ""
    """What the pipeline answered."""

    chunks: tuple[str, ...] = ()
    """The texts that it has read."""

    id: str | None = None
    """The application's own id of the query."""

    trace_id: str | None = None
    """The trace that it belongs to."""

    sample_weight: float | None = None
    """How many records it stands for by the sampler's decision; None where nobody has decided."""

    doubt: float = 0.0
    """Mean doubt of the judge over the claims: 0 sure, 1 undecided or a probability of 0.5."""

    lowest: float | None = None
    """The lowest score; None without any."""

    copies: int = 1
    """Records of the files that ask the same."""

    @property
    def words(self) -> frozenset[str]:
        """The stems of the query's words, by which queries are compared."""
        return frozenset(t.stem for t in tokenize(self.query) if t.stem not in FUNCTION_WORDS)


def read_candidates(paths: Iterable[Path], skipped: Skipped | None = None) -> list[Candidate]:
    """Read the records of files; one that has a ground truth already is left out.

    Records that ask the same are one candidate, the first with scores.

    Args:
        paths: Files of OTLP JSON lines, or of results.
        skipped: Counts what is broken in a trace file; None logs a warning.

    Raises:
        ClaimspanError: A file cannot be read, or holds something else.
    """
    found: dict[str, Candidate] = {}
    for path in paths:
        for candidate in _read(path, skipped):
            # As the ground truths are looked up later: one label serves all that ask the same.
            key = normalise(candidate.query)
            if not key:
                continue
            known = found.get(key)
            if known is None:
                found[key] = candidate
            else:
                better = known.lowest is None and candidate.lowest is not None
                kept = candidate if better else known
                found[key] = replace(kept, copies=known.copies + 1)
    return list(found.values())


def _read(path: Path, skipped: Skipped | None) -> Iterator[Candidate]:
    if _is_trace_file(path):
        facts = _facts(path)
        for entry in read_trace_file(path, skipped=skipped):
            if not entry.ground_truth:
                yield _of_entry(entry, *facts.get(entry.trace_id, (None, None)))
        return
    for number, line in parse_json_lines(read_text(path, wanted=_WANTED), path):
        try:
            row = ResultRow.model_validate(line)
        except ValidationError:
            # Without the cause: a validation error quotes the input, which may be private.
            raise FileError(f"{str(path)!r} line {number} is no result: give a {_WANTED}") from None
        if not row.record.ground_truth:
            yield _of_row(row)


def _is_trace_file(path: Path) -> bool:
    """Whether the first line that can be read holds spans."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as lines:
            for line in lines:
                try:
                    value: object = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                return isinstance(value, dict) and "resourceSpans" in value
    except OSError as error:
        raise FileError(
            f"cannot read {str(path)!r} ({type(error).__name__}): give a {_WANTED}"
        ) from None
    # Torn lines alone: the reader of trace files counts what is broken.
    return True


def _facts(path: Path) -> Mapping[str, tuple[str | None, float | None]]:
    """Trace id to the record's own id and its weight, for which an entry has no room."""
    found: dict[str, tuple[str | None, float | None]] = {}
    for span in read_spans(path, Skipped(path)):
        if semconv.EVALUATION_STATUS in span.attributes:
            id_ = span.attributes.get(semconv.RECORD_ID)
            weight = span.attributes.get(semconv.SAMPLE_WEIGHT)
            found[span.key[0]] = (
                None if id_ is None else str(id_),
                float(weight) if isinstance(weight, int | float) else None,
            )
    return found


def _of_entry(entry: ReportEntry, id_: str | None, weight: float | None) -> Candidate:
    # Spans have labels alone; an undecided one has none.
    labels = [claim.label for claim in entry.response_claims]
    return Candidate(
        query=entry.query,
        response=entry.response,
        chunks=_texts(entry.chunks),
        id=id_,
        trace_id=entry.trace_id,
        sample_weight=weight,
        doubt=_mean([float(label is None) for label in labels]),
        lowest=_lowest(entry.scores),
    )


def _of_row(row: ResultRow) -> Candidate:
    trace_id = row.record.metadata.get("trace_id")
    return Candidate(
        query=row.record.query,
        response=row.record.response,
        chunks=_texts(row.record.chunks),
        id=row.id,
        trace_id=trace_id if isinstance(trace_id, str) else None,
        doubt=_doubt_of(row.evaluation),
        lowest=_lowest(row.metrics),
    )


def _doubt_of(evaluation: Evaluation) -> float:
    matrix = evaluation.response_vs_chunks
    return (
        0.0 if matrix is None else _mean([_row_doubt(matrix, n) for n in range(len(matrix.labels))])
    )


def _row_doubt(matrix: VerdictMatrix, claim: int) -> float:
    """The doubt about one claim: that of the chunk which supports it most."""
    verdicts = matrix.rows[claim]
    entailed = [v.entailed for v in verdicts if v is not None and v.entailed is not None]
    if entailed:
        # The best chunk decides a claim, so its distance from 0.5 is the doubt: 1 at 0.5, 0 at 0
        # and 1.
        return 1.0 - 2.0 * abs(max(entailed) - 0.5)
    labels = matrix.labels[claim]
    return float(Label.ENTAILED not in labels and None in labels)


def _lowest(scores: Mapping[str, float]) -> float | None:
    return min((scores[name] for name in LOW_IS_BAD if name in scores), default=None)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _texts(chunks: Sequence[Chunk]) -> tuple[str, ...]:
    return tuple(chunk.text for chunk in chunks)
