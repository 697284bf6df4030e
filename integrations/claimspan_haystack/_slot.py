"""Haystack's one slot for a tracer: getting in, noticing that we were put out, getting out."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Iterator
from typing import Final, Unpack

from haystack.tracing.tracer import Tracer, enable_tracing, tracer

from claimspan_haystack._reader import HaystackReader
from claimspan_haystack._tracer import ClaimspanTracer
from claimspan_tracing.adapters import Key, Monitor, MonitorOptions, default_monitor, open_capture

__all__ = ["Instrumentation", "instrument"]

_logger: Final = logging.getLogger("claimspan")
_lock: Final = threading.RLock()


class Instrumentation:
    """What ``instrument`` did; called, it undoes that. Safe to call twice."""

    def __init__(self, tracer: ClaimspanTracer) -> None:
        """Watch a tracer that is about to be enabled.

        The slot alone keeps it alive, and the runs that are under way. So it goes when another
        tracer takes the slot without wrapping it, and that is how we notice.
        """
        self._tracer = weakref.ref(tracer)
        self._dropped = weakref.finalize(tracer, _warn)
        self._dropped.atexit = False

    @property
    def active(self) -> bool:
        """Whether Haystack's tracing still leads to us, as far as our own tracers tell.

        False too where a tracer of somebody else wraps ours, and passes everything on to it.
        """
        mine = self._tracer()
        return mine is not None and mine.capturing and any(mine is ours for ours in _ours())

    def __call__(self) -> None:
        """Put the tracer back that was enabled before; if another is in the slot, leave it."""
        with _lock:
            self._dropped.detach()
            mine = self._tracer()
            if mine is None:
                return
            mine.capturing = False
            if tracer.actual_tracer is mine:
                enable_tracing(mine.theirs)
            for outer in _ours():
                if outer.theirs is mine:
                    outer.theirs = mine.theirs


_handles: Final = weakref.WeakKeyDictionary[ClaimspanTracer, Instrumentation]()


def instrument(
    monitor: Monitor | None = None,
    *,
    query_key: Key | None = None,
    response_key: Key | None = None,
    **options: Unpack[MonitorOptions],
) -> Instrumentation:
    """Capture every pipeline that this process runs, and have a sample of the queries evaluated.

    Haystack has one slot for a tracer. Ours takes it and passes everything on to the one that was
    there: call this after the others. Where a later ``enable_tracing`` puts ours out, a warning is
    logged. Instrumenting again with a monitor that is already at work changes nothing.

    Args:
        monitor: Evaluates and writes the scores; None takes the one that the process shares.
        query_key: Where the user's question is in the pipeline's input: a key, a dotted path such
            as ``retriever.query``, or a callable that takes the input. None tries the usual names.
        response_key: Where the answer is in the pipeline's output, in the same three forms.
        options: Keyword options of ``Monitor``, for a monitor of its own.

    Returns:
        Undoes it when called.

    Raises:
        ConfigError: ``monitor`` and options are both given, or an option cannot work.
    """
    monitor = default_monitor(monitor, options)
    with _lock:
        for ours in _ours():
            if ours.monitor is monitor and ours.capturing:
                return _handles[ours]
        capture = open_capture(monitor, HaystackReader(query_key, response_key))
        mine = ClaimspanTracer(tracer.actual_tracer, monitor, capture)
        _handles[mine] = Instrumentation(mine)
        enable_tracing(mine)
        return _handles[mine]


def _ours() -> Iterator[ClaimspanTracer]:
    """Our tracers in the slot, the outermost first."""
    found: Tracer = tracer.actual_tracer
    while isinstance(found, ClaimspanTracer):
        yield found
        found = found.theirs


def _warn() -> None:
    _logger.warning(
        "another tracer has taken claimspan's place in Haystack: queries are no longer captured; "
        "call claimspan_haystack.instrument() after everything else that enables tracing"
    )
