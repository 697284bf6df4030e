"""Reads a run tree into a job: texts cleaned and cut once, chunks in order, the pipeline's result.

After this no framework object is referred to.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from opentelemetry.context import get_current
from opentelemetry.trace import NonRecordingSpan, format_span_id, format_trace_id
from pydantic import JsonValue

from claimspan import Chunk, RagRecord
from claimspan.files.ground_truth import ID_KEYS
from claimspan.text.abstention import abstains
from claimspan.text.shapes import is_mapping
from claimspan.text.shown import without_shown
from claimspan_tracing import semconv
from claimspan_tracing.capture.runs import Generation, Retrieval, Run, RunKind, RunTree
from claimspan_tracing.decide.status import Status
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import (
    MAX_CHUNKS,
    GeneratorRun,
    Job,
    RetrieverRun,
    context_cut_of,
    union_of,
)
from claimspan_tracing.model_calls import provider_of
from claimspan_tracing.read.answering import MAX_PROMPT_BYTES, Generated, gave, may_have_given
from claimspan_tracing.read.context import Candidates, Context, find_context
from claimspan_tracing.read.handwritten import question_of
from claimspan_tracing.read.passages import failures_in, found_by_tools
from claimspan_tracing.read.splitting import Split, asked_of, told_question
from claimspan_tracing.read.values import (
    NOTHING,
    Part,
    Values,
    bounded_chunks,
    bounded_runs,
    first_chunks,
    read_messages,
    try_read,
)
from claimspan_tracing.text import MAX_TEXT_BYTES, Walk, clean, join_bounded, to_json

__all__ = ["asked_nothing", "read_job"]

ASSISTANT: Final = "assistant"
"""Role of a message that a model has written."""

TOLD: Final = ("system", "user")
"""Roles of the messages in which an application tells a model what to answer from."""

NOTHING_ASKED: Final = "no question was asked: the run only retrieved, built or checked"
"""Why a run is no record."""

UNTOLD: Final = "which question the answer is to cannot be told: query_key says where it is"
"""Why nothing is judged of a run whose retrievers were asked something else than its user asked."""

REPEATED: Final = "the pipeline returned what it retrieved, and no answer"

MIN_REPEATED: Final = 40
"""Characters of a chunk from which on a response that has them repeats it, and not by chance."""

CONTEXT_KEYS: Final = (semconv.SESSION_ID, semconv.USER_ID, semconv.TAGS)
"""Keys in OpenTelemetry's context at which OpenInference's ``using_session``, ``using_user`` and
``using_tags`` keep their values."""

ATTRIBUTE_KEYS: Final = (*semconv.SESSION_KEYS, *semconv.USER_KEYS, semconv.TAGS)
"""Keys of the metadata whose values are attributes by themselves."""

MAX_NAME_BYTES: Final = 256
"""Bytes kept of what a provider calls a response, its model and its end."""

ReadRun = RetrieverRun | GeneratorRun


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
        several: Its answers, if it gave more than one: it is not evaluated then.
        margin: Bytes kept of each text beyond its bound, for what cuts it there: a redactor has
            to see more of a text than is left of it.
        capture_content: As ``Job.capture_content``.
        whole_values: As ``Job.whole_values``.
    """
    root, reader = tree.root, tree.reader
    ended = root.end or max([run.end or run.start for run in tree.runs])
    of = Values(guard, ended, margin, Walk(margin=margin))
    # First, since samplers decide on it: chunks may use up what may be walked.
    metadata = _attached_to(tree, of)
    read = _read_runs(tree, of)
    failures = failures_in(tree)
    generated = [
        _as_generated(run, each, of, failures) for run, each in read.generations if run.counts
    ]
    query = of.text(try_read(guard, reader.query, root, None))
    with guard:
        query = question_of(query, generated)
    if several is None:
        response = of.text(try_read(guard, reader.response, root, None))
        query = _asked(query, response, tree, generated, read, guard)
    else:
        response = of.text(join_bounded(several.answers, "\n"))
    context = _context(tree, read, generated, query, response, guard)
    chunks, n_chunks = _chunks(context, read, of)
    result = _result_of(tree, generated, chunks, query, response, guard, read.retrievers)
    if several is not None:
        result = _Result(Status.SEVERAL_ANSWERS, several.reason)
    span = tree.span.get_span_context()
    return Job(
        record=RagRecord(
            query=query,
            response=response,
            chunks=chunks,
            metadata=metadata,
            id=next((of.text(root.metadata[k]) for k in ID_KEYS if k in root.metadata), None),
            context_cut=context_cut_of(chunks, n_chunks, tree.dropped, context.cut),
        ),
        trace_id=format_trace_id(span.trace_id),
        span_id=format_span_id(span.span_id),
        trace_flags=int(span.trace_flags),
        trace_state=span.trace_state.to_header(),
        root_ended=isinstance(tree.span, NonRecordingSpan),
        route=of.text(root.name),
        started=root.start,
        ended=ended,
        error_type=_error_type_of(root),
        runs=_shown(read.kept, tree, result),
        context_source=context.source if chunks else "",
        chunks_found=n_chunks,
        rewritten=_rewritten(query, tree, read, chunks, of),
        runs_dropped=read.dropped,
        abstained=abstains(response, [each.text for each in chunks]),
        status=result.status,
        reason=result.reason,
        capture_content=capture_content,
        whole_values=whole_values,
    )


def asked_nothing(job: Job) -> bool:
    """Whether a run is no query: it only retrieved, built an index, or judged an answer."""
    return job.status is Status.NO_ANSWER and job.reason == NOTHING_ASKED


def _shown(kept: Sequence[ReadRun], tree: RunTree, result: _Result) -> tuple[ReadRun, ...]:
    """The runs that get a span, without the corpus of an index, which was not searched."""
    if result.reason != NOTHING_ASKED or tree.of_kind(RunKind.RETRIEVER):
        return tuple(kept)
    if not any(isinstance(run, GeneratorRun) for run in kept):
        return ()
    # One may be around a model call, whose span needs its place.
    return tuple(
        replace(run, chunks=(), id_sources=()) if isinstance(run, RetrieverRun) else run
        for run in kept
    )


def _asked(
    query: str,
    response: str,
    tree: RunTree,
    generated: Sequence[Generated],
    read: _ReadRuns,
    guard: Guard,
) -> str:
    """The question of the record; what its model was told if the run was given none."""
    searches = () if query else tuple(each.query for _, each in read.retrievers if each.query)
    asked = query
    with guard:
        asked = asked_of(query, response, tree, generated, searches)
        if not asked and searches:
            found = [chunk.text for _, each in read.retrievers for chunk in each.chunks]
            asked = told_question(searches, response, generated, found)
    return asked


def _as_generated(run: Run, generation: Generation, of: Values, failures: Set[str]) -> Generated:
    told: list[str] = []
    system: list[str] = []
    turn: list[str] = []
    for role, text in generation.messages:
        if role in TOLD:
            told.append(of.text(text, MAX_TEXT_BYTES))
            turn.append(told[-1])
            system += told[-1:] if role == TOLD[0] else []
        elif role == ASSISTANT:
            turn.clear()
    return Generated(
        of.text(generation.prompt, MAX_PROMPT_BYTES),
        of.text(generation.completion, MAX_TEXT_BYTES),
        tuple([of.text(text, MAX_TEXT_BYTES) for text in found_by_tools(generation, failures)]),
        tuple(told),
        tuple(system),
        tuple(turn),
        run.has_ancestor(RunKind.RETRIEVER),
    )


def _context(
    tree: RunTree,
    read: _ReadRuns,
    generated: Sequence[Generated],
    query: str,
    response: str,
    guard: Guard,
) -> Context:
    """What the generator read, and how that is known."""
    named = try_read(guard, tree.reader.context, tree.root, None)
    found = Context(named, "retriever" if named is None else "last_documents")
    with guard:
        is_by_hand = not read.retrievers and tree.root.kind is not RunKind.RETRIEVER
        candidates = Candidates(tree, read.retrievals, guard, named, is_by_hand=is_by_hand)
        asked = [each.query for _, each in read.retrievers]
        found = find_context(candidates, generated, query, response, asked)
    return found


def _chunks(context: Context, read: _ReadRuns, of: Values) -> tuple[tuple[Chunk, ...], int]:
    """The chunks of the record, those that were read or else all that was retrieved; their number.

    The number counts those beyond the bounds as well.
    """
    if context.documents is not None:
        found = context.documents
        chunks, _ = first_chunks([of.chunk(each)[0] for each in found[:MAX_CHUNKS]])
        return chunks, len(found)
    kept = [each for run, each in read.retrievers if not run.was_thrown_away]
    different = {(chunk.id, chunk.text) for each in kept for chunk in each.chunks}
    cut_off = sum(each.found - len(each.chunks) for each in kept)
    return union_of(kept), len(different) + cut_off


def _rewritten(
    query: str, tree: RunTree, read: _ReadRuns, chunks: Sequence[Chunk], of: Values
) -> str:
    """What the last retriever was asked whose chunks were read; empty if that is the query."""
    ids = {chunk.id for chunk in chunks}
    asked = [
        _asked_within(run, tree, of) or each.query
        for run, each in read.retrievers
        if not run.was_thrown_away and any(chunk.id in ids for chunk in each.chunks)
    ]
    last = asked[-1] if asked else ""
    return "" if last.split() == query.split() else last


def _asked_within(retriever: Run, tree: RunTree, of: Values) -> str:
    """What a retriever asks another one, if it puts one question into other words."""
    runs = [run for run in tree.of_kind(RunKind.RETRIEVER) if run.parent is retriever]
    found = [try_read(of.guard, run.read_by.retrieval, run, None) for run in runs]
    asked = {of.text(each.query) for each in found if each is not None}
    return asked.pop() if len(asked) == 1 else ""


# --- what was attached to the query ---------------------------------------------------------------


def _attached_to(tree: RunTree, of: Values) -> dict[str, JsonValue]:
    """The metadata of a record, with session, user and tags under OpenInference's names.

    What the run itself says goes before what OpenTelemetry's context says; tags are those of both.
    """
    said = _json_object(tree.root.metadata, of.walk)
    own = said
    with of.guard:
        own = {key: value for key, value in said.items() if not tree.reader.is_internal(key)}
    around = _json_object(_in_context(tree), of.walk)
    tags = _tags(own, tree, of.guard) + _tags(around, tree, of.guard)
    both = around | own
    if tags:
        both[semconv.TAGS] = list(dict.fromkeys(tags))
    return both


def _json_object(values: Mapping[str, object], walk: Walk) -> dict[str, JsonValue]:
    # A mapping of another kind may do anything when it is read.
    if values.__class__ is dict:
        # First those that are attributes by themselves: a walk ends at its budget.
        values = {key: values[key] for key in ATTRIBUTE_KEYS if key in values} | {**values}
    found = to_json(values, walk)
    return found if isinstance(found, dict) else {}


def _in_context(tree: RunTree) -> dict[str, object]:
    """What OpenInference keeps in the context that the request had when its root began."""
    # A copy, since a context can be entered only once at a time.
    context = tree.context.copy().run(get_current)
    found = {key: context[key] for key in CONTEXT_KEYS if key in context}
    metadata = context.get(semconv.METADATA)
    if not isinstance(metadata, str) or len(metadata) > MAX_TEXT_BYTES:
        return found
    try:
        parsed: object = json.loads(metadata)
    except (ValueError, RecursionError):  # it may be a value of another package
        return found
    named = {str(k): value for k, value in parsed.items()} if is_mapping(parsed) else {}
    return named | found


def _tags(values: Mapping[str, JsonValue], tree: RunTree, guard: Guard) -> list[JsonValue]:
    tags = values.get(semconv.TAGS)
    texts: list[JsonValue] = [*tags] if isinstance(tags, list) else []
    if not texts:
        return texts
    with guard:
        return [t for t in texts if isinstance(t, str) and not tree.reader.is_internal(t)]
    return texts


# --- retriever and generator runs -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _ReadRuns:
    """The retriever and generator runs of a tree, as readers found them and as they are kept."""

    retrievals: list[tuple[Run, Retrieval]]
    """What the outermost retriever runs returned."""

    generations: list[tuple[Run, Generation]]
    """What the outermost generator runs answered."""

    retrievers: list[tuple[Run, RetrieverRun]]
    """The retriever runs as they are kept, and searches that no framework reported."""

    kept: tuple[ReadRun, ...]
    """The runs that get a span, in the order of their start."""

    dropped: int
    """Number of runs beyond the bounds."""


def _read_runs(tree: RunTree, of: Values) -> _ReadRuns:
    # The outermost of each kind: an inner retriever hands its documents to the outer one.
    retrievals = [
        (run, try_read(of.guard, run.read_by.retrieval, run, NOTHING))
        for run in tree.of_kind(RunKind.RETRIEVER)
        if not run.has_ancestor(RunKind.RETRIEVER)
    ]
    generations = [
        (run, try_read(of.guard, run.read_by.generation, run, Generation()))
        for run in tree.of_kind(RunKind.GENERATOR)
        if not run.has_ancestor(RunKind.GENERATOR)
    ]
    found: list[Part] = [(run, _retriever_run(run, each, of)) for run, each in retrievals]
    retrievers = bounded_chunks(found or _unreported(tree, of))
    parts = [*retrievers, *[(run, _generator_run(run, each, of)) for run, each in generations]]
    kept = _with_parents(tree, bounded_runs(parts))
    searches = [(run, each) for run, each in retrievers if isinstance(each, RetrieverRun)]
    dropped = tree.dropped + len(parts) - len(kept)
    return _ReadRuns(retrievals, generations, searches, kept, dropped)


def _unreported(tree: RunTree, of: Values) -> list[Part]:
    """Searches without a retriever run; each set of documents counts where it first came out."""
    seen: set[str] = set()
    parts: list[Part] = []
    # By their end, and without the root: documents pass through many runs, and the one that ended
    # first is where they came from.
    for run in sorted(tree.runs[1:], key=lambda run: run.end or 0):
        found = try_read(of.guard, run.read_by.unreported_retrieval, run, None)
        read = None if found is None else _retriever_run(run, found, of)
        if read is not None and not seen.issuperset(c.id for c in read.chunks):
            seen.update(chunk.id for chunk in read.chunks)
            parts.append((run, read))
    return parts


def _retriever_run(run: Run, retrieval: Retrieval, of: Values) -> RetrieverRun:
    # Cut before anything is cleaned: a retriever may return 10,000 documents.
    kept = [of.chunk(document) for document in list(retrieval.documents)[:MAX_CHUNKS]]
    return RetrieverRun(
        started=run.start,
        ended=run.end or of.ended,
        error_type=_error_type_of(run),
        completed=run.is_completed,
        span_id=_span_id(run),
        query=of.text(retrieval.query),
        chunks=tuple([chunk for chunk, _ in kept]),
        id_sources=tuple([source for _, source in kept]),
        found=len(retrieval.documents),
        source=of.text(retrieval.source),
    )


def _generator_run(run: Run, generation: Generation, of: Values) -> GeneratorRun:
    call = generation.call
    return GeneratorRun(
        started=run.start,
        ended=run.end or of.ended,
        error_type=_error_type_of(run),
        completed=run.is_completed,
        span_id=_span_id(run),
        prompt=of.text(generation.prompt),
        completion=of.text(generation.completion),
        model=of.text(generation.model),
        provider=provider_of(of.text(generation.provider)).name,
        operation="text_completion" if generation.is_completion else "chat",
        input_tokens=call.input_tokens,
        output_tokens=call.output_tokens,
        response_id=of.text(call.response_id, MAX_NAME_BYTES),
        response_model=of.text(call.response_model, MAX_NAME_BYTES),
        finish_reason=of.text(call.finish_reason, MAX_NAME_BYTES),
        temperature=call.temperature,
        top_p=call.top_p,
        max_tokens=call.max_tokens,
        messages=read_messages(generation.messages, of.message_text),
    )


def _with_parents(tree: RunTree, parts: Sequence[Part]) -> tuple[ReadRun, ...]:
    """The runs in the order of their start, each with the index of the run that encloses it."""
    # By their place in the tree, not by their times: clocks are set back, and a parent has to come
    # before its children.
    place = {id(run): i for i, run in enumerate(tree.runs)}
    ordered = sorted(parts, key=lambda part: place[id(part[0])])
    index = {id(run): i for i, (run, _) in enumerate(ordered)}
    found: list[ReadRun] = []
    for run, read in ordered:
        parent = run.parent
        while parent is not None and id(parent) not in index:
            parent = parent.parent
        found.append(read if parent is None else replace(read, parent=index[id(parent)]))
    return tuple(found)


def _error_type_of(run: Run) -> str:
    """The class of the exception that ended a run; empty if it did not fail."""
    # A closed stream and a cancelled task end in a BaseException, and are no errors.
    if run.error is None or not issubclass(run.error, Exception):
        return ""
    return clean(run.error.__qualname__)


def _span_id(run: Run) -> str:
    """The id of a span that an instrumentation made for the run; ours are made from the job."""
    return format_span_id(run.span_id) if run.span_id else ""


# --- the state that the pipeline's own result leads to --------------------------------------------


class _Result(NamedTuple):
    """How a pipeline ended."""

    status: Status | None
    """The state that the record ends in; None if it can be evaluated."""

    reason: str = ""
    """More about the state; empty if it says all."""


def _result_of(
    tree: RunTree,
    generations: Sequence[Generated],
    chunks: Sequence[Chunk],
    query: str,
    response: str,
    guard: Guard,
    retrievers: Sequence[tuple[Run, RetrieverRun]],
) -> _Result:
    # First, as an index whose building fails or is cancelled is no query either.
    if not try_read(guard, tree.reader.is_query, tree.root, True):
        return _Result(Status.NO_ANSWER, NOTHING_ASKED)
    ended = _unfinished(tree, generations, response, guard)
    if ended is not None:
        return ended
    if not chunks:
        return _Result(Status.NO_CONTEXT, _lacking(retrievers))
    if not response.strip():
        has_said = any(each.completion.strip() for each in generations)
        why = try_read(guard, tree.reader.untold, tree.root, "") if has_said else ""
        return _Result(Status.NO_ANSWER, why)
    if not query.strip() and any(each.query for _, each in retrievers):
        return _Result(Status.NO_ANSWER, UNTOLD)
    names_answer = try_read(guard, tree.reader.names_answer, tree.root, True)
    if not names_answer and _is_repeated(chunks, generations, response):
        was_told = any(chunk.text in each.prompt for chunk in chunks for each in generations)
        return _Result(Status.NO_ANSWER, REPEATED if was_told else NOTHING_ASKED)
    return _Result(None)


def _unfinished(
    tree: RunTree, generations: Sequence[Generated], response: str, guard: Guard
) -> _Result | None:
    """The state of a run that has not come to its end; None if it has."""
    root = tree.root
    # The order matters: a cancelled run has failed, too, and an abandoned one has no answer.
    interrupted = try_read(guard, tree.reader.interrupted, root, False)
    if interrupted or root.failed_with(asyncio.CancelledError):
        return _Result(Status.INTERRUPTED)
    if root.end is None:
        return _Result(Status.ABANDONED, "the run never ended")
    if _is_abandoned(tree, generations, response):
        return _Result(Status.ABANDONED, "the stream was not read to its end")
    if root.error is None:
        return None
    # What is no ``Exception`` was raised to end the run, and not by a fault in it: by Ctrl-C, or by
    # a host such as Streamlit, which stops a script where its user has gone on.
    return _Result(Status.APP_ERROR if issubclass(root.error, Exception) else Status.INTERRUPTED)


def _is_abandoned(tree: RunTree, generations: Sequence[Generated], response: str) -> bool:
    """Whether the reader of a stream left: its generator was closed, or still runs.

    A model that runs on in the background, for a title, is not the one that gives the answer.
    """
    root = tree.root
    if root.error is not None:
        return root.failed_with(GeneratorExit)
    models = tree.of_kind(RunKind.GENERATOR)
    if not models:
        # The parts of a chain end within it, unless it was left.
        return tree.is_left or any(run.end is None for run in tree.runs)
    is_running = any(run.end is None for run in models)
    return is_running and not any(gave(each, response) for each in generations)


def _lacking(retrievers: Sequence[tuple[Run, RetrieverRun]]) -> str:
    if not retrievers:
        return "no retriever ran"
    is_empty = not any(run.chunks for _, run in retrievers)
    return "the retriever returned no chunks" if is_empty else "no chunk reached the generator"


def _is_repeated(chunks: Sequence[Chunk], generations: Sequence[Generated], response: str) -> bool:
    """Whether the response is what was retrieved, in whatever form, and no model may have given it.

    A model that has said nothing gave nothing, though it may have.
    """
    if any(may_have_given(each, response) for each in generations if each.completion.strip()):
        return False
    # An answer that was edited after the model gave it, with its passages below it.
    if without_shown(response, [each.text for each in chunks]) != response:
        return False
    repeated = [each.text for each in chunks if each.text in response]
    return len(repeated) == len(chunks) or any(len(text) >= MIN_REPEATED for text in repeated)
