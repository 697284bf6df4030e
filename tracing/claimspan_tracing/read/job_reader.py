"""Reads a run tree into a job: texts cleaned and cut once, chunks in order, the pipeline's result.

After this no framework object is referred to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple

from opentelemetry.trace import NonRecordingSpan, format_span_id, format_trace_id

from claimspan import Chunk, RagRecord
from claimspan.files.ground_truth import ID_KEYS
from claimspan.text.abstention import abstains
from claimspan.text.shown import without_shown
from claimspan_tracing.capture.runs import Generation, Run, RunKind, RunTree
from claimspan_tracing.decide.status import Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import GeneratorRun, Job, RetrieverRun, union_of
from claimspan_tracing.read.answering import Generated
from claimspan_tracing.read.asked import asked_of
from claimspan_tracing.read.attached import attached_to
from claimspan_tracing.read.bounds import first_chunks
from claimspan_tracing.read.candidates import (
    counts,
    is_written_alone,
    last_given,
    reader_of,
    seen_documents,
    seen_passages,
    try_read,
    was_thrown_away,
)
from claimspan_tracing.read.context import Candidates, Context, ContextSource, find_context
from claimspan_tracing.read.labelled import labelled_question
from claimspan_tracing.read.result import NOTHING_ASKED, Result, result_of
from claimspan_tracing.read.run_reader import ReadRuns, error_type_of, read_runs
from claimspan_tracing.read.splitting import Split
from claimspan_tracing.read.values import Values
from claimspan_tracing.text import MAX_JOINED, MAX_TEXT_BYTES, Walk, join_bounded

__all__ = ["read_job"]

MAX_PROMPT_BYTES: Final = 4 * MAX_JOINED
"""Bytes of a prompt in which chunks are looked for: whatever its characters are, it has as many as
are joined."""

TOOL: Final = "tool"
"""Role of a message that has what a tool returned."""

TOLD: Final = ("system", "user")
"""Roles of the messages in which an application tells a model what to answer from."""


ReadRun = RetrieverRun | GeneratorRun


class _Found(NamedTuple):
    """What a record is about."""

    query: str
    response: str
    chunks: tuple[Chunk, ...]
    n_chunks: int
    source: ContextSource
    result: Result


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
    root = tree.root
    of = Values(guard, _ended(root), margin, Walk(margin=margin))
    # First, since samplers decide on it: chunks may use up what may be walked.
    metadata = attached_to(tree, of.walk, guard)
    read = read_runs(tree, of)
    found = _found(tree, read, several, of)
    span = tree.span.get_span_context()
    return Job(
        record=RagRecord(
            query=found.query,
            response=found.response,
            chunks=found.chunks,
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
        error_type=error_type_of(root),
        runs=_shown(read.kept, tree, found.result),
        context_source=found.source if found.chunks else "",
        chunks_found=found.n_chunks,
        rewritten=_rewritten(found.query, tree, read, found.chunks, of),
        runs_dropped=read.dropped,
        abstained=abstains(without_shown(found.response, [each.text for each in found.chunks])),
        status=found.result.status,
        reason=found.result.reason,
        capture_content=capture_content,
        whole_values=whole_values,
    )


def _shown(kept: Sequence[ReadRun], tree: RunTree, result: Result) -> tuple[ReadRun, ...]:
    """The runs that get a span, without the corpus of an index, which nobody has searched."""
    if result.reason != NOTHING_ASKED or tree.of_kind(RunKind.RETRIEVER):
        return tuple(kept)
    if not any(isinstance(run, GeneratorRun) for run in kept):
        return ()
    # One may be around a model call, whose span needs its place.
    return tuple(
        replace(run, chunks=(), id_sources=()) if isinstance(run, RetrieverRun) else run
        for run in kept
    )


def _found(tree: RunTree, read: ReadRuns, several: Split | None, of: Values) -> _Found:
    """Find question, answer and chunks, and the state that they lead to."""
    query = of.text(try_read(of.guard, tree.reader.query, tree.root, None))
    generated = _generated(read.generations, of)
    with of.guard:
        query = labelled_question(query, generated)
    if several is None:
        response = of.text(try_read(of.guard, tree.reader.response, tree.root, None))
        query = _asked(query, response, tree, generated, read, of.guard)
    else:
        response = of.text(join_bounded(several.answers, "\n"))
    context = _context(tree, read, generated, query, response, of.guard)
    chunks, n_chunks = _chunks(context, read, of)
    result = result_of(tree, generated, chunks, response, of.guard, read.retrievers)
    if several is not None:
        result = Result(Status.SEVERAL_ANSWERS, several.reason)
    return _Found(query, response, chunks, n_chunks, context.source, result)


def _asked(
    query: str,
    response: str,
    tree: RunTree,
    generated: Sequence[Generated],
    read: ReadRuns,
    guard: Guard,
) -> str:
    """The question of the record; what the retrievers were asked where the run was given none."""
    searches = () if query else tuple(each.query for _, each in read.retrievers if each.query)
    asked = query or next(iter(searches), "")
    with guard:
        asked = asked_of(asked, response, tree, generated, searches)
    return asked


def _generated(generations: Sequence[tuple[Run, Generation]], of: Values) -> list[Generated]:
    """Those that may have given the answer: a retriever's own rewrite queries."""
    return [
        Generated(
            of.bounded(each.prompt, MAX_PROMPT_BYTES),
            of.bounded(each.completion, MAX_TEXT_BYTES),
            _tool_results(each, of),
            _texts_of(each, TOLD, of),
            _texts_of(each, TOLD[:1], of),
        )
        for run, each in generations
        if counts(run) and not run.has_ancestor(RunKind.RETRIEVER)
    ]


def _tool_results(generation: Generation, of: Values) -> tuple[str, ...]:
    if generation.tool_results is None:
        return _texts_of(generation, (TOOL,), of)
    return tuple([of.bounded(text, MAX_TEXT_BYTES) for text in generation.tool_results])


def _texts_of(generation: Generation, roles: tuple[str, ...], of: Values) -> tuple[str, ...]:
    told = [text for role, text in generation.messages if role in roles]
    return tuple([of.bounded(text, MAX_TEXT_BYTES) for text in told])


def _context(
    tree: RunTree,
    read: ReadRuns,
    generated: Sequence[Generated],
    query: str,
    response: str,
    guard: Guard,
) -> Context:
    """What the generator read, and how that is known."""
    named = try_read(guard, tree.reader.context, tree.root, None)
    kept = [(run, each) for run, each in read.retrievals if not was_thrown_away(run)]
    found = Context(named, "retriever" if named is None else "last_documents")
    with guard:
        found = find_context(
            Candidates(
                named,
                partial(seen_documents, tree, kept, guard),
                partial(seen_passages, tree, guard),
                partial(last_given, tree, kept, [run for run, _ in read.generations], guard),
                partial(is_written_alone, tree, response, guard),
                lambda: not read.retrievers and tree.root.kind is not RunKind.RETRIEVER,
            ),
            generated,
            query,
            response,
            [each.query for _, each in read.retrievers],
        )
    return found


def _chunks(context: Context, read: ReadRuns, of: Values) -> tuple[tuple[Chunk, ...], int]:
    """The chunks of the record, those that were read or else all that was retrieved; their number.

    The number counts those beyond the bounds as well.
    """
    if context.documents is not None:
        found = context.documents
        return first_chunks(of.chunk(document)[0] for document in found), len(found)
    kept = [each for run, each in read.retrievers if not was_thrown_away(run)]
    different = {(chunk.id, chunk.text) for each in kept for chunk in each.chunks}
    cut_off = sum(each.found - len(each.chunks) for each in kept)
    return union_of(kept), len(different) + cut_off


def _rewritten(
    query: str, tree: RunTree, read: ReadRuns, chunks: Sequence[Chunk], of: Values
) -> str:
    """What the last retriever was asked whose chunks were read; empty where that is the query."""
    ids = {chunk.id for chunk in chunks}
    asked = [
        _asked_within(run, tree, of) or each.query
        for run, each in read.retrievers
        if not was_thrown_away(run) and any(chunk.id in ids for chunk in each.chunks)
    ]
    last = asked[-1] if asked else ""
    return "" if last.split() == query.split() else last


def _asked_within(retriever: Run, tree: RunTree, of: Values) -> str:
    """What a retriever asks another one, where it puts one question into other words."""
    runs = [run for run in tree.of_kind(RunKind.RETRIEVER) if run.parent is retriever]
    found = [try_read(of.guard, reader_of(run).retrieval, run, None) for run in runs]
    asked = {of.text(each.query) for each in found if each is not None}
    return asked.pop() if len(asked) == 1 else ""


def _ended(root: Run) -> int:
    """When the root ended; for a run that was given up, when its last known part ended."""
    return root.end or max([run.end or run.start for run in root.tree.runs])


def _record_id(metadata: Mapping[str, object], of: Values) -> str | None:
    return next((of.text(metadata[key]) for key in ID_KEYS if key in metadata), None)
