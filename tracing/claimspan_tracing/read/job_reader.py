"""Reads a run tree into a job: texts cleaned and cut once, chunks in order, the pipeline's result.

After this no framework object is referred to.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from opentelemetry.trace import NonRecordingSpan, format_span_id, format_trace_id
from pydantic import JsonValue

from claimspan import Chunk, RagRecord
from claimspan.evaluation.abstention import has_abstained
from claimspan.files.ground_truth import ID_KEYS
from claimspan_tracing.capture.reader import Document, Generation, Retrieval
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
from claimspan_tracing.read.candidates import (
    counts,
    is_completed,
    last_given,
    reader_of,
    seen_documents,
    seen_passages,
    try_read,
    was_thrown_away,
)
from claimspan_tracing.read.context import Candidates, Context, find_context
from claimspan_tracing.read.messages import read_messages
from claimspan_tracing.read.result import result_of
from claimspan_tracing.read.splitting import Split
from claimspan_tracing.text import (
    MAX_JOINED,
    MAX_TEXT_BYTES,
    Walk,
    bounded,
    clean,
    cut,
    join_bounded,
    to_json,
)

__all__ = ["read_job"]

MAX_PROMPT_BYTES: Final = 4 * MAX_JOINED
"""Bytes of a prompt in which chunks are looked for: whatever its characters are, it has as many as
are joined."""

TOOL: Final = "tool"
"""Role of a message that has what a tool returned."""

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
    several: Split | None = None,
    *,
    margin: int = 0,
    capture_content: bool = True,
    whole_values: bool = False,
) -> Job:
    """Read a finished tree.

    Args:
        tree: Its root has ended, or was given up.
        guard: Counts the faults of the reader. What a reader cannot read is empty.
        several: Its answers, where it gave more than one: it is not evaluated then.
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
    found = [(run, each) for run, each in retrievers if isinstance(each, RetrieverRun)]
    query = of.text(try_read(guard, reader.query, root, None))
    if several is None:
        query = query or next((each.query for _, each in found), "")
        response = of.text(try_read(guard, reader.response, root, None))
    else:
        response = of.text(join_bounded(several.answers, "\n"))
    generated = _generated(generations)
    context = _context(tree, retrievals, generations, generated, query, response, guard)
    chunks = _chunks(context, found, of)
    result = result_of(tree, generated, chunks, response, guard, [each for _, each in found])
    span = tree.span.get_span_context()
    return Job(
        record=RagRecord(
            query=query,
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
        context_source=context.source if chunks else "",
        rewritten=_rewritten(query, found, chunks),
        runs_dropped=tree.dropped + len(parts) - len(runs),
        abstained=has_abstained(response),
        status=result.status if several is None else Status.SEVERAL_ANSWERS,
        reason=result.reason if several is None else several.reason,
        capture_content=capture_content,
        whole_values=whole_values,
    )


# --- runs ---------------------------------------------------------------------------------------


def _retrievals(tree: RunTree, guard: Guard) -> list[tuple[Run, Retrieval]]:
    """The outermost retriever runs: an inner one hands its documents to the outer one."""
    return [
        (run, try_read(guard, reader_of(run).retrieval, run, _NOTHING))
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
        found = try_read(of.guard, reader_of(run).unreported_retrieval, run, None)
        read = None if found is None else _retriever_run(run, found, of)
        if read is not None and not seen.issuperset(c.id for c in read.chunks):
            seen.update(chunk.id for chunk in read.chunks)
            parts.append((run, read))
    return parts


def _generations(tree: RunTree, guard: Guard) -> list[tuple[Run, Generation]]:
    return [
        (run, try_read(guard, reader_of(run).generation, run, Generation()))
        for run in tree.of_kind(RunKind.GENERATOR)
        if not run.has_ancestor(RunKind.GENERATOR)
    ]


def _generated(generations: Sequence[tuple[Run, Generation]]) -> list[Generated]:
    """Those that may have given the answer: a retriever's own rewrite queries."""
    return [
        Generated(
            bounded(each.prompt, MAX_PROMPT_BYTES),
            bounded(each.completion, MAX_TEXT_BYTES),
            tuple(bounded(text, MAX_TEXT_BYTES) for role, text in each.messages if role == TOOL),
        )
        for run, each in generations
        if counts(run) and not run.has_ancestor(RunKind.RETRIEVER)
    ]


def _context(
    tree: RunTree,
    retrievals: Sequence[tuple[Run, Retrieval]],
    generations: Sequence[tuple[Run, Generation]],
    generated: Sequence[Generated],
    query: str,
    response: str,
    guard: Guard,
) -> Context:
    """What the generator read, and how that is known."""
    named = try_read(guard, tree.reader.context, tree.root, None)
    kept = [(run, each) for run, each in retrievals if not was_thrown_away(run)]
    found = Context(named, "retriever" if named is None else "last_documents")
    with guard:
        found = find_context(
            Candidates(
                named,
                partial(seen_documents, tree, kept, guard),
                partial(seen_passages, tree, guard),
                partial(last_given, tree, kept, [run for run, _ in generations], guard),
            ),
            generated,
            query,
            response,
        )
    return found


def _chunks(
    context: Context, found: Sequence[tuple[Run, RetrieverRun]], of: _Record
) -> tuple[Chunk, ...]:
    """The chunks of the record: those that were read, or else all that was retrieved."""
    if context.documents is not None:
        return first_chunks(of.chunk(document)[0] for document in context.documents)
    kept = [each for run, each in found if not was_thrown_away(run)]
    return union_of(kept)


def _rewritten(
    query: str, found: Sequence[tuple[Run, RetrieverRun]], chunks: Sequence[Chunk]
) -> str:
    """What the last retriever was asked whose chunks were read; empty where that is the query."""
    read = {chunk.id for chunk in chunks}
    asked = [
        each.query
        for run, each in found
        if not was_thrown_away(run) and any(chunk.id in read for chunk in each.chunks)
    ]
    last = asked[-1] if asked else ""
    return "" if last.split() == query.split() else last


def _retriever_run(run: Run, retrieval: Retrieval, of: _Record) -> RetrieverRun:
    # Cut before anything is cleaned: a retriever may return 10,000 documents.
    kept = [of.chunk(document) for document in list(retrieval.documents)[:MAX_CHUNKS]]
    return RetrieverRun(
        started=run.start,
        ended=run.end or of.ended,
        error_type=_error_type(run),
        completed=is_completed(run),
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
        completed=is_completed(run),
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


# --- what a run ended with ------------------------------------------------------------------------


def _ended(root: Run) -> int:
    """When the root ended; for a run that was given up, when its last known part ended."""
    return root.end or max([run.end or run.start for run in root.tree.runs])


def _error_type(run: Run) -> str:
    # A closed stream and a cancelled task end in a BaseException, and are no errors.
    return clean(type(run.error).__qualname__) if isinstance(run.error, Exception) else ""


def _span_id(run: Run) -> str:
    """The id of a span that somebody else made for the run; ours are made from the job."""
    return format_span_id(run.span_id) if run.span_id else ""


# --- texts and chunks ---------------------------------------------------------------------------


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
