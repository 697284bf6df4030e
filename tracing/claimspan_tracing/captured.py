"""From a run tree to what it means: texts cleaned once, chunks in order, the state it is in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import JsonValue

from claimspan import Chunk
from claimspan.text.abstention import abstains
from claimspan_tracing.guard import Guard
from claimspan_tracing.reading import Document, Generation, Retrieval
from claimspan_tracing.runs import Run, RunKind, RunTree
from claimspan_tracing.status import Status
from claimspan_tracing.text import clean, cut, to_json

__all__ = ["Captured", "CapturedGeneration", "CapturedRetrieval", "read_tree"]

MAX_CHUNKS: Final = 100
"""Chunks kept of one record; the others are counted."""

MAX_CHUNK_BYTES: Final = 64 * 1024
"""Bytes of one chunk that a judge gets to read."""

MAX_TEXT_BYTES: Final = 64 * 1024
"""Bytes kept of a query, a response, a prompt or a completion."""

MAX_ABSTENTION: Final = 600
"""Characters; who writes more than that has said something."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CapturedRetrieval:
    """One outermost retriever run, readable."""

    run: Run
    query: str
    chunks: tuple[Chunk, ...]
    id_sources: tuple[str, ...]
    """``document`` or ``content_hash``, one for each chunk."""
    found: int
    """Number of documents before any was cut off."""
    source: str


@dataclass(frozen=True, slots=True)
class CapturedGeneration:
    """One generator run, readable."""

    run: Run
    prompt: str
    completion: str
    model: str
    provider: str
    input_tokens: int | None
    output_tokens: int | None


@dataclass(frozen=True, slots=True)
class Captured:
    """Everything that a run tree says about one query."""

    tree: RunTree
    query: str
    response: str
    retrievals: tuple[CapturedRetrieval, ...]
    generations: tuple[CapturedGeneration, ...]
    context: tuple[Chunk, ...] | None
    """What the generator read, where the run tells; None: what the retrievers returned."""
    metadata: Mapping[str, object]
    abstained: bool
    """Whether the response declines to answer."""
    status: Status | None
    """The state that the pipeline's own outcome puts the record in; None: to be evaluated."""
    reason: str
    """Why; empty where there is nothing to add."""

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """What the generator read: the context, else the union of what the retrievers returned."""
        return self.retrieved if self.context is None else self.context[:MAX_CHUNKS]

    @property
    def retrieved(self) -> tuple[Chunk, ...]:
        """The union of what the retrievers returned, in order, each once."""
        union = {(c.id, c.text): c for retrieval in self.retrievals for c in retrieval.chunks}
        return tuple(union.values())[:MAX_CHUNKS]


def read_tree(tree: RunTree, guard: Guard) -> Captured:
    """Read a finished tree. What cannot be read is empty, and counted by the guard."""
    root, reader = tree.root, tree.reader
    retrievals = _retrievals(tree, guard) or _unreported(tree, guard)
    generations = tuple(
        _generation(run, _try(guard, reader.generation, run, Generation()))
        for run in tree.of_kind(RunKind.GENERATOR)
        if not run.has_ancestor(RunKind.GENERATOR)
    )
    context = _try(guard, reader.context, root, None)
    read = None if context is None else tuple(_chunk(document)[0] for document in context)
    response = _text(_try(guard, reader.response, root, None))
    interrupted = _try(guard, reader.interrupted, root, False)
    status, reason = _outcome(tree, retrievals, read, response, interrupted=interrupted)
    return Captured(
        tree=tree,
        query=_query(_text(_try(guard, reader.query, root, None)), retrievals),
        response=response,
        retrievals=retrievals,
        generations=generations,
        context=read,
        metadata=root.metadata,
        abstained=_abstains(response),
        status=status,
        reason=reason,
    )


def _retrievals(tree: RunTree, guard: Guard) -> tuple[CapturedRetrieval, ...]:
    """The outermost retriever runs: what one hands to the other is no result of its own."""
    return tuple(
        _retrieval(run, _try(guard, tree.reader.retrieval, run, Retrieval(None, ())))
        for run in tree.of_kind(RunKind.RETRIEVER)
        if not run.has_ancestor(RunKind.RETRIEVER)
    )


def _unreported(tree: RunTree, guard: Guard) -> tuple[CapturedRetrieval, ...]:
    """Look-ups that no retriever run stands for, each set of documents where it first came out."""
    seen: set[str] = set()
    retrievals: list[CapturedRetrieval] = []
    for run in sorted(tree.runs[1:], key=lambda run: run.end or 0):
        found = _try(guard, tree.reader.found, run, None)
        retrieval = None if found is None else _retrieval(run, found)
        if retrieval is not None and not seen.issuperset(c.id for c in retrieval.chunks):
            seen.update(chunk.id for chunk in retrieval.chunks)
            retrievals.append(retrieval)
    return tuple(retrievals)


def _abstains(response: str) -> bool:
    return len(response) <= MAX_ABSTENTION and abstains(response)


def _try(guard: Guard, read: Callable[[Run], _T], run: Run, default: _T) -> _T:
    value = default
    with guard:
        value = read(run)
    return value


def _text(value: object, max_bytes: int = MAX_TEXT_BYTES) -> str:
    return cut(clean(value), max_bytes)


def _query(query: str, retrievals: Sequence[CapturedRetrieval]) -> str:
    """What the user asked; where that cannot be found, what the first retriever was asked."""
    return query or next((retrieval.query for retrieval in retrievals), "")


def _retrieval(run: Run, retrieval: Retrieval) -> CapturedRetrieval:
    kept = [_chunk(document) for document in list(retrieval.documents)[:MAX_CHUNKS]]
    return CapturedRetrieval(
        run=run,
        query=_text(retrieval.query),
        chunks=tuple(chunk for chunk, _ in kept),
        id_sources=tuple(source for _, source in kept),
        found=len(retrieval.documents),
        source=_text(retrieval.source),
    )


def _chunk(document: Document) -> tuple[Chunk, str]:
    text = _text(document.text, MAX_CHUNK_BYTES)
    given = clean(document.id)
    chunk = Chunk(
        id=given or Chunk.content_id(text),
        text=text,
        score=document.score,
        metadata=_metadata(document.metadata),
    )
    return chunk, "document" if given else "content_hash"


def _metadata(metadata: Mapping[str, object]) -> dict[str, JsonValue]:
    value = to_json(metadata)
    return value if isinstance(value, dict) else {}


def _generation(run: Run, generation: Generation) -> CapturedGeneration:
    return CapturedGeneration(
        run=run,
        prompt=_text(generation.prompt),
        completion=_text(generation.completion),
        model=_text(generation.model),
        provider=_text(generation.provider),
        input_tokens=generation.input_tokens,
        output_tokens=generation.output_tokens,
    )


def _outcome(
    tree: RunTree,
    retrievals: Sequence[CapturedRetrieval],
    context: Sequence[Chunk] | None,
    response: str,
    *,
    interrupted: bool,
) -> tuple[Status | None, str]:
    root = tree.root
    if interrupted or isinstance(root.error, asyncio.CancelledError):
        return Status.INTERRUPTED, ""
    if root.end is None:
        return Status.ABANDONED, "the run never ended"
    if _abandoned(tree):
        return Status.ABANDONED, "the stream was not read to its end"
    if root.error is not None:
        return Status.APP_ERROR, ""
    if not retrievals and not context:
        return Status.NO_CONTEXT, "no retriever ran"
    if context is not None and not context:
        return Status.NO_CONTEXT, "no chunk reached the generator"
    if not context and not any(retrieval.chunks for retrieval in retrievals):
        return Status.NO_CONTEXT, "the retriever returned no chunks"
    if not response.strip():
        return Status.NO_ANSWER, ""
    return None, ""


def _abandoned(tree: RunTree) -> bool:
    """The reader of a stream went away: its generator was closed, or is still at work."""
    root = tree.root
    if root.error is not None:
        return isinstance(root.error, GeneratorExit)
    return root.outputs is None or any(r.end is None for r in tree.of_kind(RunKind.GENERATOR))
