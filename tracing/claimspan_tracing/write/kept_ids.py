"""A tracer of the SDK whose spans get ids that are known beforehand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import (
    Link,
    SpanContext,
    SpanKind,
    TraceFlags,
    Tracer,
    TraceState,
    format_span_id,
    format_trace_id,
    get_current_span,
)
from opentelemetry.util.types import Attributes

from claimspan_tracing import semconv
from claimspan_tracing.scope import tracer_of

__all__ = ["KeptIds", "evaluation_span_id"]


EVALUATION_SPANS: Final = (semconv.SPAN_EVALUATE, semconv.SPAN_ANNOTATIONS)
"""Names of the spans that carry claims or scores; a root has at most one of each."""


def evaluation_span_id(trace_id: int, span_id: int, name: str = semconv.SPAN_EVALUATE) -> int:
    """Return the id of a span that carries claims or scores of a root.

    It follows from the root's and from its name, so that one that is written again is the same
    span.
    """
    text = f"{format_trace_id(trace_id)}/{format_span_id(span_id)}/{name}"
    # An id of 0 is not valid; it comes up once in 2**64.
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") or 1


class KeptIds(RandomIdGenerator, Sampler):
    """Gives the spans of one tracer their ids, and the decision made when they were started first.

    The SDK asks for a new trace id, then for a decision, which knows the span's name and parent,
    and then for a span id, all on one thread.
    """

    def __init__(self, started: Callable[[SpanContext, int], None]) -> None:
        """Set who is told of each evaluation span: the context of its root, and its own id."""
        self._started = started
        self._local = threading.local()

    def tracer(self, provider: TracerProvider) -> Tracer:
        """Return a tracer on the resource, limits and span processors of a provider."""
        remade = TracerProvider(
            sampler=self,
            resource=provider.resource,
            shutdown_on_exit=False,
            active_span_processor=provider._active_span_processor,  # pyright: ignore[reportPrivateUsage] - no public name; in the list of what we lean on
            id_generator=self,
            span_limits=provider._span_limits,  # pyright: ignore[reportPrivateUsage] - as above
        )
        return tracer_of(remade)

    @contextmanager
    def using(self, root: SpanContext, span_ids: Sequence[int]) -> Generator[None]:
        """Give the next spans of this thread these ids, in their order, and the root's trace."""
        self._local.root, self._local.ids = root, list(span_ids)
        try:
            yield
        finally:
            self._local.root, self._local.ids = None, []

    def generate_trace_id(self) -> int:
        """Return the kept trace id."""
        root = self._root
        return super().generate_trace_id() if root is None else root.trace_id

    def generate_span_id(self) -> int:
        """Return the next kept span id; a new one if none is left."""
        ids: list[int] = getattr(self._local, "ids", [])
        return ids.pop(0) if ids else super().generate_span_id()

    def is_trace_id_random(self) -> bool:
        """Return what the kept flags say (W3C trace context, level 2)."""
        root = self._root
        return root is None or bool(root.trace_flags & 2)

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Decide as was decided about the root."""
        above = get_current_span(parent_context).get_span_context()
        root = self._root or above
        if name in EVALUATION_SPANS:
            span_id = evaluation_span_id(above.trace_id, above.span_id, name)
            self._local.ids = [span_id]
            if root.trace_flags & TraceFlags.SAMPLED:
                self._started(above, span_id)
        sampled = bool(root.trace_flags & TraceFlags.SAMPLED)
        decision = Decision.RECORD_AND_SAMPLE if sampled else Decision.DROP
        return SamplingResult(decision, attributes, root.trace_state)

    def get_description(self) -> str:
        """Return what this sampler does."""
        return "the decision that was made when the spans were started first"

    @property
    def _root(self) -> SpanContext | None:
        root: object = getattr(self._local, "root", None)
        return root if isinstance(root, SpanContext) else None
