"""Shared monitors: equal options mean one monitor, however often an integration is set up.

An application may make a handler for every request. A monitor for each of them would start threads,
open files and connections at every request, and split the queue and the budget.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Final

from opentelemetry.trace import TracerProvider

from claimspan.errors import ConfigError
from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.blocking import may_block
from claimspan_tracing.lifecycle import restart_in_child
from claimspan_tracing.monitor import Monitor, MonitorOptions

__all__ = ["default_monitor", "takes_place_of", "warn_of_several"]

_logger: Final = logging.getLogger("claimspan")

MAX_MONITORS: Final = 16
"""Monitors that are kept for equal options; an application has one or a few. One that is pushed out
ends its threads when nothing refers to it any more."""

_PLAIN: Final = (str, int, float, bool, Path, type(None))


class _Shared:
    """The monitors by their options, the one that was asked for last at the end."""

    def __init__(self) -> None:
        # The options are kept with the monitor: a key may hold the identity of one of them.
        self.monitors: OrderedDict[Hashable, tuple[Monitor, MonitorOptions]] = OrderedDict()
        self.lock = threading.RLock()
        restart_in_child(self)

    def restart_in_child(self) -> None:
        """Make a new lock: a thread of the parent may have held it at the fork."""
        self.lock = threading.RLock()


_shared: Final = _Shared()
_several_were_told: Final = threading.Event()


def default_monitor(monitor: Monitor | None, options: MonitorOptions) -> Monitor:
    """Return the monitor that an integration works with.

    Args:
        monitor: One that the application made; wins.
        options: Options of a monitor. Calls with equal ones share it: plain values and mappings are
            compared by value, files by name and time of change, everything else by identity.

    Raises:
        ConfigError: Both are given, the monitor is no ``Monitor``, or an option cannot work.
    """
    if monitor is not None:
        # Callers without a type checker pass a handler or the name of a judge. Without this line
        # the first query would fail, and not the set-up.
        if not isinstance(monitor, Monitor):  # pyright: ignore[reportUnnecessaryIsInstance] - see above
            raise ConfigError(
                f"monitor is of type {type(monitor).__name__}: give a Monitor, such as "
                "Monitor(sample=0.05), or its options by name"
            )
        if options:
            given = ", ".join(sorted(options))
            raise ConfigError(f"monitor and {given} are both given: put the options on the monitor")
        return monitor
    key = frozenset((name, _key(value)) for name, value in options.items())
    with may_block(), _shared.lock:
        key |= {("read", _changed(options.get("ground_truth")))}
        found = _shared.monitors.get(key)
        # One that was shut down takes no more records: the next caller needs another.
        if found is None or found[0].is_shut_down:
            found = _shared.monitors[key] = (Monitor(**options), options)
        _shared.monitors.move_to_end(key)
        while len(_shared.monitors) > MAX_MONITORS:
            _shared.monitors.popitem(last=False)
        return found[0]


def takes_place_of(new: Monitor, old: Monitor) -> bool:
    """Return whether a monitor means the same as one that is attached, and so takes its place.

    A cell of a notebook that runs again, a module that is loaded anew, and each of several wrappers
    of a server make such monitors. If both heard every query, each would be evaluated twice.

    They mean the same if their options are equal, or if the same line has made both and the options
    differ only in which objects they hold: judges are told apart by name and version, all else by
    its type.
    """
    if new is old:
        return True
    if _meaning(new, _key) == _meaning(old, _key):
        return True
    return new.made_at == old.made_at and _meaning(new, _kind) == _meaning(old, _kind)


def warn_of_several(attached: int) -> None:
    """Warn, once in the process, that more than one monitor hears every query of a framework.

    That is seldom meant: a script or a cell that runs again attaches the monitor that it makes.

    Args:
        attached: How many monitors an integration has attached.
    """
    if attached < 2 or _several_were_told.is_set():
        return
    _several_were_told.set()
    _logger.warning(
        "%d monitors are attached by instrument(), and each of them records and evaluates every "
        "query. A monitor of the same options takes the place of the one before; if a script or a "
        "cell has run again with others, first call what instrument() has returned before",
        attached,
    )


def _meaning(monitor: Monitor, key: Callable[[object], Hashable]) -> Hashable:
    return frozenset((name, key(value)) for name, value in monitor.given.items())


def _key(value: object, key_of_object: Callable[[object], Hashable] = id) -> Hashable:
    """The key by which two values of an option are equal; a set is compared by identity."""
    if isinstance(value, _PLAIN):
        # 1 and True are equal in Python, and are not the same option.
        return type(value).__name__, value
    if is_mapping(value):
        items = [(_key(n, key_of_object), _key(e, key_of_object)) for n, e in value.items()]
        return "mapping", frozenset(items)
    if is_list(value):
        return "list", tuple(_key(each, key_of_object) for each in value)
    return "object", key_of_object(value)


def _kind(value: object) -> Hashable:
    """As ``_key``, with the objects of two runs of the same code as equals."""
    return _key(value, lambda each: (type(each), *_named(each)))


def _named(each: object) -> tuple[str, ...]:
    """What tells two objects of a type apart: the names of judges, the place of providers."""
    if isinstance(each, TracerProvider):
        return (str(id(each)),)
    return tuple(str(getattr(each, name, "")) for name in ("name", "version"))


def _changed(value: object) -> int:
    """When a file of ground truths was changed, in nanoseconds: a monitor reads it once."""
    if not isinstance(value, str | Path):
        return 0
    try:
        return Path(value).stat().st_mtime_ns
    except (OSError, ValueError):  # the monitor will say what is wrong with it
        return 0
