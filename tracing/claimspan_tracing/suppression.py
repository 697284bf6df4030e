"""Suppression of instrumentation: set around code of the user's, honoured by every capture.

OpenTelemetry keeps the switch under a key that its API does not export. Instrumentations look
at one of the two keys below (``opentelemetry.instrumentation.utils`` sets both), so both are set
and both are honoured.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Context
from typing import Final, TypeVar, TypeVarTuple

from opentelemetry import context as otel_context
from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY,  # pyright: ignore[reportPrivateUsage] - the API exports no other name for it
)
from opentelemetry.context import Context as OtelContext

from claimspan_tracing.blocking import free_context

__all__ = ["is_suppressed", "is_suppressed_by_us", "run_suppressed", "run_unsuppressed", "suppress"]

_KEYS: Final = (_SUPPRESS_INSTRUMENTATION_KEY, "suppress_instrumentation")

_OURS: Final = otel_context.create_key("claimspan-suppressed")
"""Set beside the two: Logfire suppresses instrumentation around the span processors given to it, so
that there the two keys say nothing about the code that has ended a span."""

# Made once: each ``set_value`` copies a context.
_SUPPRESSED: Final = OtelContext(dict.fromkeys((*_KEYS, _OURS), True))
"""An empty context in which instrumentation is suppressed."""

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


def is_suppressed() -> bool:
    """Whether instrumentation is switched off in the current context."""
    current = otel_context.get_current()
    return bool(current.get(_KEYS[0]) or current.get(_KEYS[1]))


def is_suppressed_by_us() -> bool:
    """Whether ``suppress`` was called in the current context, or in one that it is a copy of."""
    return bool(otel_context.get_value(_OURS))


def suppress() -> None:
    """Switch instrumentation off for the rest of the current context.

    Nothing switches it on again: call this only in a context that ends with the work, such as
    that of a task or of a ``Context.run``.
    """
    _set_all(True)


def run_suppressed(function: Callable[[*_Ts], _T], *args: *_Ts) -> _T:
    """Call a function in an empty context with instrumentation suppressed.

    For samplers, readers and sinks of the user's: one that is built on a framework must not be
    captured as a query, which would be handed to it in turn, without end.
    """

    def call() -> _T:
        otel_context.attach(_SUPPRESSED)
        return function(*args)

    return free_context().run(call)


def run_unsuppressed(context: Context, function: Callable[[*_Ts], _T], *args: *_Ts) -> _T:
    """Call a function in a copy of a request's context, with instrumentation switched on.

    For spans and events of ours. The context may have been taken where instrumentation was
    suppressed, such as in a span processor that Logfire calls; tracers and processors that heed
    the switch would drop what we write.
    """

    def call() -> _T:
        if is_suppressed():
            _set_all(False)
        return function(*args)

    # A copy, since a context can be entered only once at a time.
    return free_context(context).run(call)


def _set_all(value: bool) -> None:
    # Never detached: a token would have to outlive the task, or the call.
    current = otel_context.get_current()
    for key in (*_KEYS, _OURS):
        current = otel_context.set_value(key, value, current)
    otel_context.attach(current)
