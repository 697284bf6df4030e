"""Natural Questions as Google gives it: whole pages, with the places of the answers in them.

Reads the simplified form (``document_text``) and the original one (``document_tokens``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict

from claimspan.files.datasets.formats import Text, item, passage
from claimspan.files.datasets.item import DatasetItem

__all__ = ["natural_questions_item"]

_TAG: Final = re.compile(r"</?[A-Za-z][A-Za-z0-9]*(?:\s[^>]*)?/?>")
_SPACE_BEFORE: Final = re.compile(r"\s+([.,;:!?)\]%])")


class _Model(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Span(_Model):
    start_token: int = -1
    end_token: int = -1


class _Annotation(_Model):
    long_answer: _Span = _Span()
    short_answers: list[_Span] = []
    yes_no_answer: str = "NONE"


class _Token(_Model):
    token: str
    html_token: bool = False


class _Row(_Model):
    question_text: str
    annotations: list[_Annotation]
    example_id: Text | None = None
    document_title: str | None = None
    document_url: str | None = None
    document_text: str | None = None
    document_tokens: list[_Token] = []

    @property
    def tokens(self) -> list[str]:
        """The tokens of the page, which the places of answers count; tags are tokens, too."""
        if self.document_text is not None:
            # Not split(): the places count the empty tokens between two spaces as well.
            return self.document_text.split(" ")
        return [f"<{each.token.strip('<>')}>" if each.html_token else each.token
                for each in self.document_tokens]  # fmt: skip


def natural_questions_item(row: Mapping[str, object]) -> DatasetItem:
    """Return the item of a question: the short answers, else the long one, which is its chunk.

    Args:
        row: A row of either form. Of several annotators' answers each counts as right.
    """
    valid = _Row.model_validate(row)
    tokens = valid.tokens
    # By text: annotators often mark the same span, and a chunk stands there once.
    long = {_between(tokens, each.long_answer): each.long_answer for each in valid.annotations}
    long.pop("", None)
    answers = [_short(tokens, each) for each in valid.annotations]
    about = {"title": valid.document_title, "url": valid.document_url}
    chunks = [
        passage(text, f"{valid.example_id}:{span.start_token}-{span.end_token}", about)
        for text, span in long.items()
    ]
    return item(
        valid.example_id, valid.question_text, [*filter(None, answers)] or [*long], chunks, about
    )


def _short(tokens: Sequence[str], annotation: _Annotation) -> str:
    """The short answer of one annotator: its spans, or yes or no; empty where there is none."""
    spans = [_between(tokens, each) for each in annotation.short_answers]
    if found := ", ".join(filter(None, spans)):
        return found
    answer = annotation.yes_no_answer.strip().capitalize()
    return answer if answer in ("Yes", "No") else ""


def _between(tokens: Sequence[str], span: _Span) -> str:
    """The text of a span without tags; empty where the span is none."""
    if span.start_token < 0:
        return ""
    # Python would cut the slice without a word, and half an answer would become the ground truth.
    if span.end_token > len(tokens):
        raise ValueError("a span ends behind the page")
    kept = [each for each in tokens[span.start_token : span.end_token] if not _TAG.fullmatch(each)]
    return _SPACE_BEFORE.sub(r"\1", " ".join(kept)).strip()
