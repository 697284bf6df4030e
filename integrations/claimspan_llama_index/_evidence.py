"""Finds plain texts that a model may have read as evidence: results of tools, texts of steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from llama_index.core.tools import BaseTool

from claimspan_llama_index._context import call_of, runs_below
from claimspan_llama_index._snapshots import Fields, ToolResult, documents_of
from claimspan_llama_index._texts import answer_in, items, question_of
from claimspan_tracing.adapters import Run, RunKind, RunTree, is_echo

__all__ = ["evidence_in", "has_found", "unfound"]

MIN_FOUND: Final = 40
"""Characters from which on a text that a step hands on is taken for something that was found.
Names, languages and decisions are shorter."""


HANDED_OVER: Final = " is now handling the request due to the following reason: "
"""What the tool says by which agents of an ``AgentWorkflow`` hand a conversation over."""


LOADED: Final = "Content loaded! You can now search the information using "
"""What the first tool of a ``LoadAndSearchToolSpec`` says; the second one finds something."""


def has_found(text: str) -> bool:
    """Whether the result of a tool is more than a note of LlamaIndex's own."""
    return HANDED_OVER not in text and not text.startswith(LOADED)


def unfound(tree: RunTree) -> set[str]:
    """Return what tools have said that found nothing: their errors, and what models told them."""
    # An agent catches what a tool raises, and hands on a result of its own.
    held = (each for run in tree.runs for each in _held(run.outputs))
    errors = {each.text.strip() for each in held if isinstance(each, ToolResult) and each.is_error}
    tools = (run for run in tree.runs if isinstance(call_of(run).instance, BaseTool))
    return errors | {*map(_echoed, tools)}


def _held(outputs: object) -> Iterable[object]:
    return outputs.values() if isinstance(outputs, Fields) else (outputs,)


def _echoed(run: Run) -> str:
    """What a tool repeated of its arguments; empty where it found something."""
    text = run.outputs.text if isinstance(run.outputs, ToolResult) else ""
    return text.strip() if is_echo(text, call_of(run).flat().values()) else ""


def evidence_in(run: Run) -> Sequence[str]:
    """Return the texts that a tool, a step of a workflow or a function has brought.

    Not what a model has written below it, such as the answer of another engine: that rests on
    documents of its own.
    """
    if run.parent is None or run.kind is not RunKind.CHAIN or call_of(run).is_beside:
        return ()
    if isinstance(call_of(run).instance, BaseTool):
        texts = [run.outputs.text] if isinstance(run.outputs, ToolResult) else []
        texts = [text for text in texts if has_found(text) and not _echoed(run)]
        texts = [] if documents_of(run.outputs) else texts
    elif isinstance(run.outputs, Fields):
        texts = [text for text in _texts(run.outputs) if len(text) >= MIN_FOUND]
    else:
        return ()
    written = _written_by_models(run) if texts else []
    asked = question_of(call_of(run.tree.root)).strip()
    return [text for text in texts if not _is_known(text, asked, written)]


def _texts(fields: Fields) -> Iterator[str]:
    for value in fields.values():
        if isinstance(value, str):
            yield value
        else:
            yield from (each for each in items(value) if isinstance(each, str))


def _written_by_models(run: Run) -> list[str]:
    """What models have said so far: below a tool, or anywhere before a step hands it on."""
    is_tool = isinstance(call_of(run).instance, BaseTool)
    runs = runs_below(run) if is_tool else run.tree.runs
    said = (answer_in(each.outputs).strip() for each in runs if each.kind is RunKind.GENERATOR)
    return [text for text in said if text]


def _is_known(text: str, asked: str, written: Sequence[str]) -> bool:
    """Whether a text is the question, a prompt with it, or what a model has written."""
    if asked and asked in text:
        return True
    return any(text.strip() in each or each in text for each in written)
