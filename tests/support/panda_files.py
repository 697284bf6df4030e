"""Writes files of PandaChat-RAG: submissions over the Slovenian sample of the example."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest
from pydantic import JsonValue

from claimspan_bench.pandachat import Dataset, read_dataset

__all__ = ["EXAMPLE", "SAMPLE", "Row", "sample", "shared_pandachat", "submit"]

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "slovenian_retrieval"
SAMPLE: Final = EXAMPLE / "sample-dataset.json"

Row = dict[str, JsonValue]


def sample() -> Dataset:
    """Thirteen questions about ten documents."""
    return read_dataset(SAMPLE)


def shared_pandachat() -> Path:
    """The benchmark's own files; skips the test where they are absent."""
    folder = Path(__file__).parents[3] / "shared" / "data" / "pandachat"
    if not folder.is_dir():
        pytest.skip("the shared data is absent: ../shared/data/pandachat")
    return folder


def submit(
    path: Path,
    system: str,
    sources: Callable[[str], Sequence[str]] | None = None,
    *,
    missed: Sequence[int] = (),
    change: Callable[[list[Row]], object] | None = None,
    fields: Mapping[str, JsonValue] | None = None,
) -> Path:
    """Write a submission.

    Args:
        path: The file.
        system: Name of the system.
        sources: Takes the right document, and returns the sources; None gives it and another one.
        missed: Places of the questions, from 0, that the system misses.
        change: Changes the rows in place, for what is odd.
        fields: Fields of the submission to put in place of the usual ones.
    """
    rows: list[Row] = []
    for place, question in enumerate(sample().questions):
        right = question.document
        other = "sl.1" if right != "sl.1" else "sl.2"
        found = [right, other] if sources is None else list(sources(right))
        rows.append({**question.row, "sources": [other, other] if place in missed else [*found]})
    if change is not None:
        change(rows)
    content: dict[str, JsonValue] = {
        "eval_scenario": "aqa-sl",
        "system": system,
        "time_per_question": 0.25,
        "df": [*rows],
        **(fields or {}),
    }
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path
