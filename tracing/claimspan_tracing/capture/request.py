"""The context variables of a request that a record keeps until it is written."""

from __future__ import annotations

from contextvars import Context, ContextVar, copy_context
from typing import Final

__all__ = ["leave_out", "request_context"]

_left_out: Final[dict[ContextVar[object], object]] = {}


def leave_out(variable: ContextVar[object], value: object) -> None:
    """Keep a variable of a framework out of what a record keeps.

    A record lives until it is judged, seconds after its request. A variable through which a
    framework finds its own running objects would keep these alive as long.

    Args:
        variable: Of no use to a span processor of the application's.
        value: What it is set to instead, such as its default.
    """
    _left_out[variable] = value


def request_context() -> Context:
    """Return a copy of the current context, without the variables that are left out."""
    # Copying a context takes constant time; the copy is entered where spans are built.
    context = copy_context()
    for variable, value in _left_out.items():
        if context.get(variable, value) is not value:
            context.run(variable.set, value)
    return context
