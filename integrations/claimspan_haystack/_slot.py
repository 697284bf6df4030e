"""Haystack's slot for a tracer: takes it, notices when another tracer replaces ours, gives it back.

Haystack has one tracer for the whole process, ``haystack.tracing.tracer.actual_tracer``, and
``enable_tracing`` replaces it without notice.
"""

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


# Those that were not undone. By number: a caller who keeps no reference wants it all the same.
_wanted: Final = set[int]()


class Instrumentation:
    """The result of ``instrument``. Calling it detaches the tracer; calling it twice is safe."""

    def __init__(self, tracer: ClaimspanTracer) -> None:
        """Watch a tracer that is about to be enabled."""
        # Only Haystack's slot and the runs under way refer to the tracer. It is collected when
        # another tracer takes the slot without wrapping it, and that is how we notice.
        self._tracer = weakref.ref(tracer)
        self._dropped = weakref.finalize(tracer, _warn)
        self._dropped.atexit = False
        _wanted.add(id(self))

    @property
    def active(self) -> bool:
        """Whether our tracer is in Haystack's slot, by itself or under other tracers of ours.

        Also False where a tracer of another package wraps ours, which still captures then.
        """
        mine = self._tracer()
        return mine is not None and mine.capturing and any(mine is ours for ours in _ours())

    def __call__(self) -> None:
        """Restore the tracer that was enabled before; a tracer that has replaced ours stays."""
        with _lock:
            self._dropped.detach()
            _wanted.discard(id(self))
            mine = self._tracer()
            if mine is None:
                return
            # Another package's tracer may wrap ours for good: it then only passes calls on.
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
    """Capture every pipeline of this process.

    Haystack has one slot for a tracer. Ours takes the slot and passes every call on to the tracer
    that was there, so call this after everything else that enables tracing. A warning is logged
    when a later ``enable_tracing`` replaces ours. A monitor is attached once, however often this
    is called.

    Args:
        monitor: Evaluates the records and writes the scores; None uses the monitor that the
            process shares.
        query_key: Where the user's question is in the input of the pipeline: a key, a dotted path
            such as ``retriever.query``, or a callable that takes the input. None tries the usual
            names.
        response_key: Where the answer is in the output of the pipeline, in the same forms.
        options: Options of ``Monitor``; whoever gives equal ones shares a monitor.

    Returns:
        Detaches the tracer when it is called.

    Raises:
        ConfigError: Both a monitor and options are given, or an option is invalid.
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


def is_capturing() -> bool:
    """Whether a tracer of ours is in the slot, by itself or wrapping others."""
    return any(each.capturing for each in _ours())


def has_captured() -> bool:
    """Whether ``instrument`` was called, and was not undone since."""
    return bool(_wanted)


def _ours() -> Iterator[ClaimspanTracer]:
    """Yield our tracers in the slot, the outermost first; there is one for each monitor."""
    found: Tracer = tracer.actual_tracer
    while isinstance(found, ClaimspanTracer):
        yield found
        found = found.theirs


def _warn() -> None:
    _logger.warning(
        "another tracer has replaced claimspan's in Haystack: queries are no longer captured; "
        "call claimspan_haystack.instrument() after everything else that enables tracing"
    )
