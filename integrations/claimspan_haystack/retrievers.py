"""Calls Haystack's retrievers, for what evaluates them by `claimspan.retrievers`.

A retriever here is a component that takes a query and returns documents, or a pipeline whose open
inputs are texts: the query goes to each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from haystack import Document, Pipeline
from haystack.core.component import Component

from claimspan.errors import ConfigError
from claimspan.files.chunks import plain_metadata
from claimspan.records import Chunk

__all__ = ["adapt", "read"]


def adapt(target: object) -> Callable[[str], object] | None:
    """Return what takes a query and returns documents; None if the target is no retriever."""
    if isinstance(target, Pipeline):
        return _of_pipeline(target)
    if isinstance(target, Component):
        return _of_component(target)
    return None


def read(document: object) -> Chunk | None:
    """Return a document of Haystack as a chunk; None if it is none."""
    if not isinstance(document, Document):
        return None
    return Chunk(
        id=document.id,
        text=document.content or "",
        score=document.score,
        metadata=plain_metadata(document.meta),
    )


def _of_component(component: Component) -> Callable[[str], object]:
    warm_up: object = getattr(component, "warm_up", None)
    if callable(warm_up):  # a pipeline does so by itself
        warm_up()
    return lambda query: _documents({"": component.run(query=query)})


def _of_pipeline(pipeline: Pipeline) -> Callable[[str], object]:
    inputs = {name: _texts(sockets) for name, sockets in pipeline.inputs().items()}
    wanted = {name: keys for name, keys in inputs.items() if keys}
    if not wanted:
        raise ConfigError(
            "the pipeline has no open input for a query: connect all inputs but those for texts"
        )
    return lambda query: _documents(
        pipeline.run({name: dict.fromkeys(keys, query) for name, keys in wanted.items()})
    )


def _texts(sockets: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Names of the inputs that must be given, and are texts."""
    return [name for name, each in sockets.items() if each["type"] is str and each["is_mandatory"]]


def _documents(outputs: Mapping[str, Mapping[str, object]]) -> list[object]:
    """The documents that a pipeline returns.

    Raises:
        ConfigError: It returns none, or several lists of them.
    """
    values = (value for sockets in outputs.values() for value in sockets.values())
    lists = [cast("list[object]", value) for value in values if isinstance(value, list)]
    # Two retrievers side by side have no common order, and the order is what is measured.
    if len(lists) != 1:
        raise ConfigError(
            f"the retriever returned {len(lists)} lists of documents: give a retriever, or a "
            "pipeline that ends in one or in a joiner"
        )
    return lists[0]
