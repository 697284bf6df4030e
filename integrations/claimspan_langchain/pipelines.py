"""LangChain's and LangGraph's pipelines for ``claimspan run``: anything with ``invoke``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from uuid import uuid4

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig

from claimspan.errors import ConfigError
from claimspan_langchain._handler import ClaimspanCallbackHandler, instrument
from claimspan_tracing.adapters import (
    QUESTION_NAMES,
    AttachedPipeline,
    Inputs,
    Monitor,
    filled,
    is_mapping,
)

__all__ = ["adapt", "attach"]

MESSAGES_KEY: Final = "messages"

Asked = str | Mapping[str, object]


def adapt(target: object, monitor: Monitor, inputs: Inputs) -> AttachedPipeline | None:
    """Attach the callback to a chain or a graph, in its config.

    Args:
        target: What the user gave.
        monitor: Takes the records.
        inputs: Keys of the chain's input; empty to find out what its first step wants.

    Returns:
        None if the object is no Runnable.

    Raises:
        ConfigError: Its first step wants a mapping, and none of its keys is known as the question.
    """
    if not isinstance(target, Runnable):
        return None
    chain: Runnable[Any, Any] = target  # pyright: ignore[reportUnknownVariableType] - any Runnable
    shape = partial(filled, inputs) if inputs else _shape_of(chain)
    handler = ClaimspanCallbackHandler(monitor)

    def ask(query: str) -> object:
        return chain.invoke(shape(query), _config(chain, handler))

    return AttachedPipeline(ask)


def attach(monitor: Monitor) -> Callable[[], object]:
    """Capture every chain of the process; returns what ends it."""
    return instrument(monitor)


def _config(chain: object, handler: ClaimspanCallbackHandler) -> RunnableConfig:
    config: RunnableConfig = {"callbacks": [handler]}
    if getattr(chain, "checkpointer", None):
        # A graph with a memory: each question is a conversation of its own.
        config["configurable"] = {"thread_id": uuid4().hex}
    return config


def _shape_of(chain: Runnable[Any, Any]) -> Callable[[str], Asked]:
    """What the first step wants, by its schema: a text, or a mapping with one key for it."""
    # The state first: a graph whose state has no schema fails if it is asked for one.
    wanted = _keys_of_state(chain) or _keys_of_schema(chain)
    if wanted is None:
        return lambda query: query
    if (name := next((key for key in QUESTION_NAMES if key in wanted), None)) is not None:
        return lambda query: {name: query}
    # After the names of a question: a graph may take both, and then keeps messages for itself.
    if MESSAGES_KEY in wanted:
        return lambda query: {MESSAGES_KEY: [HumanMessage(query)]}
    if len(wanted) == 1:
        return lambda query: {wanted[0]: query}
    raise ConfigError(
        f"the chain takes {', '.join(sorted(wanted))}: say which is the question, with "
        f"--input {wanted[0]}={{query}}"
    )


def _keys_of_state(chain: object) -> list[str] | None:
    """The keys of a graph's state, which pydantic cannot describe for every class."""
    builder: object = getattr(chain, "builder", None)
    # LangGraph before 1.0 calls it ``input``.
    state: object = getattr(builder, "input_schema", None) or getattr(builder, "input", None)
    named: object = getattr(state, "__annotations__", None)
    return [str(key) for key in named] if is_mapping(named) else None


def _keys_of_schema(chain: Runnable[Any, Any]) -> list[str] | None:
    """The keys of a mapping that a chain takes; None if it takes a text, or does not say."""
    try:
        schema: object = chain.get_input_jsonschema()
    except Exception:  # noqa: BLE001 - a schema of the user's own types may not exist as JSON
        return None
    if not is_mapping(schema):
        return None
    if is_mapping(named := schema.get("$defs")) and isinstance(
        reference := schema.get("$ref"), str
    ):
        schema = named.get(reference.rpartition("/")[2], schema)
    properties = schema.get("properties") if is_mapping(schema) else None
    return [str(key) for key in properties] if is_mapping(properties) and properties else None
