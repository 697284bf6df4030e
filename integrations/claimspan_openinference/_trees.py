"""Makes a run tree of the spans of a record."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import INVALID_SPAN_CONTEXT, NonRecordingSpan

from claimspan_openinference._groups import Group
from claimspan_openinference._kinds import (
    APART,
    ENCLOSING,
    attributes_of,
    exception_of,
    kind_of,
    kind_of_span,
    told_of_exception,
)
from claimspan_openinference._messages import answered
from claimspan_openinference._reader import SpanReader
from claimspan_tracing import semconv
from claimspan_tracing.adapters import WAITS, Run, RunKind, RunTree, request_context

__all__ = ["tree_of", "tree_of_unfinished"]

_KINDS: Final = {
    semconv.KIND_RETRIEVER: RunKind.RETRIEVER,
    semconv.KIND_LLM: RunKind.GENERATOR,
}


def tree_of(group: Group, reader: SpanReader) -> RunTree:
    """Return a record's spans as runs, the root first.

    A span whose parent is missing is put below the root. Where retrieval and answer stood side by
    side, the root is none of the spans, and its scores go to the one that answered.
    """
    top = group.top
    tree = _empty_tree(top, reader)
    root = _run(top, tree) if group.joined_below is None else _root_of_joined(group, tree)
    root.metadata = SpanReader.metadata(top.attributes or {})
    tree.runs.append(root)
    tree.dropped = group.left_out
    if group.is_lost:
        # It takes more than the queue has room for, so it is refused there, and says why.
        root.inputs = root.outputs = {}
        tree.size = sys.maxsize
        return tree
    if was_left(group):
        root.error = GeneratorExit
    tree.size += group.size
    members = [span for span in group.spans if group.joined_below is not None or span is not top]
    made = [(span, _run(span, tree)) for span in members]
    tree.runs += sorted([run for _, run in made], key=lambda run: run.start)
    runs = {run.span_id: run for _, run in made}
    if group.joined_below is None:
        runs[_id(top)] = root
    for span, run in made:
        above = _above(span, runs, group.links)
        # Ids may go round in circles, if they are made up.
        run.parent = root if above is None or above.is_part_of(run) else above
    for run in tree.runs[1:]:
        _set_apart(run)
    reject_attempts(tree.runs[1:])
    return tree


def tree_of_unfinished(span: ReadableSpan, reader: SpanReader) -> RunTree:
    """Return a record whose topmost span has not ended, and will not be waited for."""
    tree = _empty_tree(span, reader)
    root = _run(span, tree)
    root.end = root.error = None
    root.metadata = SpanReader.metadata(span.attributes or {})
    tree.runs.append(root)
    return tree


def _empty_tree(span: ReadableSpan, reader: SpanReader) -> RunTree:
    # The span has ended: one that does not record stands for it, and carries its ids.
    context = span.get_span_context() or INVALID_SPAN_CONTEXT
    return RunTree(NonRecordingSpan(context), reader, request_context())


def _root_of_joined(group: Group, tree: RunTree) -> Run:
    root = _run(group.top, tree)
    if kind_of(attributes_of(root)) not in ENCLOSING:
        # What a model read and said is the prompt and the answer, and not the question.
        root.inputs = root.outputs = {}
    root.id, root.kind, root.name, root.span_id = object(), RunKind.CHAIN, group.joined_below, 0
    root.start = min(span.start_time or root.start for span in (group.top, *group.spans))
    return root


def _above(span: ReadableSpan, runs: dict[int, Run], links: dict[int, int]) -> Run | None:
    """The run of the nearest span above that is a part of the record."""
    span_id = span.parent.span_id if span.parent else 0
    for _ in range(len(links) + 1):  # as above: they may go round in circles
        if span_id in runs or span_id not in links:
            break
        span_id = links[span_id]
    return runs.get(span_id)


def _set_apart(run: Run) -> None:
    """Take a model or a retriever in a check, or in a reranker, for no part of the answer."""
    spans = ((each.id, attributes_of(each)) for each in run.around())
    kinds = {kind_of_span(s) if isinstance(s, ReadableSpan) else kind_of(a) for s, a in spans}
    if kinds & (APART - {semconv.KIND_RETRIEVER}):
        run.kind = RunKind.CHAIN


def _run(span: ReadableSpan, tree: RunTree) -> Run:
    attributes = span.attributes or {}
    return Run(
        id=span,
        tree=tree,
        parent=None,
        kind=_KINDS.get(kind_of(attributes), RunKind.CHAIN),
        name=span.name,
        start=span.start_time or 0,
        inputs=attributes,
        metadata={},
        end=span.end_time,
        outputs=attributes,
        error=error_of(span),
        failure=told_of_exception(span, semconv.EVENT_EXCEPTION_MESSAGE),
        span_id=_id(span),
    )


def _id(span: ReadableSpan) -> int:
    context = span.get_span_context()
    return 0 if context is None else context.span_id


_RETRYING: Final = re.compile(r"(Retry(?:Source|Guideline)?QueryEngine)\.")
"""Names of the spans of such an engine. It asks again with another one of its class."""


class RejectedAnswerError(Exception):
    """An answer did not pass, and the engine asks again."""


def reject_attempts(runs: Sequence[Run]) -> None:
    """Mark what an engine has tried before it asked again as failed, of runs in their order."""
    engines = [run for run in runs if _retrying(run) and run.parent is not None]
    again = [run for run in engines if _is_asked_again(run)]
    for run in runs:
        later = (each for each in again if each.parent is run.parent and each is not run)
        if run.error is None and any(run.start < each.start for each in later):
            run.error = RejectedAnswerError


def _is_asked_again(run: Run) -> bool:
    """Whether an engine is asked by another one, and not by the public method of its own."""
    above = run.parent
    is_same = above is not None and _retrying(above) == _retrying(run)
    return is_same and above is not None and not _is_public(above) and _is_public(run)


def _is_public(run: Run) -> bool:
    return str(run.name).rpartition(".")[2] in ("query", "aquery")


def _retrying(run: Run) -> str:
    found = _RETRYING.match(str(run.name))
    return "" if found is None else found.group(1)


NO_OUTPUT: Final = frozenset({"", "null", "None"})
"""What a span has for an output that returned nothing."""


_KNOWN: Final[dict[str, type[BaseException]]] = {
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "KeyboardInterrupt": KeyboardInterrupt,
    "SystemExit": SystemExit,
    **{name: type(name, (Exception,), {}) for name in WAITS},
}
"""Exceptions that are no errors of the application, by name: a span tells no more of them."""


def error_of(span: ReadableSpan) -> type[BaseException] | None:
    """Return what ended a span; None where it ended well. The exception itself is gone."""
    found = _KNOWN.get(exception_of(span))
    if span.status.is_ok:
        # An instrumentation may take a wait for no error; what was caught is none.
        return found if exception_of(span) in WAITS else None
    return found or RuntimeError


def was_left(group: Group) -> bool:
    """Whether the reader of a stream has left, before the model below had said all."""
    if group.is_left:
        return True
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
