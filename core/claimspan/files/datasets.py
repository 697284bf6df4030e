"""Public question-answering datasets, read from files that the user has; nothing is downloaded.

Each format gives the same items: a question with its right answer and, if the dataset has them, the
passages that hold it. A file is read a line at a time, since it may be larger than the memory.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from claimspan.errors import ConfigError, FileError
from claimspan.files.names import TextOrScalar
from claimspan.files.raw_rows import RawRow, SkippedRow, csv_rows, json_rows
from claimspan.records import Chunk
from claimspan.text.encodable import EncodableText

__all__ = ["AUTO", "FORMATS", "BadLine", "DatasetItem", "Format", "read_dataset"]

AUTO: Final = "auto"
"""The name of no format, which stands for finding it out."""

_SEVERAL: Final = "::"
"""The separator of CLAPnq between several right answers to one question."""

_TAG: Final = re.compile(r"</?[A-Za-z][A-Za-z0-9]*(?:\s[^>]*)?/?>")
_SPACE_BEFORE: Final = re.compile(r"\s+([.,;:!?)\]%])")


class DatasetItem(BaseModel):
    """A question, its right answer, and the passages that hold it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: EncodableText | None
    """The dataset's id of the question; None if it has none."""

    query: EncodableText = Field(min_length=1)
    ground_truth: EncodableText | None
    """The right answer; None if the dataset says that there is none."""

    chunks: tuple[Chunk, ...] = ()
    """The passages that the dataset gives with the question, in its order."""

    metadata: Mapping[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """Further fields of the dataset; ``answers`` has all right answers if there are several."""


class BadLine(NamedTuple):
    """A line of a dataset that gives no item."""

    line: int
    reason: str
    """Why; never quotes the line."""


def _item(
    id_: str | None,
    query: str,
    answers: Sequence[str],
    chunks: Sequence[Chunk] = (),
    metadata: Mapping[str, JsonValue] | None = None,
) -> DatasetItem:
    """The item of a question that may have several right answers, or none: the first counts."""
    given: list[JsonValue] = [each.strip() for each in dict.fromkeys(answers) if each.strip()]
    about = {key: value for key, value in (metadata or {}).items() if value is not None}
    # A ground-truth file has one text for a question; the others are kept for people.
    if len(given) > 1:
        about["answers"] = given
    return DatasetItem(
        id=id_,
        query=query.strip(),
        ground_truth=str(given[0]) if given else None,
        chunks=tuple(chunks),
        metadata=about,
    )


def _passage(text: str, id_: str | None, metadata: Mapping[str, JsonValue]) -> Chunk:
    about = {key: value for key, value in metadata.items() if value is not None}
    return Chunk(id=id_ or Chunk.content_id(text), text=text, metadata=about)


# The rows of the formats. A row that does not fit raises a ValueError, whose text is never shown,
# since it quotes the row. Some files store ids as numbers.


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore")

    def item(self) -> DatasetItem:
        raise NotImplementedError


class _Evidence(_Row):
    evidence_text: str
    doc_name: str = ""
    evidence_page_num: int | None = None


class _FinanceBench(_Row):
    question: str
    answer: TextOrScalar
    financebench_id: TextOrScalar | None = None
    company: str | None = None
    doc_name: str | None = None
    question_type: str | None = None
    question_reasoning: str | None = None
    justification: str | None = None
    evidence: list[_Evidence] = []

    def item(self) -> DatasetItem:
        chunks, seen = list[Chunk](), Counter[str]()
        for each in self.evidence:
            page = None
            if each.evidence_page_num is not None:
                page = f"{each.doc_name}:{each.evidence_page_num}"
                seen[page] += 1
                # Some questions have two passages of one page, which would pass for one chunk.
                page = page if seen[page] == 1 else f"{page}#{seen[page]}"
            about = {"doc_name": each.doc_name, "page": each.evidence_page_num}
            chunks.append(_passage(each.evidence_text, page, about))
        # Question, answer and evidence have their own places, and would be in every line twice.
        others = self.model_dump(exclude={"question", "answer", "evidence", "financebench_id"})
        return _item(self.financebench_id, self.question, [self.answer], chunks, others)


class _Source(_Row):
    text: str
    version_id: str | None = None
    citation: str | None = None
    jurisdiction: str | None = None
    type: str | None = None
    url: str | None = None


class _LegalQa(_Row):
    question: str
    answer: TextOrScalar
    id: TextOrScalar | None = None
    source: _Source

    def item(self) -> DatasetItem:
        about = self.source.model_dump(exclude={"text"})
        chunks = [_passage(self.source.text, self.source.version_id, about)]
        return _item(self.id, self.question, [self.answer], chunks, about)


class _NqOpen(_Row):
    question: str
    answer: list[TextOrScalar]
    id: TextOrScalar | None = None

    def item(self) -> DatasetItem:
        return _item(self.id, self.question, self.answer)


class _Passage(_Row):
    text: str
    title: str = ""


class _Output(_Row):
    answer: str = ""


class _ClapNq(_Row):
    id: TextOrScalar | None = None
    input: str
    passages: list[_Passage]
    output: list[_Output] = []

    def item(self) -> DatasetItem:
        chunks = [_passage(each.text, None, {"title": each.title}) for each in self.passages]
        return _item(self.id, self.input, [each.answer for each in self.output], chunks)


class _ClapNqQuestion(_Row):
    """CLAPnq's retrieval files have the ids of documents in place of passages."""

    id: TextOrScalar | None = None
    question: str
    answers: str = ""
    documents: str = Field(default="", validation_alias="doc-id-list")

    def item(self) -> DatasetItem:
        ids: list[JsonValue] = [each.strip() for each in self.documents.split(",") if each.strip()]
        answers = self.answers.split(_SEVERAL)
        return _item(self.id, self.question, answers, metadata={"documents": ids or None})


class _Span(_Row):
    start_token: int = -1
    end_token: int = -1


class _Annotation(_Row):
    long_answer: _Span = _Span()
    short_answers: list[_Span] = []
    yes_no_answer: str = "NONE"


class _Token(_Row):
    token: str
    html_token: bool = False


class _NaturalQuestions(_Row):
    """A whole page of Google's Natural Questions, with the places of the answers in it.

    The simplified form has ``document_text``, the original one ``document_tokens``. Of several
    annotators' answers each counts as right: the short answers, else the long one, its chunk.
    """

    question_text: str
    annotations: list[_Annotation]
    example_id: TextOrScalar | None = None
    document_title: str | None = None
    document_url: str | None = None
    document_text: str | None = None
    document_tokens: list[_Token] = []

    def item(self) -> DatasetItem:
        # The places of answers count tokens, and tags are tokens, too. Not split(): the places
        # count the empty tokens between two spaces as well.
        tokens = [
            f"<{each.token.strip('<>')}>" if each.html_token else each.token
            for each in self.document_tokens
        ]
        if self.document_text is not None:
            tokens = self.document_text.split(" ")
        # By text: annotators often mark the same span, and a chunk stands there once.
        long = {_between(tokens, each.long_answer): each.long_answer for each in self.annotations}
        long.pop("", None)
        answers = [_short_answer(tokens, each) for each in self.annotations]
        about = {"title": self.document_title, "url": self.document_url}
        chunks = [
            _passage(text, f"{self.example_id}:{span.start_token}-{span.end_token}", about)
            for text, span in long.items()
        ]
        answers = [*filter(None, answers)] or [*long]
        return _item(self.example_id, self.question_text, answers, chunks, about)


def _short_answer(tokens: Sequence[str], annotation: _Annotation) -> str:
    spans = [_between(tokens, each) for each in annotation.short_answers]
    answer = annotation.yes_no_answer.strip().capitalize()
    return ", ".join(filter(None, spans)) or (answer if answer in ("Yes", "No") else "")


def _between(tokens: Sequence[str], span: _Span) -> str:
    if span.start_token < 0:
        return ""
    # Python would cut the slice without a word, and half an answer would become the ground truth.
    if span.end_token > len(tokens):
        raise ValueError("a span ends behind the page")
    kept = [each for each in tokens[span.start_token : span.end_token] if not _TAG.fullmatch(each)]
    return _SPACE_BEFORE.sub(r"\1", " ".join(kept)).strip()


class Format(NamedTuple):
    """One format: its reader of rows, and the fields by which it is known."""

    row: type[_Row]
    fields: frozenset[str]
    without: frozenset[str] = frozenset()


FORMATS: Final[Mapping[str, Format]] = {
    "financebench": Format(
        _FinanceBench, frozenset({"question", "answer", "evidence"}), frozenset({"model_answer"})
    ),
    "legal-qa": Format(_LegalQa, frozenset({"question", "answer", "source"})),
    "nq": Format(_NaturalQuestions, frozenset({"question_text", "annotations"})),
    "clapnq": Format(_ClapNq, frozenset({"input", "passages", "output"})),
    "clapnq-questions": Format(_ClapNqQuestion, frozenset({"question", "doc-id-list", "answers"})),
    "nq-open": Format(_NqOpen, frozenset({"question", "answer"})),
}
"""Every format by its name, the most particular first: a row is of the first one that it fits."""


def read_dataset(
    format: str | None, path: str | Path, *, on_bad: Callable[[BadLine], None] | None = None
) -> Iterator[DatasetItem]:
    """Read the questions of a dataset, one at a time, in the order of the file.

    Args:
        format: One of ``FORMATS``; None or ``auto`` finds it out by the fields of the first line.
        path: JSON lines, or a table with tabs if it is called ``.tsv``; either may be packed
            (``.gz``).
        on_bad: Takes each line that gives no item. None refuses the file at the first such line.

    Raises:
        ConfigError: There is no such format, or the fields of the first line are of none.
        FileError: The file cannot be read, or a line gives no item; names the line.
    """
    path = Path(path)
    name = None if format == AUTO else format
    if name is not None and name not in FORMATS:
        raise ConfigError(f"there is no format {name!r}: give {AUTO}, {', '.join(FORMATS)}")

    def refuse(bad: BadLine) -> None:
        raise FileError(f"{str(path)!r} line {bad.line}: {bad.reason}")

    return _items(path, name, on_bad or refuse)


def _items(
    path: Path, name: str | None, on_bad: Callable[[BadLine], None]
) -> Iterator[DatasetItem]:
    for number, row in _rows(path):
        if isinstance(row, str):
            on_bad(BadLine(number, row))
            continue
        # Decided once by the first row that can be read: a file of one dataset has one format, and
        # a broken row would look like another.
        name = name or _format_of(row, path)
        try:
            item = FORMATS[name].row.model_validate(row).item()
        except ValueError:
            # Without the cause: its message quotes the line, which may be private.
            wanted = ", ".join(sorted(FORMATS[name].fields))
            on_bad(BadLine(number, f"not a row of {name}, which has {wanted}"))
            continue
        yield item


def _format_of(row: Mapping[str, object], path: Path) -> str:
    for name, known in FORMATS.items():
        if known.fields <= row.keys() and not known.without & row.keys():
            return name
    raise ConfigError(
        f"the format of {str(path)!r} is not known by the fields of its first line: give one of "
        f"{', '.join(FORMATS)}"
    )


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, object] | str]]:
    is_table = path.name.removesuffix(".gz").lower().endswith(".tsv")
    try:
        opener = gzip.open if path.suffix == ".gz" else open
        with cast("BinaryIO", opener(path, "rb")) as file:
            for row in csv_rows(file, keep_empty=True) if is_table else json_rows(file):
                if isinstance(row, SkippedRow):
                    yield row.place, row.reason
                elif isinstance(row, RawRow):
                    yield row.place, cast("Mapping[str, object]", row.value)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise FileError(
            f"cannot read {str(path)!r} ({type(error).__name__}): give an existing dataset file"
        ) from error
