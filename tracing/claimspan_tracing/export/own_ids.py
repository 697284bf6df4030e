"""Ids of our spans, drawn beside the random numbers of the application."""

from __future__ import annotations

import os
import random
from typing import Final

from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.trace import Tracer

__all__ = ["draw_own_ids"]

# Not the operating system's: asking it lets go of the interpreter's lock, which the application's
# thread then has to wait for.
_source: Final = random.Random()  # noqa: S311 - an id is no secret
# A forked child would draw the same ids as its parent.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_source.seed)


class _OwnIds(RandomIdGenerator):
    """Random ids that take nothing from the module ``random``.

    The generator of the SDK does, so that an application that has seeded it would get other
    numbers with us than without.
    """

    def generate_span_id(self) -> int:
        """Return 64 random bits."""
        return _source.getrandbits(64) or self.generate_span_id()

    def generate_trace_id(self) -> int:
        """Return 128 random bits."""
        return _source.getrandbits(128) or self.generate_trace_id()


def draw_own_ids(tracer: Tracer) -> None:
    """Have a tracer that is ours alone draw its ids from a source of their own.

    Args:
        tracer: One of the SDK. Another's is left as it is, and so is one with a generator of the
            application's, such as that of AWS X-Ray.
    """
    if type(getattr(tracer, "id_generator", None)) is RandomIdGenerator:
        setattr(tracer, "id_generator", _OwnIds())  # noqa: B010 - the API's class has no such name
