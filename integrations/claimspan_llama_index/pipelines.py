"""LlamaIndex's pipelines for ``claimspan run``: query engines, chat engines and agents."""

# pyright: reportUnknownMemberType=false
# LlamaIndex leaves the types of its indices open.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.chat_engine.types import BaseChatEngine
from llama_index.core.indices.base import BaseIndex
from llama_index.core.workflow import Workflow

from claimspan.errors import ConfigError
from claimspan_llama_index._spans import instrument
from claimspan_tracing.adapters import AttachedPipeline, Inputs, Monitor, filled

__all__ = ["adapt", "attach"]


def adapt(target: object, monitor: Monitor, inputs: Inputs) -> AttachedPipeline | None:
    """Instrument LlamaIndex, and ask an engine, an index or an agent.

    Args:
        target: What the user gave. A chat engine forgets its conversation before each question.
        monitor: Takes the records.
        inputs: Arguments of a workflow's ``run``; an agent takes ``user_msg``.

    Returns:
        None if the object is none of these.

    Raises:
        ConfigError: There are inputs, and the object takes the question alone.
    """
    ask = _ask(target, inputs)
    if ask is None:
        return None
    if inputs and not isinstance(target, Workflow):
        raise ConfigError(
            f"a {type(target).__name__} takes the question and nothing else: leave --input out"
        )
    return AttachedPipeline(
        ask, detach=instrument(monitor), is_serial=isinstance(target, BaseChatEngine)
    )


def attach(monitor: Monitor) -> Callable[[], object]:
    """Capture every engine of the process; returns what ends it."""
    return instrument(monitor)


def _ask(target: object, inputs: Inputs) -> Callable[[str], object] | None:
    match target:
        case BaseIndex():
            return _ask(target.as_query_engine(), inputs)  # pyright: ignore[reportUnknownArgumentType] - any index
        case BaseQueryEngine():
            return lambda query: _read(target.query(query))
        case BaseChatEngine():
            return lambda query: _chat(target, query)
        case Workflow():
            return lambda query: _run(target, filled(inputs or {"user_msg": "{query}"}, query))
        case _:
            return None


def _chat(engine: BaseChatEngine, query: str) -> object:
    # Else the answers depend on the order in which the questions are asked.
    engine.reset()
    return engine.chat(query)


async def _run(workflow: Any, arguments: Mapping[str, str]) -> object:  # a workflow's are any
    return await workflow.run(**arguments)


def _read(response: object) -> object:
    """Read a streamed answer to its end: its record ends there."""
    read = getattr(response, "get_response", None)
    return read() if callable(read) else response
