"""Whole traces as values that are the same in every run, to compare them with reviewed files.

What differs from run to run is replaced: span ids by the place in the list, UUIDs by a number each,
versions of packages and measured seconds by a word. Times are left out; spans stand in the order of
a walk through the trace, children by their start.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from claimspan_tracing.adapters import is_list

from support import attributes, ids

__all__ = ["whole_trace"]

MEASURED: Final = {"claimspan.judge.seconds"}
"""Attributes whose value is measured."""

UUID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
VERSION: Final = re.compile(r'(?<=")\d+\.\d+\.\d+(?=")')

Json = OrderedDict[str, object]
"""Ordered, so that the name of a span stands before its attributes."""


def whole_trace(spans: Iterable[ReadableSpan]) -> list[Json]:
    """Everything in the spans that a backend shows, without what differs from run to run."""
    ordered = list(_walk(sorted(spans, key=lambda span: (span.start_time or 0, span.name))))
    return _Normaliser(ordered).trace()


def _walk(spans: Sequence[ReadableSpan]) -> Iterator[ReadableSpan]:
    """Each span before its children; a span whose parent is not exported is a root."""
    exported = {ids(span).span_id for span in spans}

    def below(parent: int | None) -> Iterator[ReadableSpan]:
        for span in spans:
            above = span.parent.span_id if span.parent else None
            if (above if above in exported else None) == parent:
                yield span
                yield from below(ids(span).span_id)

    return below(None)


class _Normaliser:
    """Replaces what differs from run to run, the same everywhere in one trace."""

    def __init__(self, spans: Sequence[ReadableSpan]) -> None:
        self._spans = spans
        self._places = {ids(span).span_id: f"{n} {span.name}" for n, span in enumerate(spans)}
        self._uuids: dict[str, str] = {}

    def trace(self) -> list[Json]:
        return [self._span(span) for span in self._spans]

    def _span(self, span: ReadableSpan) -> Json:
        scope, status = span.instrumentation_scope, span.status
        return Json(
            span=self._place(ids(span)),
            parent=self._place(span.parent),
            scope=scope.name if scope else None,
            kind=span.kind.name,
            status=": ".join(filter(None, (status.status_code.name, status.description))),
            links=[self._place(link.context) for link in span.links],
            events=[Json(name=e.name, attributes=self._all(e.attributes)) for e in span.events],
            attributes=self._all(attributes(span)),
        )

    def _place(self, context: SpanContext | None) -> str | None:
        return None if context is None else self._places.get(context.span_id, "elsewhere")

    def _all(self, values: Mapping[str, object] | None) -> Json:
        # In the order of the names, and so of UUIDs: each gets the number of its first mention.
        names = sorted(values or {}, key=_by_number)
        return Json((name, self._value(name, (values or {})[name])) for name in names)

    def _value(self, name: str, value: object) -> object:
        if name in MEASURED:
            return f"<{type(value).__name__}>"
        if is_list(value):
            return [self._value(name, item) for item in value]
        if isinstance(value, str):
            return VERSION.sub("<version>", UUID.sub(self._number, value))
        return value

    def _number(self, found: re.Match[str]) -> str:
        return self._uuids.setdefault(found[0], f"<uuid {len(self._uuids) + 1}>")


def _by_number(name: str) -> list[tuple[int, str]]:
    """Sorts ``evaluations.2`` before ``evaluations.10``."""
    return [(int(p) if p.isdigit() else -1, p) for p in name.split(".")]
