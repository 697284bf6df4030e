"""Tells a graph that waits for a person from one that has answered, and waits for what comes next.

LangGraph reports of an interrupt by ``interrupt()`` only the node that it is in, and of one by
``interrupt_before`` or ``interrupt_after`` nothing at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from claimspan_langchain._messages import SPELLINGS, role_of, text_of
from claimspan_tracing.adapters import Run, RunKind, is_list, is_mapping, is_review

__all__ = ["MESSAGES_KEY", "is_interrupted"]

MESSAGES_KEY: Final = "messages"
"""Where a graph's state keeps its conversation."""

INTERRUPT_KEY: Final = "__interrupt__"
"""Output key that LangGraph adds when a graph has stopped to wait for a person."""

INTERRUPT_NAME: Final = "GraphInterrupt"
"""The exception with which LangGraph ends what waits. Compared by name because langgraph is no
dependency of this package."""

THREAD_KEY: Final = "thread_id"
"""Metadata key of a graph that keeps its state, and so may go on with it later."""


def is_interrupted(
    root: Run, response: Callable[[], str], completions: Callable[[], Sequence[str]]
) -> bool:
    """Whether a graph waits for a person before it answers, or the task was cancelled.

    A conversation that waits for its next question has answered this one.

    Args:
        root: A root.
        response: Returns what the user may see of it; only few records go so far.
        completions: Returns what models have said in it.
    """
    if root.failed_with(asyncio.CancelledError):
        return True
    if _is_waiting(root):
        return not _has_answered(root, completions())
    return _has_stopped(root) and not response().strip()


def _is_waiting(root: Run) -> bool:
    if is_mapping(root.outputs) and INTERRUPT_KEY in root.outputs:
        return True
    # Else the output lacks the key, and only the waiting node fails.
    runs = root.tree.runs
    waits = [run.end or 0 for run in _waiting(root)]
    # A root that resumes its graph itself goes on after that.
    return bool(waits) and all(run.start <= max(waits) for run in runs)


def _waiting(root: Run) -> list[Run]:
    return [r for r in root.tree.runs if r.error and r.error.__name__ == INTERRUPT_NAME]


def _has_answered(root: Run, completions: Sequence[str]) -> bool:
    """Whether the conversation ends with what a model has said now, and no person is to check."""
    messages = root.outputs.get(MESSAGES_KEY) if is_mapping(root.outputs) else None
    if not is_list(messages) or not messages or role_of(messages[-1]) not in SPELLINGS["ai"]:
        return False
    said = text_of(messages[-1])
    is_said_now = bool(said.strip()) and said in completions
    reviewed = any(is_review(run.name) for run in _waiting(root))
    return is_said_now and not reviewed and not _calls_tools(root)


def _has_stopped(root: Run) -> bool:
    """Whether a graph with a memory has ended before a model answered: by ``interrupt_before``."""
    if root.error is not None or not is_mapping(root.outputs) or THREAD_KEY not in root.metadata:
        return False
    retrieves = bool(root.tree.of_kind(RunKind.RETRIEVER))
    return _calls_tools(root) or (retrieves and not root.tree.of_kind(RunKind.GENERATOR))


def _calls_tools(root: Run) -> bool:
    """Whether the last model has called a tool that nobody has run."""
    models = root.tree.of_kind(RunKind.GENERATOR)
    if not models or models[-1].has_ancestor(RunKind.RETRIEVER):
        return False
    last = models[-1]
    ended = last.end or last.start
    is_last = all(run.start <= ended or run.error is not None for run in root.tree.runs)
    return is_last and _has_calls(last.outputs)


def _has_calls(result: object) -> bool:
    if not isinstance(result, LLMResult) or not result.generations or not result.generations[0]:
        return False
    first = result.generations[0][0]
    message = first.message if isinstance(first, ChatGeneration) else None
    return isinstance(message, AIMessage) and bool(message.tool_calls)
