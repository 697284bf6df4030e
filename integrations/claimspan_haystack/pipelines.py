"""Haystack's pipelines for ``claimspan run``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import haystack
from haystack import Pipeline
from haystack.dataclasses import ChatMessage

from claimspan.errors import ConfigError
from claimspan_haystack._instrument import instrument
from claimspan_tracing.adapters import AttachedPipeline, Inputs, Monitor, filled

__all__ = ["adapt", "attach"]

QUERY_SOCKETS: Final = ("query", "question")
"""Inputs that take the question wherever they are free."""

MANDATORY_SOCKETS: Final = ("text", "prompt", "user_input", "input")
"""Inputs that take the question if the pipeline cannot run without them."""

MESSAGES: Final = "messages"

_KINDS: Final = (Pipeline, getattr(haystack, "AsyncPipeline", Pipeline))
"""Before Haystack 3, asynchronous pipelines are of a class of their own."""


def adapt(target: object, monitor: Monitor, inputs: Inputs) -> AttachedPipeline | None:
    """Instrument Haystack, and run a pipeline.

    Args:
        target: What the user gave.
        monitor: Takes the records.
        inputs: ``component.socket`` to value; empty to find the free inputs that are named as
            questions are.

    Returns:
        None if the object is no pipeline.

    Raises:
        ConfigError: No input can be the question, or a name is no ``component.socket``.
    """
    if not isinstance(target, _KINDS):
        return None
    # Older versions have a kind of pipeline more, with the same ``run``.
    pipeline = cast("Pipeline", target)
    data = _data_given(inputs) if inputs else _data_of(pipeline)

    def ask(query: str) -> object:
        return pipeline.run(data(query))

    return AttachedPipeline(ask, detach=instrument(monitor))


def attach(monitor: Monitor) -> Callable[[], object]:
    """Capture every pipeline of the process; returns what ends it."""
    return instrument(monitor)


def _data_given(inputs: Inputs) -> Callable[[str], dict[str, Any]]:
    sockets = {name: name.partition(".") for name in inputs}
    for name, (component, dot, socket) in sockets.items():
        if not (component and dot and socket):
            raise ConfigError(f"--input {name} is no input of Haystack: write component.socket")

    def data(query: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, value in filled(inputs, query).items():
            component, _, socket = sockets[name]
            made.setdefault(component, {})[socket] = value
        return made

    return data


def _data_of(pipeline: Pipeline) -> Callable[[str], dict[str, Any]]:
    free = list(_free(pipeline))
    # "text" and "prompt" also name optional settings, which have to stay as the pipeline has them.
    texts = [
        (place, socket)
        for place, socket, is_mandatory in free
        if socket in QUERY_SOCKETS or (is_mandatory and socket in MANDATORY_SOCKETS)
    ]
    messages = [place for place, socket, is_needed in free if is_needed and socket == MESSAGES]
    if not texts and not messages:
        raise ConfigError(
            "the pipeline has no free input that is named as a question is: say where it goes, "
            "with --input component.socket={query}"
        )

    def data(query: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for component, socket in texts:
            made.setdefault(component, {})[socket] = query
        for component in messages:
            made.setdefault(component, {})[MESSAGES] = [ChatMessage.from_user(query)]
        return made

    return data


def _free(pipeline: Pipeline) -> Iterator[tuple[str, str, bool]]:
    """The inputs that no other component fills: component, name, whether it has to be filled."""
    inputs: Mapping[str, Mapping[str, Mapping[str, Any]]] = pipeline.inputs()
    for component, sockets in inputs.items():
        for name, socket in sockets.items():
            yield component, name, bool(socket.get("is_mandatory"))
