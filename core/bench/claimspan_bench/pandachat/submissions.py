"""The files of PandaChat-RAG: its questions, what systems retrieved, and what is odd in that."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final, Literal, cast

from pydantic import BaseModel, ConfigDict, JsonValue

from claimspan.errors import FileError, PayloadError
from claimspan.files.jsonl import check_bounds, read_text

__all__ = [
    "SCENARIO",
    "Dataset",
    "Finding",
    "FindingKind",
    "Question",
    "Sources",
    "Submission",
    "find_dataset",
    "find_submissions",
    "findings_of",
    "is_submission",
    "parse_json",
    "read_dataset",
    "read_submission",
]

SCENARIO: Final = "aqa-sl"
"""The task that the benchmark has today: attributed question answering in Slovenian."""

_PATTERN: Final = "*-dataset.json"
_UPSTREAM: Final = Path("data") / "eval_datasets"
"""Where the authors' repository has its datasets, beside the folder of submissions."""

_DATASET: Final = "dataset of PandaChat-RAG (a JSON list of questions with 'query' and 'document')"
_SUBMISSION: Final = "submission (a JSON object with 'eval_scenario', 'system' and 'df')"

_LONGEST_LITERAL: Final = 100_000
"""Characters of a list of sources that was written as a text; pandas does so in CSV."""

_EXAMPLES: Final = 5
"""Queries or ids that a finding names, so that a person can look them up."""


# --- the questions ---


@dataclass(frozen=True, slots=True)
class Question:
    """One question, and the document that answers it."""

    query: str
    document: str

    row: Mapping[str, JsonValue]
    """Everything that the dataset says about it, which a submission repeats."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The document's text without the question, which is to be indexed, and with it."""
        found = (self.row.get(key) for key in ("text_without_Q", "text"))
        return tuple(text for text in found if isinstance(text, str))


@dataclass(frozen=True)
class Dataset:
    """All questions, in the order of the file."""

    path: Path
    questions: tuple[Question, ...]

    @cached_property
    def documents(self) -> Mapping[str, str]:
        """Id to the text that is to be indexed, in the order in which documents are first named."""
        found: dict[str, str] = {}
        for question in self.questions:
            if question.texts:
                # A document that answers several questions has a text without each of them; the
                # first stands for it.
                found.setdefault(question.document, question.texts[0])
        return found

    @cached_property
    def by_query(self) -> Mapping[str, Question]:
        """Query to its question."""
        return {question.query: question for question in self.questions}


def read_dataset(path: str | Path) -> Dataset:
    """Read the questions.

    Args:
        path: The dataset, or a folder that ``find_dataset`` finds it in.

    Raises:
        FileError: There is none, or it is no dataset; names the entry.
    """
    path = Path(path)
    if path.is_dir():
        found = find_dataset(path)
        if found is None:
            raise FileError(f"{str(path)!r} holds no file {_PATTERN}: give a {_DATASET}")
        path = found
    parsed = parse_json(path, wanted=_DATASET)
    if not isinstance(parsed, list) or not parsed:
        raise FileError(f"{str(path)!r} is no list of questions: give a {_DATASET}")
    questions: list[Question] = []
    for number, row in enumerate(cast("Sequence[JsonValue]", parsed), start=1):
        fields = row if isinstance(row, dict) else {}
        query, document = fields.get("query"), fields.get("document")
        if not isinstance(query, str) or not isinstance(document, str):
            raise FileError(
                f"{str(path)!r} entry {number} is no question: write an object with the texts "
                "'query' and 'document'"
            )
        questions.append(Question(query, document, fields))
    return Dataset(path, tuple(questions))


def find_dataset(folder: Path) -> Path | None:
    """Find the dataset in a folder, or where the authors' repository has it.

    Args:
        folder: With submissions, or with the dataset.

    Returns:
        The first by name; None where there is none.
    """
    # Submissions lie one or two folders below the root of the authors' repository.
    above = [parent / _UPSTREAM for parent in (folder.resolve(), *folder.resolve().parents[:2])]
    places = (folder.glob(_PATTERN), *(place.glob(f"*/{_PATTERN}") for place in above))
    return next((path for place in places for path in sorted(place)), None)


def parse_json(path: Path, *, wanted: str) -> object:
    """Read a JSON file in which pandas may have written NaN, which becomes None.

    Args:
        path: The file, in UTF-8.
        wanted: Kind of file that is wanted, for the message.

    Raises:
        FileError: It cannot be read, or is not JSON of bounded size.
    """
    try:
        # Before it is parsed: JSON that is nested very deep exhausts the parser's stack.
        data = check_bounds(read_text(path, wanted=wanted))
        parsed: object = json.loads(data, parse_constant=lambda _: None)
    except PayloadError as error:
        raise FileError(f"{str(path)!r} is {error.reason}: give a {wanted}") from None
    except ValueError:
        # Without the cause, whose message quotes the file.
        raise FileError(f"{str(path)!r} is not JSON: give a {wanted}") from None
    return parsed


# --- what systems retrieved ---


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
    parsed = parse_json(path, wanted=_SUBMISSION)
    found = cast("dict[str, JsonValue]", parsed if isinstance(parsed, dict) else {})
    scenario, system, rows = (found.get(key) for key in ("eval_scenario", "system", "df"))
    if not isinstance(scenario, str) or not isinstance(system, str) or not isinstance(rows, list):
        raise FileError(f"{str(path)!r} is no submission: give a {_SUBMISSION}")
    if not rows:
        raise FileError(f"{str(path)!r} has no questions in 'df': give a {_SUBMISSION}")
    seconds = found.get("time_per_question")
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        seconds = None
    return Submission(path, scenario, system, seconds, tuple(map(_sources, rows)))


def _sources(row: JsonValue) -> Sources:
    fields = row if isinstance(row, dict) else {}
    query, document, sources = (fields.get(key) for key in ("query", "document", "sources"))
    if isinstance(sources, str) and len(sources) <= _LONGEST_LITERAL:
        try:
            # A list that was written as a text is read, as by the authors. Literals alone: a
            # submission comes from others, and `eval` would run what it says.
            sources = cast("JsonValue", ast.literal_eval(sources))
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            sources = None
    listed = sources if isinstance(sources, list) else []
    return Sources(
        query=query if isinstance(query, str) else "",
        document=document if isinstance(document, str) else None,
        # What is no text names no document, and keeps its place.
        sources=tuple(each if isinstance(each, str) else "" for each in listed),
        readable=isinstance(sources, list) and isinstance(document, str),
    )


# --- what is odd in a submission, which leaves its figures as they are ---

FindingKind = Literal[
    "fewer_sources",
    "no_sources",
    "repeated_sources",
    "unreadable",
    "unknown_documents",
    "missing_questions",
    "doubled_questions",
    "unknown_questions",
    "other_documents",
    "other_order",
    "no_time",
    "same_system",
]


class Finding(BaseModel):
    """One thing that is odd, with how often it is so."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str

    kind: FindingKind
    """What is odd, for programs."""

    count: int
    """How many questions, or documents, it concerns."""

    message: str

    examples: tuple[str, ...] = ()
    """The first questions or documents that it concerns."""


def findings_of(submission: Submission, dataset: Dataset | None, k: int) -> list[Finding]:
    """Find what is odd in a submission.

    Args:
        submission: What a system retrieved.
        dataset: The questions; None where they are not at hand, and the submission is looked at
            by itself.
        k: Number of sources that count.
    """
    found = [
        Finding(
            system=submission.system,
            kind=kind,
            count=len(concerned),
            message=says if kind == "no_time" else f"{len(concerned)} {says}",
            examples=() if kind == "no_time" else tuple(concerned[:_EXAMPLES]),
        )
        for kind, concerned, says in (
            *_by_itself(submission, k),
            *(() if dataset is None else _beside(submission, dataset)),
        )
        if concerned
    ]
    return found


_Found = tuple[FindingKind, Sequence[str], str]
"""What is odd, the questions or documents that it concerns, and how it is told."""


def _by_itself(submission: Submission, k: int) -> Iterator[_Found]:
    rows = submission.rows
    of_n = f"of {len(rows)} questions have"
    yield (
        "unreadable",
        [row.query for row in rows if not row.readable],
        f"{of_n} no list of sources or no document: counted as missed",
    )
    yield (
        "no_sources",
        [row.query for row in rows if row.readable and not row.sources],
        f"{of_n} no source at all",
    )
    yield (
        "fewer_sources",
        [row.query for row in rows if 0 < len(row.sources) < k],
        f"{of_n} fewer than {k} sources: accuracy at {k} is that at fewer there",
    )
    yield (
        "repeated_sources",
        [row.query for row in rows if len(set(row.sources[:k])) < len(row.sources[:k])],
        f"{of_n} one document twice among the first {k} sources",
    )
    queries = [row.query for row in rows]
    if submission.time_per_question is None:
        yield "no_time", queries, "no time per question"
    counts = Counter(queries)
    doubled = [query for query, count in counts.items() if count > 1]
    yield "doubled_questions", doubled, f"of {len(counts)} questions count more than once"


def _beside(submission: Submission, dataset: Dataset) -> Iterator[_Found]:
    """What a look at the dataset shows."""
    asked = dataset.by_query
    # Of a doubled question the last row; that it is doubled is a finding of its own.
    queries = {row.query: row for row in submission.rows}
    yield (
        "missing_questions",
        [query for query in asked if query not in queries],
        f"of {len(asked)} questions are missing: accuracy is that of the others",
    )
    yield (
        "unknown_questions",
        [query for query in queries if query not in asked],
        f"of {len(queries)} questions are not in the dataset, and count all the same",
    )
    yield (
        "other_documents",
        [q for q, row in queries.items() if q in asked and row.document != asked[q].document],
        f"of {len(queries)} questions have another document as right than in the dataset",
    )
    known = {question.document for question in dataset.questions}
    named = dict.fromkeys(source for row in submission.rows for source in row.sources)
    yield (
        "unknown_documents",
        [source for source in named if source not in known],
        f"of {len(named)} different sources are no document of the dataset",
    )
    order = list(asked)
    place = {query: n for n, query in enumerate(order)}
    places = [place[row.query] for row in submission.rows if row.query in place]
    yield (
        "other_order",
        [order[here] for before, here in pairwise(places) if here < before],
        f"of {len(places)} questions stand behind one that they precede in the dataset",
    )
