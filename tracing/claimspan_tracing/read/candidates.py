"""Everything that a generator may have read, as the runs of a pipeline show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from claimspan_tracing.capture.runs import Document, Reader, Retrieval, Run, RunKind, RunTree
from claimspan_tracing.guard import Guard
from claimspan_tracing.read.answering import is_no_answer

__all__ = [
    "counts",
    "is_completed",
    "is_written_alone",
    "last_given",
    "reader_of",
    "seen_documents",
    "seen_passages",
    "try_read",
    "was_thrown_away",
]

_T = TypeVar("_T")

NO_DOCUMENTS: Final[Sequence[Document]] = ()
NO_TEXTS: Final[Sequence[str]] = ()


def reader_of(run: Run) -> Reader:
    """Return the reader of the framework that a run is of."""
    return run.reader or run.tree.reader


def try_read(guard: Guard, read: Callable[[Run], _T], run: Run, default: _T) -> _T:
    """Return what a method of a reader finds in a run, or the default where it raises."""
    # Not ``with guard``: entering a block of ``try`` costs nothing, and a record has many.
    try:
        return read(run)
    except Exception as error:  # noqa: BLE001 - an object of the application's may raise anything
        guard.swallow(error)
        return default


def is_completed(run: Run) -> bool:
    """Whether a run has ended without an error."""
    return run.end is not None and run.error is None


def was_thrown_away(run: Run) -> bool:
    """Whether a run failed or belongs to an attempt that did, which something else made up for."""
    while run.parent is not None:
        if run.failed_with(Exception):
            return True
        run = run.parent
    return False


def counts(run: Run) -> bool:
    """Whether what a generator run said may have reached the answer."""
    return is_completed(run) and not was_thrown_away(run)


def seen_documents(
    tree: RunTree, retrievals: Sequence[tuple[Run, Retrieval]], guard: Guard
) -> Iterator[Document]:
    """Yield every document that was retrieved, given to a run, or returned by one."""
    for _, each in retrievals:
        yield from each.documents
    for run in _others(tree):
        yield from try_read(guard, reader_of(run).given_documents, run, NO_DOCUMENTS)
        found = try_read(guard, reader_of(run).unreported_retrieval, run, None)
        yield from () if found is None else found.documents


def seen_passages(tree: RunTree, guard: Guard) -> Iterator[str]:
    """Yield every text that may be evidence, and is no document."""
    for run in _others(tree):
        yield from try_read(guard, reader_of(run).passages, run, NO_TEXTS)


def last_given(
    tree: RunTree,
    retrievals: Sequence[tuple[Run, Retrieval]],
    generators: Sequence[Run],
    guard: Guard,
) -> list[Document] | None:
    """Return the last list of documents that was handed on before the answer.

    None where there is none. A list that lacks everything of one retriever is one of several that
    were handed on side by side, and cannot be all that was read.

    Args:
        tree: The runs.
        retrievals: What was retrieved.
        generators: The runs that may have answered; without any, a function of the user's did.
        guard: Counts the faults of readers.
    """
    until = max((run.start for run in generators), default=None)
    given: list[Document] = []
    for run in _others(tree):
        if until is None or run.start <= until:
            given = [*try_read(guard, reader_of(run).given_documents, run, NO_DOCUMENTS)] or given
    texts = {str(document.text) for document in given}
    found = [{str(each.text) for each in one.documents} for _, one in retrievals if one.documents]
    return given if given and all(texts & each for each in found) else None


def is_written_alone(tree: RunTree, response: str, guard: Guard) -> bool:
    """Whether code put the response together from nothing that was found, as a refusal is.

    The run that did is the first one that returned it. It was given no evidence, and of what it has
    found itself models have said no more than how good it is.

    Args:
        tree: The runs.
        response: What the pipeline returned, and no model has said.
        guard: Counts the faults of readers.
    """
    said = response.strip()
    steps = (run for run in _others(tree) if is_completed(run) and run.kind is RunKind.CHAIN)
    for run in sorted(steps, key=lambda run: run.end or 0):
        read = reader_of(run)
        nothing: object = ""
        if str(try_read(guard, read.response, run, nothing)).strip() == said:
            given = [*try_read(guard, read.given_documents, run, NO_DOCUMENTS)]
            texts = [*try_read(guard, read.passages, run, NO_TEXTS)]
            is_given = bool(given) or any(text.strip() != said for text in texts)
            return not is_given and _has_graded(run, guard)
    return False


def _has_graded(run: Run, guard: Guard) -> bool:
    """Whether models said grades alone of what a run has found itself, if it has found anything."""
    inner = [each for each in run.tree.runs if _is_within(each, run)]
    found = max((each.start for each in inner if each.kind is RunKind.RETRIEVER), default=None)
    models = [each for each in inner if each.kind is RunKind.GENERATOR]
    later = [each for each in models if found is None or each.start >= found]
    said = [try_read(guard, reader_of(each).generation, each, None) for each in later]
    grades = [is_no_answer(str(each.completion)) for each in said if each is not None]
    return all(grades) and (found is None or bool(grades))


def _is_within(inner: Run, outer: Run) -> bool:
    while inner.parent is not None and inner is not outer:
        inner = inner.parent
    return inner is outer


def _others(tree: RunTree) -> Iterator[Run]:
    """The runs that are no part of a retriever, nor of an attempt that was thrown away."""
    for run in tree.runs:
        is_retriever = run.kind is RunKind.RETRIEVER or run.has_ancestor(RunKind.RETRIEVER)
        if not is_retriever and not was_thrown_away(run):
            yield run
