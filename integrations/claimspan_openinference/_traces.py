"""The spans of one trace, by the query that they belong to."""

from __future__ import annotations

import time
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

__all__ = ["OpenTrace", "is_root"]

MAX_SPANS: Final = 1_000
"""Spans kept of one trace. A RAG pipeline has tens; an agent that runs for hours may have more."""

_UNKNOWN: Final = 0
"""Stands for the root of a span whose parent was not seen to start; no span has this id."""


def is_root(parent: SpanContext | None) -> bool:
    """Whether a span with this parent is where a query begins in this process."""
    return parent is None or parent.is_remote


class OpenTrace:
    """A trace of which a span is open. It may hold several queries at once.

    A caller elsewhere may send two requests at the same time, in one trace.
    """

    def __init__(self) -> None:
        """Begin without a span."""
        self.began: Final = time.monotonic()
        """When its first span was seen, on the monotonic clock."""
        self._root_of: dict[int, int] = {}
        self._ended: dict[int, list[ReadableSpan]] = {}
        self._n_ended = 0

    @property
    def is_over(self) -> bool:
        """Whether no query is open in it."""
        return not self._root_of and not self._ended

    def start(self, span_id: int, parent: SpanContext | None) -> None:
        """Note which query a span belongs to that has started."""
        if len(self._root_of) < MAX_SPANS:
            self._root_of[span_id] = span_id if is_root(parent) else self._root_below(parent)

    def end(self, span_id: int, span: ReadableSpan) -> None:
        """Keep a span that has ended and is no root."""
        root = self._root_of.get(span_id) or self._root_below(span.parent)
        # The root ends last, and without it there is neither question nor answer.
        if self._n_ended < MAX_SPANS:
            self._n_ended += 1
            self._ended.setdefault(root, []).append(span)

    def take(self, root_id: int, root: ReadableSpan) -> list[ReadableSpan]:
        """End a query: return its spans, and those that belong to no query that is known."""
        found = [*self._ended.pop(root_id, ()), *self._ended.pop(_UNKNOWN, ())]
        self._n_ended -= len(found)
        gone = (root_id, _UNKNOWN)
        self._root_of = {span: root for span, root in self._root_of.items() if root not in gone}
        return [*found, root]

    def _root_below(self, parent: SpanContext | None) -> int:
        return _UNKNOWN if parent is None else self._root_of.get(parent.span_id, _UNKNOWN)
