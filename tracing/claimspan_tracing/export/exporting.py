"""Exporting: whether the spans of a tracer provider leave the process at all.

A provider without an exporter takes every span and says nothing. It comes about where a span
processor takes the place of the exporter: ``add_span_processor`` of the provider that Phoenix's
``register()`` returns removes the exporter that it had.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from claimspan.text.shapes import is_list

__all__ = ["exports", "processors_of", "warn_of_no_exporter"]

_logger: Final = logging.getLogger("claimspan")


def processors_of(chain: object) -> tuple[object, ...]:
    """Return the span processors of a provider.

    Args:
        chain: What the provider passes its spans to: ``_active_span_processor`` of a provider,
            ``_span_processor`` of a span.
    """
    found: object = getattr(chain, "_span_processors", ())
    return tuple(found) if is_list(found) else ()


def exports(chain: object) -> bool:
    """Whether a provider has a span processor that may bring spans out of the process.

    Only ours are known not to. Any other may export by itself, as Langfuse's and Logfire's do.

    Args:
        chain: As for ``processors_of``.
    """
    processors = processors_of(chain)
    # An SDK whose names have moved shows no processors, and is not blamed for it.
    if not processors and not hasattr(chain, "_span_processors"):
        return True
    return any(getattr(each, "exports_spans", True) for each in processors)


_was_said: Final = threading.Event()


def warn_of_no_exporter() -> None:
    """Warn that a provider has no exporter, once in the process."""
    if _was_said.is_set():
        return
    _was_said.set()
    _logger.warning(
        "no span of claimspan leaves this process: the tracer provider has no exporter, and scores "
        "are lost. Add one to it. Where it had one until "
        "add_span_processor(ClaimspanSpanProcessor()) took its place, as with Phoenix's "
        "register(), call claimspan_openinference.instrument(tracer_provider=provider) instead"
    )
