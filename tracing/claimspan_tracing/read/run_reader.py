"""Reads the retriever and generator runs of a tree: what went in, what came out, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from opentelemetry.trace import format_span_id

from claimspan_tracing.capture.runs import Generation, Retrieval, Run, RunKind, RunTree
from claimspan_tracing.job import MAX_CHUNKS, GeneratorRun, RetrieverRun
from claimspan_tracing.read.bounds import bounded_chunks, bounded_runs
from claimspan_tracing.read.candidates import is_completed, reader_of, try_read
from claimspan_tracing.read.messages import read_messages
from claimspan_tracing.read.values import Values
from claimspan_tracing.text import clean

__all__ = ["ReadRuns", "error_type_of", "read_runs"]

_Part = tuple[Run, RetrieverRun | GeneratorRun]

_NOTHING: Final = Retrieval(None, ())


@dataclass(frozen=True, slots=True)
class ReadRuns:
    """The retriever and generator runs of a tree, as readers found them and as they are kept."""

    retrievals: list[tuple[Run, Retrieval]]
    """What the outermost retriever runs returned."""

    generations: list[tuple[Run, Generation]]
    """What the outermost generator runs answered."""

    retrievers: list[tuple[Run, RetrieverRun]]
    """The retriever runs as they are kept, and searches that no framework reported."""

    kept: tuple[RetrieverRun | GeneratorRun, ...]
    """The runs that get a span, in the order of their start."""

    dropped: int
    """Number of runs beyond the bounds."""


def read_runs(tree: RunTree, of: Values) -> ReadRuns:
    """Read the runs of a tree.

    Args:
        tree: Its root has ended, or was given up.
        of: Cleans and bounds the values.
    """
    retrievals = _retrievals(tree, of)
    retrievers = bounded_chunks(_retriever_parts(tree, retrievals, of))
    generations = _generations(tree, of)
    parts = [*retrievers, *[(run, _generator_run(run, each, of)) for run, each in generations]]
    kept = _with_parents(tree, bounded_runs(parts))
    found = [(run, each) for run, each in retrievers if isinstance(each, RetrieverRun)]
    return ReadRuns(retrievals, generations, found, kept, tree.dropped + len(parts) - len(kept))


def error_type_of(run: Run) -> str:
    """Return the class of the exception that ended a run; empty where it did not fail."""
    # A closed stream and a cancelled task end in a BaseException, and are no errors.
    if run.error is None or not run.failed_with(Exception):
        return ""
    return clean(run.error.__qualname__)


def _retrievals(tree: RunTree, of: Values) -> list[tuple[Run, Retrieval]]:
    """The outermost retriever runs: an inner one hands its documents to the outer one."""
    return [
        (run, try_read(of.guard, reader_of(run).retrieval, run, _NOTHING))
        for run in tree.of_kind(RunKind.RETRIEVER)
        if not run.has_ancestor(RunKind.RETRIEVER)
    ]


def _retriever_parts(
    tree: RunTree, retrievals: Sequence[tuple[Run, Retrieval]], of: Values
) -> list[_Part]:
    parts: list[_Part] = [(run, _retriever_run(run, each, of)) for run, each in retrievals]
    return parts or _unreported(tree, of)


def _unreported(tree: RunTree, of: Values) -> list[_Part]:
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


def _generations(tree: RunTree, of: Values) -> list[tuple[Run, Generation]]:
    return [
        (run, try_read(of.guard, reader_of(run).generation, run, Generation()))
        for run in tree.of_kind(RunKind.GENERATOR)
        if not run.has_ancestor(RunKind.GENERATOR)
    ]


def _retriever_run(run: Run, retrieval: Retrieval, of: Values) -> RetrieverRun:
    # Cut before anything is cleaned: a retriever may return 10,000 documents.
    kept = [of.chunk(document) for document in list(retrieval.documents)[:MAX_CHUNKS]]
    return RetrieverRun(
        started=run.start,
        ended=run.end or of.ended,
        error_type=error_type_of(run),
        completed=is_completed(run),
        span_id=_span_id(run),
        query=of.text(retrieval.query),
        chunks=tuple(chunk for chunk, _ in kept),
        id_sources=tuple(source for _, source in kept),
        found=len(retrieval.documents),
        source=of.text(retrieval.source),
    )


def _generator_run(run: Run, generation: Generation, of: Values) -> GeneratorRun:
    return GeneratorRun(
        started=run.start,
        ended=run.end or of.ended,
        error_type=error_type_of(run),
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


def _span_id(run: Run) -> str:
    """The id of a span that somebody else made for the run; ours are made from the job."""
    return format_span_id(run.span_id) if run.span_id else ""
