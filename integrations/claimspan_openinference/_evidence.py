"""Texts that a span shows as evidence and as a prompt, found fast, on the application's thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from claimspan_openinference._kinds import Attributes
from claimspan_tracing import semconv

__all__ = ["MIN_TOOL_TEXT", "flattened", "holds_documents", "told_by", "written_in"]

MIN_TOOL_TEXT: Final = 40
"""Characters from which on the result of a tool may be evidence, and not a number or a status."""


def written_in(span: ReadableSpan) -> Iterator[str]:
    """The texts that a span has found: documents, reranked ones, or the result of a tool."""
    attributes = span.attributes or {}
    yield from flattened(attributes, lambda index: semconv.document(index, "content"))
    yield from flattened(attributes, lambda index: semconv.reranked(index, "content"))
    if attributes.get(semconv.OPENINFERENCE_SPAN_KIND) == semconv.KIND_TOOL:
        yield told_by(span)


def holds_documents(attributes: Attributes) -> bool:
    """Whether a span of any kind has documents: who searches a store by hand makes no retriever."""
    if semconv.GEN_AI_RETRIEVAL_DOCUMENTS in attributes:
        return True
    # As LangChain writes them.
    return '"page_content"' in str(attributes.get(semconv.OUTPUT_VALUE, ""))


def told_by(span: ReadableSpan) -> str:
    """What a tool has returned, as a text."""
    attributes = span.attributes or {}
    told = attributes.get(semconv.GEN_AI_TOOL_RESULT, attributes.get(semconv.OUTPUT_VALUE, ""))
    return str(told)


def flattened(attributes: Attributes, name: Callable[[int], str]) -> Iterator[str]:
    """The texts of attributes that are numbered; the first gap ends them."""
    for index in count():
        value = attributes.get(name(index))
        if value is None:
            return
        yield str(value)
