"""What systems retrieved, in the submission files of PandaChat-RAG."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from pydantic import JsonValue

from claimspan.errors import FileError
from claimspan_bench.pandachat.dataset import parse_json

__all__ = [
    "SCENARIO",
    "Sources",
    "Submission",
    "find_submissions",
    "is_submission",
    "read_submission",
]

SCENARIO: Final = "aqa-sl"
"""The task that the benchmark has today: attributed question answering in Slovenian."""

_WANTED: Final = "submission (a JSON object with 'eval_scenario', 'system' and 'df')"
_LONGEST_LITERAL: Final = 100_000
"""Characters of a list of sources that was written as a text; pandas does so in CSV."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What a system retrieved for one question."""

    query: str
    """The question, as the submission repeats it; empty where it does not."""

    document: str | None
    """The document that is right by the submission's own copy of the dataset."""

    sources: tuple[str, ...]
    """Ids of documents, the best first; one document may stand there for several of its chunks."""

    readable: bool = True
    """False where the submission has no list of sources, or no document, for the question."""

    def rank(self, k: int) -> int | None:
        """Place of the right document among the first ``k`` sources, from 1; None: not there."""
        found = (n for n, each in enumerate(self.sources[:k], start=1) if each == self.document)
        return next(found, None)


@dataclass(frozen=True, slots=True)
class Submission:
    """One system's sources for all questions."""

    path: Path
    scenario: str
    system: str

    time_per_question: int | float | None
    """Seconds, as the submission says; an integer stays one."""

    rows: tuple[Sources, ...]
    """One row a question, in the order of the file."""


def is_submission(name: str) -> bool:
    """Whether the authors' script takes a file of this name for a submission.

    The script also takes names with ``.json`` in the middle; those of unfinished downloads and
    backups are left out here.
    """
    return "submission_" in name and name.endswith(".json") and "results" not in name


def find_submissions(place: Path) -> list[Path]:
    """Return the submissions in a folder and below it, or the one file; sorted by path.

    Raises:
        FileError: There is no such place, or no submission in it.
    """
    if place.is_file():
        return [place]
    found = sorted(path for path in place.rglob("*.json") if is_submission(path.name))
    if not found:
        raise FileError(
            f"{str(place)!r} holds no submission: give a folder with files named "
            "submission_NAME.json"
        )
    return found


def read_submission(path: Path) -> Submission:
    """Read a submission. Rows that are odd stay, so that the accuracy is the authors'.

    Raises:
        FileError: The file cannot be read, or is no submission.
    """
    parsed = parse_json(path, wanted=_WANTED)
    found = cast("dict[str, JsonValue]", parsed if isinstance(parsed, dict) else {})
    scenario, system, rows = (found.get(key) for key in ("eval_scenario", "system", "df"))
    if not isinstance(scenario, str) or not isinstance(system, str) or not isinstance(rows, list):
        raise FileError(f"{str(path)!r} is no submission: give a {_WANTED}")
    if not rows:
        raise FileError(f"{str(path)!r} has no questions in 'df': give a {_WANTED}")
    seconds = _number(found.get("time_per_question"))
    return Submission(path, scenario, system, seconds, tuple(map(_sources, rows)))


def _number(value: JsonValue) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _sources(row: JsonValue) -> Sources:
    fields = row if isinstance(row, dict) else {}
    query, document = fields.get("query"), fields.get("document")
    sources = _listed(fields.get("sources"))
    return Sources(
        query=query if isinstance(query, str) else "",
        document=document if isinstance(document, str) else None,
        sources=tuple(sources or ()),
        readable=sources is not None and isinstance(document, str),
    )


def _listed(value: JsonValue) -> list[str] | None:
    """The sources as a list; a list that was written as a text is read, as by the authors."""
    if isinstance(value, str) and len(value) <= _LONGEST_LITERAL:
        try:
            # Literals alone: a submission comes from others, and `eval` would run what it says.
            value = ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return None
    return list(_texts(value)) if isinstance(value, list) else None


def _texts(values: Sequence[JsonValue]) -> Iterator[str]:
    # What is no text names no document, and keeps its place.
    return (each if isinstance(each, str) else "" for each in values)
