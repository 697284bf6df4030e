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

__all__ = ["is_suppressed", "run_suppressed", "suppress"]

_KEYS: Final = (_SUPPRESS_INSTRUMENTATION_KEY, "suppress_instrumentation")


_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


def is_suppressed() -> bool:
    """Whether instrumentation is switched off in the current context."""
    current = otel_context.get_current()
    return any(current.get(key) for key in _KEYS)


def suppress() -> None:
    """Switch instrumentation off for the rest of the current context.

    Nothing switches it on again: call this only in a context that ends with the work, such as
    that of a task or of a ``Context.run``.
    """
    # Never detached, as the docstring says: a token would have to outlive the task.
    current = otel_context.get_current()
    for key in _KEYS:
        current = otel_context.set_value(key, True, current)
    otel_context.attach(current)


def run_suppressed(function: Callable[[*_Ts], _T], *args: *_Ts) -> _T:
    """Call a function in an empty context with instrumentation suppressed.

    For samplers, readers and sinks of the user's: one that is built on a framework must not be
    captured as a query, which would be handed to it in turn, without end.
    """

    def call() -> _T:
        suppress()
        return function(*args)

    return Context().run(call)
