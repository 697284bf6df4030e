"""Tells how a span ended: well, with an error, because its reader left, or to wait for a person."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from claimspan_openinference._groups import Group
from claimspan_openinference._kinds import ENCLOSING, kind_of
from claimspan_openinference._messages import answered, inside_of, parsed, text_of_parts
from claimspan_openinference._said import attributes_of
from claimspan_tracing import semconv
from claimspan_tracing.adapters import Run, RunKind, is_list, is_mapping, is_review

__all__ = ["WaitsForPersonError", "error_of", "is_interrupted", "was_left"]

NO_OUTPUT: Final = frozenset({"", "null", "None"})
"""What a span has for an output that returned nothing."""

INTERRUPT_KEY: Final = "__interrupt__"
"""Key that LangGraph adds to the output of a graph that waits for a person."""

THREAD_KEY: Final = "thread_id"
"""Key in the metadata of a graph that keeps its state, and so may go on with it later."""

_DESCRIBED: Final = re.compile(r"(?:[\w.]+: )?(\w+)\b")
"""The class of an exception at the beginning of a span's description of its status."""


class WaitsForPersonError(Exception):
    """A node of a graph has ended to wait for a person."""


_KNOWN: Final[dict[str, type[BaseException]]] = {
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": SystemExit,
    "GraphInterrupt": WaitsForPersonError,
    "NodeInterrupt": WaitsForPersonError,
}
"""Exceptions that are no errors of the application, by name: a span tells no more of them."""


def error_of(span: ReadableSpan) -> type[BaseException] | None:
    """Return what ended a span; None where it ended well. The exception itself is gone."""
    found = _KNOWN.get(_exception_of(span))
    if span.status.is_ok:
        # An instrumentation may take a wait for no error; what was caught is none.
        return found if found is WaitsForPersonError else None
    return found or RuntimeError


def was_left(group: Group) -> bool:
    """Whether the reader of a stream has left, before the model below had said all."""
    if not group.is_running or not group.top.status.is_ok:
        return False
    attributes = group.top.attributes or {}
    output = str(attributes.get(semconv.OUTPUT_VALUE, "")).strip()
    if kind_of(attributes) not in ENCLOSING:
        return False
    if output in NO_OUTPUT:
        return True
    said = [answered(each).strip() for each in group.prompts]
    return not any(text and (text in output or output in text) for text in said)


def is_interrupted(root: Run, response: Callable[[], str]) -> bool:
    """Whether a graph waits for a person before it answers.

    A conversation that waits for its next question has answered this one.

    Args:
        root: A root.
        response: Returns what the user may see of it; only few records go so far.
    """
    output = parsed(attributes_of(root).get(semconv.OUTPUT_VALUE))
    if _is_waiting(root, output):
        return not _has_answered(root, output)
    return _has_stopped(root) and not response().strip()


def _exception_of(span: ReadableSpan) -> str:
    """The name of the class of the last exception that a span tells of."""
    told = [each.attributes or {} for each in span.events if each.name == semconv.EVENT_EXCEPTION]
    named = str(told[-1].get(semconv.EVENT_EXCEPTION_TYPE, "")) if told else ""
    described = _DESCRIBED.match(span.status.description or "")
    return named.rpartition(".")[2] or (described.group(1) if described else "")


def _is_waiting(root: Run, output: object) -> bool:
    if is_mapping(output) and INTERRUPT_KEY in output:
        return True
    # A root that resumes its graph itself goes on after that.
    waits = [run.end or 0 for run in _waiting(root)]
    return bool(waits) and all(run.start <= max(waits) for run in root.tree.runs)


def _waiting(root: Run) -> list[Run]:
    return [run for run in root.tree.runs if run.failed_with(WaitsForPersonError)]


def _has_answered(root: Run, output: object) -> bool:
    """Whether the conversation ends with what a model has said now, and no person is to check."""
    messages = output.get("messages") if is_mapping(output) else None
    last = messages[-1] if is_list(messages) and messages else None
    if not is_mapping(last) or _calls_tools(root):
        return False
    said = text_of_parts(inside_of(last).get("content")).strip()
    models = root.tree.of_kind(RunKind.GENERATOR)
    is_said_now = bool(said) and said in {answered(attributes_of(run)).strip() for run in models}
    return is_said_now and not any(is_review(run.name) for run in _waiting(root))


def _has_stopped(root: Run) -> bool:
    """Whether a graph with a memory has ended before a model answered: by ``interrupt_before``."""
    kept = parsed(attributes_of(root).get(semconv.METADATA))
    if root.error is not None or not is_mapping(kept) or THREAD_KEY not in kept:
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
    return is_last and semconv.output_message(0, semconv.MESSAGE_TOOL_CALL) in attributes_of(last)
