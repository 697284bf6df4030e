"""Reads a run tree into a job: texts cleaned and cut once, chunks in order, the pipeline's result.

After this no framework object is referred to.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeVar

from opentelemetry.trace import NonRecordingSpan, format_span_id, format_trace_id
from pydantic import JsonValue

from claimspan import Chunk, RagRecord
from claimspan.evaluation.abstention import has_abstained
from claimspan.files.ground_truth import ID_KEYS
from claimspan_tracing.capture.reader import Document, Generation, Reader, Retrieval
from claimspan_tracing.capture.runs import Run, RunKind, RunTree
from claimspan_tracing.decide.status import Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import (
    MAX_CHUNKS,
    MAX_MESSAGE_BYTES,
    GeneratorRun,
    Job,
    RetrieverRun,
    union_of,
)
from claimspan_tracing.read.answering import Generated
from claimspan_tracing.read.attached import attached_to
from claimspan_tracing.read.bounds import bounded_chunks, bounded_runs, first_chunks
from claimspan_tracing.read.context import Context, ContextSource, find_context
from claimspan_tracing.read.messages import read_messages
from claimspan_tracing.text import MAX_JOINED, MAX_TEXT_BYTES, Walk, bounded, clean, cut, to_json

__all__ = ["read_job"]

MAX_PROMPT_BYTES: Final = 4 * MAX_JOINED
"""Bytes of a prompt in which chunks are looked for: whatever its characters are, it has as many as
are joined."""

_T = TypeVar("_T")
_Part = tuple[Run, RetrieverRun | GeneratorRun]
_Known = dict[tuple[int, ...], tuple[Document, Chunk, str]]


@dataclass(frozen=True, slots=True)
class _Record:
    """What the values of one record have in common."""

    guard: Guard
    ended: int
    margin: int
    walk: Walk
    chunks: _Known = field(default_factory=dict[tuple[int, ...], tuple[Document, Chunk, str]])

    def chunk(self, document: Document) -> tuple[Chunk, str]:
        """The chunk of a document, and where its id is from; read once where it is met again.

        Pipelines hand documents on: from a retriever to a ranker, and to the prompt.
        """
        key = id(document.text), id(document.id), id(document.score), id(document.metadata)
        known = self.chunks.get(key)
        if known is None:
            # With the document: what it refers to must live, or its identity may be another's.
            known = self.chunks[key] = (document, *_chunk(document, self))
        return known[1:]

    def text(self, value: object) -> str:
        return bounded(value, MAX_TEXT_BYTES + self.margin)

    def message_text(self, value: object) -> str:
        # A redactor sees it as any other text, and what is left of it is cut after that.
        return self.text(value) if self.margin else bounded(value, MAX_MESSAGE_BYTES)

    def json_object(self, metadata: Mapping[str, object]) -> dict[str, JsonValue]:
        value = to_json(metadata, self.walk)
        return value if isinstance(value, dict) else {}


def read_job(
    tree: RunTree,
    guard: Guard,
    margin: int = 0,
    *,
    capture_content: bool = True,
    whole_values: bool = False,
) -> Job:
    """Read a finished tree.

    Args:
        tree: Its root has ended, or was given up.
        guard: Counts the faults of the reader. What a reader cannot read is empty.
        margin: Bytes kept of each text beyond its bound, for whoever cuts it there: a redactor has
            to see more of a text than is left of it.
        capture_content: As ``Job.capture_content``.
        whole_values: As ``Job.whole_values``.
    """
    root, reader = tree.root, tree.reader
    of = _Record(guard, _ended(root), margin, Walk(margin=margin))
    # First, since samplers decide on it: chunks may use up what may be walked.
    metadata = attached_to(tree, of.walk, guard)
    retrievals = _retrievals(tree, guard)
    retrievers = bounded_chunks(_retriever_parts(tree, retrievals, of))
    generations = _generations(tree, guard)
    parts = [*retrievers, *[(run, _generator_run(run, each, of)) for run, each in generations]]
    runs = _with_parents(tree, bounded_runs(parts))
    response = of.text(_try(guard, reader.response, root, None))
    context, source = _context(tree, retrievals, generations, response, of)
    interrupted = _try(guard, reader.interrupted, root, False)
    found = [run for _, run in retrievers if isinstance(run, RetrieverRun)]
    status, reason = _status(tree, found, context, response, interrupted=interrupted)
    span = tree.span.get_span_context()
    chunks = union_of(found) if context is None else context
    return Job(
        record=RagRecord(
            query=of.text(_try(guard, reader.query, root, None)) or _first_query(found),
            response=response,
            chunks=chunks,
            metadata=metadata,
            id=_record_id(root.metadata, of),
        ),
        trace_id=format_trace_id(span.trace_id),
        span_id=format_span_id(span.span_id),
        trace_flags=int(span.trace_flags),
        trace_state=span.trace_state.to_header(),
        root_ended=isinstance(tree.span, NonRecordingSpan),
        route=of.text(root.name),
        started=root.start,
        ended=of.ended,
        error_type=_error_type(root),
        runs=runs,
        context_source=source if chunks else "",
        runs_dropped=tree.dropped + len(parts) - len(runs),
        abstained=has_abstained(response),
        status=status,
        reason=reason,
        capture_content=capture_content,
        whole_values=whole_values,
    )


# --- runs ---------------------------------------------------------------------------------------


def _retrievals(tree: RunTree, guard: Guard) -> list[tuple[Run, Retrieval]]:
    """The outermost retriever runs: an inner one hands its documents to the outer one."""
    return [
        (run, _try(guard, _reader(run).retrieval, run, _NOTHING))
        for run in tree.of_kind(RunKind.RETRIEVER)
        if not run.has_ancestor(RunKind.RETRIEVER)
    ]


def _retriever_parts(
    tree: RunTree, retrievals: Sequence[tuple[Run, Retrieval]], of: _Record
) -> list[_Part]:
    parts: list[_Part] = [(run, _retriever_run(run, each, of)) for run, each in retrievals]
    return parts or _unreported(tree, of)


_NOTHING: Final = Retrieval(None, ())


def _unreported(tree: RunTree, of: _Record) -> list[_Part]:
    """Searches without a retriever run; each set of documents counts where it first came out."""
    seen: set[str] = set()
    parts: list[_Part] = []
    # By their end, and without the root: documents pass through many runs, and the one that ended
    # first is where they came from.
    for run in sorted(tree.runs[1:], key=lambda run: run.end or 0):
        found = _try(of.guard, _reader(run).unreported_retrieval, run, None)
        read = None if found is None else _retriever_run(run, found, of)
        if read is not None and not seen.issuperset(c.id for c in read.chunks):
            seen.update(chunk.id for chunk in read.chunks)
            parts.append((run, read))
    return parts


def _generations(tree: RunTree, guard: Guard) -> list[tuple[Run, Generation]]:
    return [
        (run, _try(guard, _reader(run).generation, run, Generation()))
        for run in tree.of_kind(RunKind.GENERATOR)
        if not run.has_ancestor(RunKind.GENERATOR)
    ]


def _context(
    tree: RunTree,
    retrievals: Sequence[tuple[Run, Retrieval]],
    generations: Sequence[tuple[Run, Generation]],
    response: str,
    of: _Record,
) -> tuple[tuple[Chunk, ...] | None, ContextSource]:
    """The chunks that the generator read, None for all that were retrieved; how that is known."""
    named = _try(of.guard, tree.reader.context, tree.root, None)
    found = Context(named, "retriever" if named is None else "last_documents")
    with of.guard:
        candidates = partial(_candidates, tree, retrievals, of.guard)
        found = find_context(named, candidates, _generated(generations), response)
    if found.documents is None:
        return None, found.source
    return first_chunks(of.chunk(document)[0] for document in found.documents), found.source


def _generated(generations: Sequence[tuple[Run, Generation]]) -> list[Generated]:
    """Those that may have given the answer: a retriever's own rewrite queries."""
    return [
        Generated(bounded(each.prompt, MAX_PROMPT_BYTES), bounded(each.completion, MAX_TEXT_BYTES))
        for run, each in generations
        if _is_completed(run) and not run.has_ancestor(RunKind.RETRIEVER)
    ]


def _candidates(
    tree: RunTree, retrievals: Sequence[tuple[Run, Retrieval]], guard: Guard
) -> Iterator[Document]:
    """Every document that a generator may have read: retrieved, given to a run, or returned."""
    for _, each in retrievals:
        yield from each.documents
    for run in tree.runs:
        if run.kind is not RunKind.RETRIEVER and not run.has_ancestor(RunKind.RETRIEVER):
            with guard:
                yield from _reader(run).given_documents(run)
            found = _try(guard, _reader(run).unreported_retrieval, run, None)
            yield from () if found is None else found.documents


def _retriever_run(run: Run, retrieval: Retrieval, of: _Record) -> RetrieverRun:
    # Cut before anything is cleaned: a retriever may return 10,000 documents.
    kept = [of.chunk(document) for document in list(retrieval.documents)[:MAX_CHUNKS]]
    return RetrieverRun(
        started=run.start,
        ended=run.end or of.ended,
        error_type=_error_type(run),
        completed=_is_completed(run),
        span_id=_span_id(run),
        query=of.text(retrieval.query),
        chunks=tuple(chunk for chunk, _ in kept),
        id_sources=tuple(source for _, source in kept),
        found=len(retrieval.documents),
        source=of.text(retrieval.source),
    )


def _generator_run(run: Run, generation: Generation, of: _Record) -> GeneratorRun:
    return GeneratorRun(
        started=run.start,
        ended=run.end or of.ended,
        error_type=_error_type(run),
        completed=_is_completed(run),
        span_id=_span_id(run),
        prompt=of.text(generation.prompt),
        completion=of.text(generation.completion),
        model=of.text(generation.model),
        provider=of.text(generation.provider),
        input_tokens=generation.input_tokens,
        output_tokens=generation.output_tokens,
        messages=read_messages(generation.messages, of.message_text),
    )


def _with_parents(tree: RunTree, parts: Sequence[_Part]) -> tuple[RetrieverRun | GeneratorRun, ...]:
    """The runs in the order of their start, each with the index of the run that encloses it."""
    # By their place in the tree, not by their times: clocks are set back, and a parent has to come
    # before its children.
    place = {id(run): i for i, run in enumerate(tree.runs)}
    ordered = sorted(parts, key=lambda part: place[id(part[0])])
    index = {id(run): i for i, (run, _) in enumerate(ordered)}
    return tuple(_with_parent(read, _enclosing(run, index)) for run, read in ordered)


def _with_parent(
    run: RetrieverRun | GeneratorRun, parent: int | None
) -> RetrieverRun | GeneratorRun:
    return run if parent is None else replace(run, parent=parent)


def _enclosing(run: Run, index: Mapping[int, int]) -> int | None:
    parent = run.parent
    while parent is not None and id(parent) not in index:
        parent = parent.parent
    return None if parent is None else index[id(parent)]


def _reader(run: Run) -> Reader:
    return run.reader or run.tree.reader


# --- the pipeline's result ----------------------------------------------------------------------


def _status(
    tree: RunTree,
    retrievers: Sequence[RetrieverRun],
    context: Sequence[Chunk] | None,
    response: str,
    *,
    interrupted: bool,
) -> tuple[Status | None, str]:
    """The state that the pipeline's result leads to, with a reason; None to evaluate."""
    root = tree.root
    # The order matters: a cancelled run has failed, too, and an abandoned one has no answer.
    if interrupted or root.failed_with(asyncio.CancelledError):
        return Status.INTERRUPTED, ""
    if root.end is None:
        return Status.ABANDONED, "the run never ended"
    if _is_abandoned(tree):
        return Status.ABANDONED, "the stream was not read to its end"
    if root.error is not None:
        return Status.APP_ERROR, ""
    if not retrievers and not context:
        return Status.NO_CONTEXT, "no retriever ran"
    if context is not None and not context:
        return Status.NO_CONTEXT, "no chunk reached the generator"
    if not context and not any(run.chunks for run in retrievers):
        return Status.NO_CONTEXT, "the retriever returned no chunks"
    if not response.strip():
        return Status.NO_ANSWER, ""
    return None, ""


def _is_abandoned(tree: RunTree) -> bool:
    """Whether the reader of a stream left: its generator was closed, or still runs."""
    root = tree.root
    if root.error is not None:
        return root.failed_with(GeneratorExit)
    return root.outputs is None or any(r.end is None for r in tree.of_kind(RunKind.GENERATOR))


def _ended(root: Run) -> int:
    """When the root ended; for a run that was given up, when its last known part ended."""
    return root.end or max([run.end or run.start for run in root.tree.runs])


def _error_type(run: Run) -> str:
    # A closed stream and a cancelled task end in a BaseException, and are no errors.
    if run.error is None or not run.failed_with(Exception):
        return ""
    return clean(run.error.__qualname__)


def _is_completed(run: Run) -> bool:
    return run.end is not None and run.error is None


def _span_id(run: Run) -> str:
    """The id of a span that somebody else made for the run; ours are made from the job."""
    return format_span_id(run.span_id) if run.span_id else ""


# --- texts and chunks ---------------------------------------------------------------------------


def _try(guard: Guard, read: Callable[[Run], _T], run: Run, default: _T) -> _T:
    value = default
    with guard:
        value = read(run)
    return value


def _first_query(retrievers: Sequence[RetrieverRun]) -> str:
    """What the first retriever was asked, for pipelines whose own query cannot be found."""
    return next((run.query for run in retrievers), "")


def _chunk(document: Document, of: _Record) -> tuple[Chunk, str]:
    text = of.text(document.text)
    given = of.text(document.id)
    # Not checked once more: all of it was cleaned here.
    chunk = Chunk.model_construct(
        id=given or Chunk.content_id(cut(text, MAX_TEXT_BYTES)),
        text=text,
        score=_score(document.score),
        metadata=of.json_object(document.metadata),
    )
    return chunk, "document" if given else "content_hash"


def _score(value: object) -> float | None:
    """A finite number; what else a store calls a score has no place on a span or in JSON."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # an integer beyond every float
        return None


def _record_id(metadata: Mapping[str, object], of: _Record) -> str | None:
    return next((of.text(metadata[key]) for key in ID_KEYS if key in metadata), None)
