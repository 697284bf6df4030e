"""Finds what was said in a record, by its runs: the last word, or the whole of a beginning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from claimspan_openinference._kinds import Attributes
from claimspan_openinference._messages import answered, prompted
from claimspan_openinference._reasoning import final_answer
from claimspan_openinference._structures import STATE_KEY, structured_below
from claimspan_tracing import semconv
from claimspan_tracing.adapters import Run, RunKind, is_mapping

__all__ = [
    "NOTE_OF_STRUCTURE",
    "attributes_of",
    "last_answer",
    "said_last",
    "structured_answer",
    "whole_result",
]

NOTE_OF_STRUCTURE: Final = "Returning structured response: "
"""How the message begins that an agent of LangChain's writes in place of its structured answer."""

MIN_SEEN: Final = 20
"""Characters of what a model has said by which it is found in what a workflow has returned."""


def attributes_of(run: Run) -> Attributes:
    """The attributes of the span that a run stands for."""
    return cast(Attributes, run.outputs) if is_mapping(run.outputs) else {}


def said_last(root: Run, given: Sequence[object]) -> object:
    """Of several answers the one that was said last, since those before it were thrown away.

    What a model made of the first one, such as a title, is none.
    """
    first = str(given[0])
    for run in root.tree.of_kind(RunKind.GENERATOR)[::-1]:
        said = answered(attributes_of(run))
        found = next((each for each in given if said and str(each) == said), None)
        if found is not None and first not in prompted(attributes_of(run)):
            return found
    return given[0]


def whole_result(root: Run, beginning: str) -> str:
    """The text that a workflow has returned, by its beginning; empty where no run has it.

    A model may have said but the end of what is seen: the workflow has put words before it.
    """
    said = [answered(attributes_of(run)) for run in root.tree.of_kind(RunKind.GENERATOR)[::-1]]
    outputs = [attributes_of(run).get(semconv.OUTPUT_VALUE) for run in root.tree.runs[:0:-1]]
    texts = [*said, *(each for each in outputs if isinstance(each, str))]
    whole = next((text for text in texts if text.startswith(beginning)), "")
    parts = (text for text in said if text[:MIN_SEEN] in beginning and len(text) >= MIN_SEEN)
    return whole or next(parts, "")


def structured_answer(root: Run) -> str:
    """The structured answer that an agent keeps in its state, and returns beside its messages."""
    outputs = (attributes_of(run).get(semconv.OUTPUT_VALUE) for run in reversed(root.tree.runs))
    kept = (each for each in outputs if isinstance(each, str) and STATE_KEY in each)
    return next((text for each in kept if (text := structured_below(each))), "")


def last_answer(root: Run) -> str:
    """What the last model said that answered, and that did not rewrite the query."""
    runs = [run for run in root.tree.of_kind(RunKind.GENERATOR) if run is not root]
    answering = (run for run in runs[::-1] if not run.has_ancestor(RunKind.RETRIEVER))
    found = next((said for run in answering if (said := answered(attributes_of(run)))), "")
    return final_answer(found)
