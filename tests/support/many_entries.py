"""Entries of a report in any number, all different, with everything that an entry may have."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

from claimspan import Chunk, Claim, Evaluation, RagRecord, Verdict, VerdictMatrix
from claimspan.metrics import measure
from claimspan.report import ReportEntry
from claimspan.report.evaluated import entry_of_evaluation
from claimspan.results import ResultRow
from claimspan.verdicts import Label, VerdictMatrices

__all__ = ["evaluated", "many_entries", "many_rows"]

_TOPICS: Final = ("exceptions", "imports", "generators", "decorators", "slices")
_LEVELS: Final = ("easy", "medium", "hard")
_STARTED: Final = datetime(2026, 3, 1, 8, tzinfo=UTC)


def many_entries(n: int, *, skill: int = 0) -> list[ReportEntry]:
    """Return ``n`` entries with times, as a trace file has them.

    Args:
        n: Number of entries.
        skill: Of the system: the more, the more claims are entailed.
    """
    found = (entry_of_evaluation(*evaluated(i, skill=skill)) for i in range(n))
    return [
        entry.model_copy(
            update={
                "trace_id": f"{i:032x}",
                "started": _STARTED + timedelta(seconds=30 * i),
                "seconds": 0.5 + i % 7,
            }
        )
        for i, entry in enumerate(found)
    ]


def many_rows(n: int, *, skill: int = 0) -> Iterator[ResultRow]:
    """Yield the lines of a file of results."""
    for i in range(n):
        yield ResultRow.of(i, *evaluated(i, skill=skill))


def evaluated(i: int, *, skill: int = 0) -> tuple[RagRecord, Evaluation]:
    """Return record number ``i`` of a system with its evaluation."""
    topic, level = _TOPICS[i % len(_TOPICS)], _LEVELS[i % len(_LEVELS)]
    record = RagRecord(
        id=f"q{i}",
        query=f"Question {i}: what do {topic} promise when the caller is at step {i * 7}?",
        response=_text(i, topic, "response", 3),
        ground_truth=_text(i, topic, "truth", 3),
        chunks=tuple(
            Chunk(
                id=f"{topic}-{i}-{c}",
                text=f"{_text(i, topic, 'response', 2 + c)} {_text(i, topic, 'truth', 3)} "
                + f"Paragraph {c} of the manual goes on about {topic} at length. " * 3,
                score=round(1 / (c + 1), 3),
                metadata={"page": c},
            )
            for c in range(4)
        ),
        metadata={"topic": topic, "level": level, "number": i},
    )
    matrices = VerdictMatrices(
        response_vs_chunks=_matrix(f"a{skill} {i}", 3, 4, 2 + skill),
        response_vs_ground_truth=_matrix(f"b{skill} {i}", 3, 1, 6 + 3 * skill),
        ground_truth_vs_response=_matrix(f"c{skill} {i}", 3, 1, 6 + 3 * skill),
        ground_truth_vs_chunks=_matrix(f"d{skill} {i}", 3, 4, 2 + skill),
    )
    measured = measure(matrices)
    return record, Evaluation(
        metrics=measured.metrics,
        undefined=measured.undefined,
        response_claims=_claims(i, topic, "response"),
        ground_truth_claims=_claims(i, topic, "truth"),
        matrices=matrices,
        judge_name="scripted",
    )


def _sentence(i: int, topic: str, side: str, n: int) -> str:
    return f"The {side} says that {topic} number {i} keep promise {n} of {i % 11 + n}."


def _text(i: int, topic: str, side: str, n: int) -> str:
    return " ".join(_sentence(i, topic, side, each) for each in range(n))


def _claims(i: int, topic: str, side: str) -> tuple[Claim, ...]:
    return tuple(Claim(text=_sentence(i, topic, side, n)) for n in range(3))


def _matrix(seed: str, n_claims: int, n_references: int, entailed: int) -> VerdictMatrix:
    """Verdicts that look random, and are the same every time.

    Args:
        seed: Another one gives other verdicts.
        n_claims: Number of rows.
        n_references: Number of columns.
        entailed: Weight of ``entailed``, where ``neutral`` has 6 and ``contradicted`` has 1.
    """
    drawn = Random(seed)
    labels = drawn.choices(list(Label), (entailed, 6, 1), k=n_claims * n_references)
    cells = [Verdict(label=label) for label in labels]
    rows = [cells[row * n_references : (row + 1) * n_references] for row in range(n_claims)]
    return VerdictMatrix.of(rows, n_references)
