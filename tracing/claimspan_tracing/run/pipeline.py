"""The seam for pipelines: how an integration recognises those of its framework, and asks them.

An integration registers a module under the entry-point group ``claimspan.pipelines``, by the name
of the framework's top module (``langchain_core``). It is imported only if that module already
is: an object of a framework comes with the framework.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Protocol, cast

from claimspan.errors import ConfigError, MissingExtraError
from claimspan_tracing.monitor import Monitor

__all__ = [
    "AttachedPipeline",
    "Framework",
    "Inputs",
    "adapted",
    "attach_all",
    "filled",
    "made_by",
]

GROUP: Final = "claimspan.pipelines"
"""Entry-point group: the framework's top module to a module that is a ``Framework``."""

QUERY: Final = "{query}"
"""What the question takes the place of, in the value of an input."""

Inputs = Mapping[str, str]
"""Name of an input of the pipeline to its value, in which ``{query}`` stands for the question."""


@dataclass(frozen=True, slots=True)
class AttachedPipeline:
    """A pipeline that is captured, and can be asked."""

    ask: Callable[[str], object]
    """Asks a question. Its result is awaited if it can be; the record comes from the capture."""

    detach: Callable[[], object] = lambda: None
    """Ends the capture."""

    is_serial: bool = False
    """Whether only one question may be asked at a time, such as if it keeps a conversation."""


class Framework(Protocol):
    """What an integration registers: it knows the pipelines of its framework."""

    def adapt(self, target: object, monitor: Monitor, inputs: Inputs) -> AttachedPipeline | None:
        """Attach the monitor to a pipeline as the framework's own users do.

        Args:
            target: What the user gave.
            monitor: Takes the records.
            inputs: The inputs that the user named; empty if they are to be found out.

        Returns:
            None if the object is no pipeline of the framework.

        Raises:
            ConfigError: It is one, and cannot be asked so.
        """
        ...

    def attach(self, monitor: Monitor) -> Callable[[], object]:
        """Capture every pipeline of the process, for a function that calls one.

        Returns:
            Ends the capture.
        """
        ...


def adapted(target: object, monitor: Monitor, inputs: Inputs) -> AttachedPipeline | None:
    """Attach the monitor to a pipeline of any installed framework; None if it is of none."""
    tops = {base.__module__.partition(".")[0] for base in type(target).__mro__}
    for entry in _entries():
        if entry.name in tops:
            found = _loaded(entry).adapt(target, monitor, inputs)
            if found is not None:
                return found
    return None


def attach_all(monitor: Monitor) -> list[Callable[[], object]]:
    """Capture the pipelines of every framework that is imported; returns what ends it."""
    # By its value: a framework registers under several top modules, and is attached once.
    imported = {entry.value: entry for entry in _entries() if entry.name in sys.modules}
    undo: list[Callable[[], object]] = []
    for entry in imported.values():
        # A part of a framework may be installed without what an integration needs.
        with suppress(MissingExtraError):
            undo.append(_loaded(entry).attach(monitor))
    return undo


def filled(inputs: Inputs, query: str) -> dict[str, str]:
    """Return the inputs with a question in them."""
    return {name: value.replace(QUERY, query) for name, value in inputs.items()}


def _entries() -> Iterable[EntryPoint]:
    return sorted(entry_points(group=GROUP), key=lambda entry: entry.name)


def _loaded(entry: EntryPoint) -> Framework:
    try:
        return cast("Framework", entry.load())
    except ImportError as error:
        raise ConfigError(
            f"the integration of {entry.name!r} cannot be imported ({type(error).__name__}: "
            f"{error}): install or upgrade it"
        ) from error


def made_by(found: object) -> object:
    """Return what a factory makes, and anything else as it is.

    A function that can be called with a question is a pipeline itself; one without arguments is a
    factory. It may be asynchronous.

    Args:
        found: The object that the user has named, and no framework knows.

    Raises:
        ConfigError: It is no function, or the factory fails.
    """
    if not callable(found):
        raise ConfigError(
            f"a {type(found).__name__} is no pipeline: give a chain, an engine or a pipeline of an "
            "installed framework, a function from question to answer, or one that makes these"
        )
    try:
        signature = inspect.signature(found)
    except (TypeError, ValueError):  # a function of C says nothing about itself
        return found
    with suppress(TypeError):
        signature.bind("question")
        return found
    try:
        return found()
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"the function that makes the pipeline raised {type(error).__name__}: {error}"
        ) from error
