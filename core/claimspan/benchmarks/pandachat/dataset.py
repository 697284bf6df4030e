"""The questions of PandaChat-RAG, and the documents that are to be retrieved."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, cast

from pydantic import JsonValue

from claimspan.errors import FileError, PayloadError
from claimspan.files.jsonl import check_bounds, read_text

__all__ = ["Dataset", "Question", "find_dataset", "parse_json", "read_dataset"]

_PATTERN: Final = "*-dataset.json"
_UPSTREAM: Final = Path("data") / "eval_datasets"
"""Where the authors' repository has its datasets, beside the folder of submissions."""

_WANTED: Final = "dataset of PandaChat-RAG (a JSON list of questions with 'query' and 'document')"


@dataclass(frozen=True, slots=True)
class Question:
    """One question, and the document that answers it."""

    query: str
    """What is asked."""

    document: str
    """Id of the document that is to be retrieved."""

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
            raise FileError(f"{str(path)!r} holds no file {_PATTERN}: give a {_WANTED}")
        path = found
    parsed = parse_json(path, wanted=_WANTED)
    if not isinstance(parsed, list) or not parsed:
        raise FileError(f"{str(path)!r} is no list of questions: give a {_WANTED}")
    entries = cast("Sequence[JsonValue]", parsed)
    return Dataset(path, tuple(_question(row, path, n) for n, row in enumerate(entries, start=1)))


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


def _question(row: JsonValue, path: Path, number: int) -> Question:
    if isinstance(row, dict):
        query, document = row.get("query"), row.get("document")
        if isinstance(query, str) and isinstance(document, str):
            return Question(query, document, row)
    raise FileError(
        f"{str(path)!r} entry {number} is no question: write an object with the texts 'query' and "
        "'document'"
    )
