"""Attaches to Haystack's one tracer, beside whatever the application enables in it.

``haystack.tracing.tracer`` passes each call on to its ``actual_tracer``, which ``enable_tracing``
replaces at any time: Langfuse's connector does when a pipeline is built. Ours is therefore not put
there. It takes the place of the two methods that Haystack calls, and passes each call on to them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, Unpack

from haystack import component, default_from_dict, default_to_dict
from haystack.tracing.tracer import Span, Tracer, tracer

from claimspan_haystack._reader import HaystackReader
from claimspan_haystack._tracer import ClaimspanTracer
from claimspan_tracing.adapters import (
    Key,
    Monitor,
    MonitorOptions,
    default_monitor,
    open_capture,
    takes_place_of,
    warn_of_several,
)

_lock: Final = threading.RLock()


class _Enabled(Tracer):
    """Haystack's tracer as it is without us: it calls the one that is enabled at the moment."""

    # The methods of the class are looked up for each call, so that a patch of them is called, too.
    def trace(  # type: ignore[override]  # the class returns the same, made from a generator
        self,
        operation_name: str,
        tags: dict[str, Any] | None = None,
        parent_span: Span | None = None,
    ) -> AbstractContextManager[Span]:
        return type(tracer).trace(tracer, operation_name, tags=tags, parent_span=parent_span)

    def current_span(self) -> Span | None:
        return type(tracer).current_span(tracer)


class Instrumentation:
    """The result of ``instrument``. Calling it detaches the tracer; calling it twice is safe."""

    def __init__(self, mine: ClaimspanTracer, reader: HaystackReader) -> None:
        self.tracer: Final = mine
        self.reader: Final = reader

    @property
    def active(self) -> bool:
        """Whether our tracer is attached, whatever other tracer Haystack has enabled."""
        return self in _attached

    def __call__(self) -> None:
        """Detach our tracer; the tracer that Haystack has enabled stays."""
        with _lock:
            # Another package may have taken hold of our methods: they only pass calls on then.
            self.tracer.capturing = False
            if not self.active:
                return
            was_called = is_called()
            place = _attached.index(self)
            for outer in _attached[place + 1 : place + 2]:
                outer.tracer.theirs = self.tracer.theirs
            del _attached[place]
            if was_called:
                _take_calls()


_attached: Final = list[Instrumentation]()
"""One for each monitor. The last one is called by Haystack, and each calls the one before."""


def instrument(
    monitor: Monitor | None = None,
    *,
    query_key: Key | None = None,
    response_key: Key | None = None,
    **options: Unpack[MonitorOptions],
) -> Instrumentation:
    """Capture every pipeline of this process.

    The tracer that Haystack has enabled hears the same as without us. Another one may be enabled
    later, or none by ``disable_tracing``: pipelines are captured until this is undone. A monitor is
    attached once, however often this is called, and one that means the same as one that is attached
    takes its place, as if each of several wrappers of a server makes one.

    Args:
        monitor: Evaluates the records and writes the scores; None uses the monitor that the
            process shares.
        query_key: Where the user's question is in the input of the pipeline: a key, a dotted path
            such as ``retriever.query``, or a callable that takes the input. None tries the usual
            names. What is given for a monitor that is attached already takes the place of what it
            had.
        response_key: Where the answer is in the output of the pipeline, in the same forms.
        options: Options of ``Monitor``; equal ones share a monitor.

    Returns:
        Detaches the tracer when it is called.

    Raises:
        ConfigError: Both a monitor and options are given, or an option is invalid.
    """
    monitor = default_monitor(monitor, options)
    with _lock:
        for each in tuple(_attached):
            if each.tracer.monitor is monitor:
                each.reader.look_at(query_key, response_key)
                return each
            if takes_place_of(monitor, each.tracer.monitor):
                each()
        reader = HaystackReader(query_key, response_key)
        theirs = _attached[-1].tracer if _attached else _Enabled()
        mine = ClaimspanTracer(theirs, monitor, open_capture(monitor, reader))
        _attached.append(Instrumentation(mine, reader))
        _take_calls()
        warn_of_several(len(_attached))
        return _attached[-1]


def is_attached() -> bool:
    """Whether ``instrument`` was called, and was not undone since."""
    return bool(_attached)


def is_called() -> bool:
    """Whether Haystack calls our tracer; another package may have replaced its methods."""
    return bool(_attached) and vars(tracer).get("trace") == _attached[-1].tracer.trace


def _take_calls() -> None:
    """Have Haystack call the last tracer of ours, or the methods of the class if there is none."""
    for name in ("trace", "current_span"):
        if _attached:
            setattr(tracer, name, getattr(_attached[-1].tracer, name))
        else:
            vars(tracer).pop(name, None)


_SERIALISABLE: Final = (str, int, float, bool)


@component
class ClaimspanConnector:
    """Captures every pipeline of the process from the moment the component is created.

    Add it to a pipeline and connect it to nothing: ``pipeline.add_component("claimspan",
    ClaimspanConnector())``. Haystack has one tracer for the whole process, so other pipelines are
    captured as well.
    """

    # What a serialised pipeline says the component is. Haystack loads nothing from packages that it
    # does not know, and knows the name that integrations share.
    __module__ = "haystack_integrations.components.connectors.claimspan"

    def __init__(
        self,
        monitor: Monitor | None = None,
        *,
        query_key: Key | None = None,
        response_key: Key | None = None,
        **options: Unpack[MonitorOptions],
    ) -> None:
        """Instrument the process.

        Args:
            monitor: Evaluates the records and writes the scores; None uses the monitor that the
                process shares.
            query_key: Where the user's question is; as in ``instrument``.
            response_key: Where the answer is; as in ``instrument``.
            options: Options of ``Monitor``; equal ones share a monitor.

        Raises:
            ConfigError: Both a monitor and options are given, or an option is invalid.
        """
        given: Mapping[str, object] = {
            "query_key": query_key,
            "response_key": response_key,
            **options,
        }
        self._settings = _serialisable(given)
        self.undo = instrument(monitor, query_key=query_key, response_key=response_key, **options)

    @component.output_types(active=bool)
    def run(self) -> dict[str, Any]:
        """Report whether queries are captured.

        Returns:
            ``active``: False after ``undo``.
        """
        return {"active": self.undo.active}

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that can be serialised: texts, numbers and paths.

        A monitor, a judge, a sampler or a callable exists in one process only and is left out. The
        component that is loaded makes a monitor from the other settings, or uses the shared one.
        """
        return default_to_dict(self, **self._settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ClaimspanConnector:
        """Create the component from ``to_dict``; this instruments the process that loads it."""
        loaded: ClaimspanConnector = default_from_dict(cls, data)
        return loaded


def _serialisable(given: Mapping[str, object]) -> dict[str, object]:
    settings = {k: str(v) if isinstance(v, Path) else v for k, v in given.items()}
    return {key: value for key, value in settings.items() if isinstance(value, _SERIALISABLE)}
