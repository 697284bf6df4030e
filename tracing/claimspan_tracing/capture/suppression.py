"""Suppression of instrumentation: set around the judge, honoured by every capture.

OpenTelemetry keeps the switch under a key that its API does not export. Instrumentations look
at one of the two keys below (``opentelemetry.instrumentation.utils`` sets both), so both are set
and both are honoured.
"""

from __future__ import annotations

from typing import Final

from opentelemetry import context as otel_context
from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY,  # pyright: ignore[reportPrivateUsage] - the API exports no other name for it
)

__all__ = ["is_suppressed", "suppress"]

_KEYS: Final = (_SUPPRESS_INSTRUMENTATION_KEY, "suppress_instrumentation")


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
