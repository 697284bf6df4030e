"""Tells a graph that waits for a person from one that has answered.

LangGraph reports of an interrupt by ``interrupt()`` only the node that it is in, and of one by
``interrupt_before`` or ``interrupt_after`` nothing at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from claimspan.text.shapes import is_mapping
from claimspan_tracing.capture.runs import Run, RunKind
from claimspan_tracing.grades import is_review

__all__ = ["THREAD_KEY", "WAITS", "waits_for_person"]

INTERRUPT_KEY: Final = "__interrupt__"
"""Output key that LangGraph adds when a graph has stopped to wait for a person."""

WAITS: Final = ("GraphInterrupt", "NodeInterrupt")
"""The exceptions with which LangGraph ends a node that waits, by name: nothing here imports it."""

THREAD_KEY: Final = "thread_id"
"""Metadata key of a graph that keeps its state, and so may go on with it later."""


def waits_for_person(
    root: Run,
    output: object,
    metadata: object,
    *,
    is_said_last: Callable[[], bool],
    calls_tools: Callable[[], bool],
    has_answer: Callable[[], bool],
) -> bool:
    """Whether a graph waits for a person before it answers.

    A conversation that waits for its next question has answered this one, unless a person is to
    check the answer.

    Args:
        root: The run of the graph.
        output: What it has returned.
        metadata: What it was called with beside its input.
        is_said_last: Tells whether its conversation ends with what a model has said now.
        calls_tools: Tells whether its last model has called a tool that was not run.
        has_answer: Tells whether an answer is found in it.
    """
    runs = root.tree.runs
    # The output lacks the key if only the node that waits fails.
    waiting = [run for run in runs if run.error and run.error.__name__ in WAITS]
    # A root that resumes its graph itself goes on after they have ended.
    ended = max([run.end or 0 for run in waiting], default=0)
    says_so = is_mapping(output) and INTERRUPT_KEY in output
    if says_so or (waiting and all(run.start <= ended for run in runs)):
        checks = any(is_review(run.name) for run in waiting if run is not root)
        return checks or calls_tools() or not is_said_last()
    if root.error is not None or not is_mapping(metadata) or THREAD_KEY not in metadata:
        return False
    models = root.tree.of_kind(RunKind.GENERATOR)
    has_stopped = calls_tools() or (not models and bool(root.tree.of_kind(RunKind.RETRIEVER)))
    return has_stopped and not has_answer()
