"""The formats of the datasets: which rows they have, and what item a row gives.

A function takes one row and returns its item. A row that it cannot read raises ``KeyError``,
``TypeError`` or ``ValueError``; the text of these errors is never shown, since it quotes the row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue

from claimspan.files.datasets.item import DatasetItem
from claimspan.files.scalars import TextOrScalar
from claimspan.records import Chunk

__all__ = [
    "Text",
    "clapnq_item",
    "clapnq_question",
    "financebench_item",
    "item",
    "legal_qa_item",
    "nq_open_item",
    "passage",
]

_SEVERAL: Final = "::"
"""What CLAPnq writes between several right answers to one question."""

_FINANCEBENCH_METADATA: Final = (
    "company",
    "doc_name",
    "question_type",
    "question_reasoning",
    "justification",
)


def _text(value: object) -> object:
    """A number as a text: some files store ids as numbers."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else value


Text = Annotated[str, BeforeValidator(_text)]
"""A text that some files write as a number."""


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Evidence(_Row):
    evidence_text: str
    doc_name: str = ""
    evidence_page_num: int | None = None


class _FinanceBench(_Row):
    question: str
    answer: TextOrScalar
    financebench_id: Text | None = None
    company: str | None = None
    doc_name: str | None = None
    question_type: str | None = None
    question_reasoning: str | None = None
    justification: str | None = None
    evidence: list[_Evidence] = []


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
    id: Text | None = None
    source: _Source


class _NqOpen(_Row):
    question: str
    answer: list[TextOrScalar]
    id: Text | None = None


class _Passage(_Row):
    text: str
    title: str = ""


class _Output(_Row):
    answer: str = ""


class _ClapNq(_Row):
    id: Text | None = None
    input: str
    passages: list[_Passage]
    output: list[_Output] = []


class _ClapNqQuestion(_Row):
    id: Text | None = None
    question: str
    answers: str = ""
    documents: str = Field(default="", validation_alias="doc-id-list")


def financebench_item(row: Mapping[str, object]) -> DatasetItem:
    """Return the item of a question of FinanceBench, with its evidence as chunks."""
    valid = _FinanceBench.model_validate(row)
    chunks = [
        passage(
            each.evidence_text, id_, {"doc_name": each.doc_name, "page": each.evidence_page_num}
        )
        for each, id_ in zip(valid.evidence, _page_ids(valid.evidence), strict=True)
    ]
    # Question, answer and evidence have their own places, and would be in every line twice.
    about = valid.model_dump(include=set(_FINANCEBENCH_METADATA))
    return item(valid.financebench_id, valid.question, [valid.answer], chunks, about)


def _page_ids(evidence: Sequence[_Evidence]) -> Iterator[str | None]:
    """Ids of passages by document and page; None where the page is not known."""
    seen = Counter[str]()
    for each in evidence:
        if each.evidence_page_num is None:
            yield None
            continue
        page = f"{each.doc_name}:{each.evidence_page_num}"
        seen[page] += 1
        # Some questions have two passages of one page, which would pass for one chunk.
        yield page if seen[page] == 1 else f"{page}#{seen[page]}"


def legal_qa_item(row: Mapping[str, object]) -> DatasetItem:
    """Return the item of a question of Open Australian Legal QA, with its source as a chunk."""
    valid = _LegalQa.model_validate(row)
    source = valid.source
    about = source.model_dump(exclude={"text"})
    chunks = [passage(source.text, source.version_id, about)]
    return item(valid.id, valid.question, [valid.answer], chunks, about)


def nq_open_item(row: Mapping[str, object]) -> DatasetItem:
    """Return the item of a question of NQ-open: the first of its answers, and all of them."""
    valid = _NqOpen.model_validate(row)
    return item(valid.id, valid.question, valid.answer)


def clapnq_item(row: Mapping[str, object]) -> DatasetItem:
    """Return the item of a question of CLAPnq, with its gold passages as chunks."""
    valid = _ClapNq.model_validate(row)
    chunks = [passage(each.text, None, {"title": each.title}) for each in valid.passages]
    return item(valid.id, valid.input, [each.answer for each in valid.output], chunks)


def clapnq_question(row: Mapping[str, object]) -> DatasetItem:
    """Return the item of a question of CLAPnq's retrieval files, with the ids of its documents."""
    valid = _ClapNqQuestion.model_validate(row)
    documents: list[JsonValue] = [
        each.strip() for each in valid.documents.split(",") if each.strip()
    ]
    about = {"documents": documents or None}
    return item(valid.id, valid.question, valid.answers.split(_SEVERAL), metadata=about)


def item(
    id_: str | None,
    query: str,
    answers: Sequence[str],
    chunks: Sequence[Chunk] = (),
    metadata: Mapping[str, JsonValue] | None = None,
) -> DatasetItem:
    """Return the item of a question that may have several right answers, or none.

    Args:
        id_: The dataset's id.
        query: The question.
        answers: The right answers; the first one that is not blank is the ground truth.
        chunks: The passages.
        metadata: What else is known; None values are left out.
    """
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


def passage(text: str, id_: str | None, metadata: Mapping[str, JsonValue]) -> Chunk:
    """Return a passage as a chunk; without an id it gets one made from its text."""
    about = {key: value for key, value in metadata.items() if value is not None}
    return Chunk(id=id_ or Chunk.content_id(text), text=text, metadata=about)
