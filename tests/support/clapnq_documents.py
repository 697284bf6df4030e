"""The passages and answers of CLAPnq, from the shared data, as documents and benchmark items."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest
from pydantic import BaseModel, ConfigDict

from claimspan_bench.context_coverage import CoverageItem, Document, build_items

__all__ = ["answered_items", "passages"]

FILE: Final = (
    Path(__file__).parents[3]
    / "shared/data/passages/clapnq/annotated_data/dev/clapnq_dev_answerable.jsonl"
)


class _Passage(BaseModel):
    model_config = ConfigDict(extra="ignore")

    title: str
    text: str


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    answer: str
    selected_sentences: list[str]


class _Row(BaseModel):
    """One question with its passage, and what people answered from which of its sentences."""

    model_config = ConfigDict(extra="ignore")

    id: str
    input: str
    passages: list[_Passage]
    output: list[_Answer]


def _rows(n: int) -> list[_Row]:
    if not FILE.is_file():
        pytest.skip("shared data is absent: the passages of CLAPnq")
    lines = FILE.read_text(encoding="utf-8").split("\n")
    return [_Row.model_validate(json.loads(line)) for line in lines if line][:n]


def passages(n: int) -> list[Document]:
    """The first passages, each with the question that people asked of it."""
    return [
        Document(
            id=row.id, text=row.passages[0].text, title=row.passages[0].title, question=row.input
        )
        for row in _rows(n)
    ]


def answered_items(n: int) -> list[CoverageItem]:
    """Items whose text is the answer that a person wrote, with gold that people labelled.

    The gold is the sentences of the passage that the person answered from. Golden chunks are those
    of the passage with such a sentence in them.
    """
    answers = {row.id: row.output[0] for row in _rows(n)}
    built = build_items(passages(n)).items
    found = [_answered(item, answers[item.id]) for item in built]
    return [item for item in found if item is not None]


def _answered(item: CoverageItem, answer: _Answer) -> CoverageItem | None:
    texts = {chunk.id: " ".join(chunk.text.split()) for chunk in item.golden}
    sentences = [" ".join(each.split()) for each in answer.selected_sentences]
    gold = [tuple(name for name, text in texts.items() if each in text) for each in sentences]
    # A chunk boundary of ours may cut a sentence of theirs; an item without its gold says nothing.
    if not answer.answer.strip() or not all(gold) or len(set(gold)) < 2:
        return None
    return item.model_copy(update={"text": answer.answer, "gold": tuple(gold)})
