"""Spans that are made once more, with the ids that they had: those of a process that was killed.

An ended span reaches its backend only with the process that holds it. What a job keeps of its spans
is enough to make them again elsewhere, and a backend cannot tell them from the first ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextvars import Context as RequestContext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from opentelemetry.context import Context
from opentelemetry.trace import (
    INVALID_SPAN,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Tracer,
    format_span_id,
    format_trace_id,
    set_span_in_context,
)
from opentelemetry.util.types import AttributeValue
from pydantic import JsonValue

from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing import semconv
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import Job, JobKey, KeptSpan
from claimspan_tracing.records.record import Record
from claimspan_tracing.write.spans import BARE_ROOT, build_spans
from claimspan_tracing.write.targets import root_context

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider

    from claimspan_tracing.write.kept_ids import KeptIds

__all__ = ["RemadeSpans", "with_kept_spans"]

_NO_ATTRIBUTES: Final[Mapping[object, object]] = {}
# Span processors of others set these too; where the job has them they are written from it first.
_SHARED_NAMES: Final = {semconv.SESSION_ID, semconv.USER_ID, semconv.TAGS, semconv.METADATA}
_OUR_NAMES: Final = (
    frozenset(v for v in vars(semconv).values() if isinstance(v, str)) - _SHARED_NAMES
)
_OUR_PREFIXES: Final = (
    semconv.SCORE_PREFIX,
    semconv.DOCUMENT_PREFIX,
    semconv.INPUT_MESSAGE_PREFIX,
    semconv.OUTPUT_MESSAGE_PREFIX,
)


def with_kept_spans(job: Job, record: Record) -> Job:
    """Return a job that can make the spans of its record again; as it is if they have ended."""
    if record.spans is None:
        return job
    parent: object = getattr(record.root, "parent", None)
    parent_id = format_span_id(parent.span_id) if isinstance(parent, SpanContext) else ""
    spans = (record.root, *record.spans.runs)
    return replace(job, parent_span_id=parent_id, kept_spans=tuple(map(_kept, spans)))


def _kept(span: Span) -> KeptSpan:
    # Only spans of the SDK can be read, and only those can be made again.
    attributes: object = getattr(span, "attributes", None)
    found = attributes if is_mapping(attributes) else _NO_ATTRIBUTES
    plain = {str(name): _plain(value) for name, value in found.items() if not _is_ours(name)}
    kept = {name: value for name, value in plain.items() if value is not None}
    return KeptSpan(span_id=format_span_id(span.get_span_context().span_id), attributes=kept)


def _is_ours(name: object) -> bool:
    return name in _OUR_NAMES or str(name).startswith(_OUR_PREFIXES)


def _plain(value: object) -> JsonValue:
    """The value as JSON has it; None for what JSON cannot carry."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, bool | int | str):
        return value
    return [_plain(item) for item in value] if is_list(value) else None


@dataclass(eq=False)
class RemadeSpans:
    """Makes spans with given ids, on the span processors of the application's provider."""

    provider: Callable[[], SdkTracerProvider | None]
    """Returns the application's provider; None if it is not of the SDK, whose spans alone can be
    given ids."""
    started: Callable[[JobKey, str], None]
    """Told of each evaluation span: the key of its job, and its id."""
    shown: Callable[[Job], Job]
    """Returns what spans may show of a job."""

    _cached: tuple[SdkTracerProvider, KeptIds, Tracer] | None = field(default=None, init=False)

    def tracer(self) -> Tracer | None:
        """Return a tracer whose evaluation spans have ids that follow from their root's.

        Returns:
            None if the provider is not of the SDK.
        """
        current = self._current()
        return None if current is None else current[1]

    def record(self, job: Job, guard: Guard) -> Record | None:
        """Return a record whose spans are those that the job had, open once more.

        None if they cannot be made, because the provider is not of the SDK.
        """
        current = self._current()
        if current is None or len(job.kept_spans) != len(job.runs) + 1:
            return None
        ids, tracer = current
        context = root_context(job)
        with ids.using(context, [int(kept.span_id, 16) for kept in job.kept_spans]):
            root = tracer.start_span(
                semconv.SPAN_ROOT,
                _above(job, context),
                kind=SpanKind.INTERNAL,
                attributes=BARE_ROOT,
                start_time=job.started,
            )
            spans = build_spans(self.shown(job), root, tracer, guard)
        for span, kept in zip((root, *spans.runs), job.kept_spans, strict=True):
            _set_missing(span, kept)
        # An empty context: the request is gone, with its context variables.
        record = Record(job.key, root, job.ended, RequestContext())
        record.decision, record.job, record.spans = job.decision, job, spans
        return record

    def _current(self) -> tuple[KeptIds, Tracer] | None:
        provider = self.provider()
        if provider is None:
            return None
        if self._cached is None or self._cached[0] is not provider:
            # Imported here: an application with another provider does not load the SDK for us.
            from claimspan_tracing.write.kept_ids import KeptIds

            ids = KeptIds(self._tell)
            try:
                tracer = ids.tracer(provider)
            except (AttributeError, TypeError):  # an SDK whose names have moved
                return None
            self._cached = (provider, ids, tracer)
        return self._cached[1:]

    def _tell(self, root: SpanContext, span_id: int) -> None:
        key = format_trace_id(root.trace_id), format_span_id(root.span_id)
        self.started(key, format_span_id(span_id))


def _above(job: Job, root: SpanContext) -> Context:
    """A context whose current span is the root's parent."""
    parent: Span = INVALID_SPAN
    if job.parent_span_id:
        parent = NonRecordingSpan(
            SpanContext(
                root.trace_id,
                int(job.parent_span_id, 16),
                is_remote=False,
                trace_flags=root.trace_flags,
                trace_state=root.trace_state,
            )
        )
    return set_span_in_context(parent, Context())


def _set_missing(span: Span, kept: KeptSpan) -> None:
    """Set the attributes that others had set, unless they have set them again."""
    attributes: object = getattr(span, "attributes", None)
    there = attributes if is_mapping(attributes) else _NO_ATTRIBUTES
    for name, value in kept.attributes.items():
        if name in there or value is None or isinstance(value, dict):
            continue
        span.set_attribute(name, _sequence(value) if isinstance(value, list) else value)


def _sequence(values: list[JsonValue]) -> AttributeValue:
    """The values as a list of one type, which is all that a span may have."""
    numbers = [value for value in values if isinstance(value, int | float)]
    return numbers if len(numbers) == len(values) else [str(value) for value in values]
