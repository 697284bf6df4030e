"""Finds the nodes that the answering synthesizer was given, and what it had from other ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.response_synthesizers import Generation as WithoutNodes

from claimspan_llama_index._snapshots import Call, documents_of
from claimspan_llama_index._texts import answer_in
from claimspan_tracing.adapters import Document, Run, RunKind

__all__ = ["call_of", "is_counted", "nodes_read", "runs_below"]

SYNTHESIZING: Final = (".synthesize", ".asynthesize")


def call_of(run: Run) -> Call:
    """Return what a run was called with."""
    return run.inputs if isinstance(run.inputs, Call) else Call(None, {})


def runs_below(root: Run) -> list[Run]:
    """Return a run and all that ran below it."""
    # In the order of their start, so that a run comes after its parent.
    below = {id(root)}
    for run in root.tree.runs:
        if run.parent is not None and id(run.parent) in below:
            below.add(id(run))
    return [run for run in root.tree.runs if id(run) in below]


def is_counted(run: Run, root: Run) -> bool:
    """Whether a run may have to do with the answer: no attempt that failed, and no work beside."""
    if call_of(run).is_beside:
        return False
    each: Run | None = run
    while each is not None and each is not root:
        if each.error is not None:
            return False
        each = each.parent
    return True


def nodes_read(root: Run, answer: str) -> list[Document] | None:
    """Return the nodes that the answer was made of; None where no synthesizer gave it.

    An engine may ask another one and answer from its answers, as with sub-questions. It may also
    have thrown answers away.

    Args:
        root: The run that answered.
        answer: What it answered.
    """
    syntheses = [run for run in runs_below(root) if _is_synthesis(run) and is_counted(run, root)]
    last = next((run for run in reversed(syntheses) if _said(run) == answer.strip()), None)
    if last is None or _is_repeated(last, root):
        return None
    nodes = _nodes(last)
    if not call_of(last).arguments.get("additional_source_nodes"):
        return [*_each_once(nodes)]
    # Its nodes are answers to other questions; those who gave them have read the real sources.
    texts = [str(node.text) for node in nodes]
    gave = [run for run in syntheses if run is not last and _is_handed_on(_said(run), texts)]
    return [*_each_once(node for run in gave for node in _nodes(run))]


def _is_synthesis(run: Run) -> bool:
    is_synthesizer = isinstance(call_of(run).instance, BaseSynthesizer)
    return is_synthesizer and str(run.name).endswith(SYNTHESIZING)


def _is_repeated(synthesis: Run, root: Run) -> bool:
    """Whether a model has given the same answer later: an agent that repeats what a tool said."""
    place = {id(run): i for i, run in enumerate(root.tree.runs)}
    inner = {id(run) for run in runs_below(synthesis)}
    return any(
        run.kind is RunKind.GENERATOR
        and id(run) not in inner
        and place[id(run)] > place[id(synthesis)]
        and is_counted(run, root)
        and _said(run) == _said(synthesis)
        for run in runs_below(root)
    )


def _said(run: Run) -> str:
    return answer_in(run.outputs).strip()


def _is_handed_on(said: str, texts: Iterable[str]) -> bool:
    return bool(said) and any(said in text for text in texts)


def _nodes(run: Run) -> list[Document]:
    """The nodes that a synthesizer was given; ``Generation`` ignores its nodes."""
    call = call_of(run)
    if isinstance(call.instance, WithoutNodes):
        return []
    return documents_of(call.arguments.get("nodes"))


def _each_once(documents: Iterable[Document]) -> Iterator[Document]:
    seen: set[object] = set()
    for document in documents:
        if document.id not in seen:
            seen.add(document.id)
            yield document
