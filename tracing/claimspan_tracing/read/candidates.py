"""Everything that a generator may have read, as the runs of a pipeline show it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeVar

from claimspan_tracing.capture.runs import Document, Reader, Retrieval, Run, RunKind, RunTree
from claimspan_tracing.guard import Guard
from claimspan_tracing.read.answering import is_no_answer

__all__ = ["Candidates", "counts", "is_completed", "reader_of", "try_read", "was_thrown_away"]

_T = TypeVar("_T")

NO_DOCUMENTS: Final[Sequence[Document]] = ()
NO_RETRIEVAL: Final = Retrieval(None, ())
NO_TEXTS: Final[Sequence[str]] = ()


def reader_of(run: Run) -> Reader:
    """Return the reader of the framework that a run is of."""
    return run.reader or run.tree.reader


def try_read(guard: Guard, read: Callable[[Run], _T], run: Run, default: _T) -> _T:
    """Return what a method of a reader finds in a run, or the default if it raises."""
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
        if run.error is not None and issubclass(run.error, Exception):
            return True
        run = run.parent
    return False


def counts(run: Run) -> bool:
    """Whether what a generator run said may have reached the answer."""
    return is_completed(run) and not was_thrown_away(run)


class Candidates:
    """What a generator may have read, as the runs of a tree show it. Read only if needed."""

    def __init__(
        self,
        tree: RunTree,
        retrievals: Sequence[tuple[Run, Retrieval]],
        guard: Guard,
        named: Sequence[Document] | None = None,
        *,
        is_by_hand: bool = False,
    ) -> None:
        """Look at the runs that are no part of an attempt that was thrown away.

        Args:
            tree: The runs.
            retrievals: What was retrieved in them.
            guard: Counts the faults of readers.
            named: What the pipeline itself says that its generator was given; None if it does not.
            is_by_hand: Whether the prompt may hold evidence that was written there by hand: no
                retriever and no list of documents was seen.
        """
        self.named: Final = named
        self.is_by_hand: Final = is_by_hand
        self._tree: Final = tree
        self._guard: Final = guard
        self._retrievals: Final = [each for run, each in retrievals if not was_thrown_away(run)]
        # Nor are those below a retriever: it hands on what they have found.
        self._steps: Final = [
            (run, reader_of(run))
            for run in tree.runs
            if not (run.kind is RunKind.RETRIEVER or run.has_ancestor(RunKind.RETRIEVER))
            and not was_thrown_away(run)
        ]
        asking = (run for run in tree.runs if run.kind is RunKind.GENERATOR)
        asks = any(run.has_ancestor(RunKind.RETRIEVER) for run in asking)
        inner = (run for run in tree.of_kind(RunKind.RETRIEVER) if asks)
        self._inner: Final = [run for run in inner if run.has_ancestor(RunKind.RETRIEVER)]

    def documents(self) -> Iterator[Document]:
        """Return every document that was retrieved, given to a run, or returned by one."""
        return chain.from_iterable(self._lists())

    def _lists(self) -> Iterator[Sequence[Document]]:
        for each in self._retrievals:
            yield each.documents
        for run, reader in self._steps:
            yield try_read(self._guard, reader.given_documents, run, NO_DOCUMENTS)
            found = try_read(self._guard, reader.unreported_retrieval, run, None)
            if found is not None:
                yield found.documents
        # What a model within a retriever has put into words of its own.
        for run in self._inner:
            yield try_read(self._guard, reader_of(run).retrieval, run, NO_RETRIEVAL).documents

    def passages(self) -> list[str]:
        """Return every text that may be evidence, and is no document."""
        found: list[str] = []
        for run, reader in self._steps:
            found += try_read(self._guard, reader.passages, run, NO_TEXTS)
        return found

    def last_given(self) -> list[Document] | None:
        """Return the last list of documents that was handed on before the answer.

        None if there is none. A list that lacks everything of one retriever is one of several
        that were handed on side by side, and cannot be all that was read.
        """
        models = self._tree.of_kind(RunKind.GENERATOR)
        outermost = (run.start for run in models if not run.has_ancestor(RunKind.GENERATOR))
        until = max(outermost, default=None)  # without any, a function of the user's has answered
        given: list[Document] = []
        for run, reader in self._steps:
            if until is None or run.start <= until:
                found = try_read(self._guard, reader.given_documents, run, NO_DOCUMENTS)
                given = [*found] or given
        texts = {str(document.text) for document in given}
        lists = [{str(each.text) for each in one.documents} for one in self._retrievals]
        return given if given and all(texts & each for each in lists if each) else None

    def is_written_alone(self, response: str) -> bool:
        """Whether code put the response together from nothing that was found, as a refusal is.

        The run that did is the first one that returned it. It was given no evidence, and of what it
        has found itself models have said no more than how good it is.

        Args:
            response: What the pipeline returned, and no model has said.
        """
        said = response.strip()
        kinds = RunKind.CHAIN, RunKind.TOOL
        chains = [e for e in self._steps if e[0].kind in kinds and is_completed(e[0])]
        nothing: object = ""
        for run, reader in sorted(chains, key=lambda each: each[0].end or 0):
            if str(try_read(self._guard, reader.response, run, nothing)).strip() == said:
                given = [*try_read(self._guard, reader.given_documents, run, NO_DOCUMENTS)]
                texts = try_read(self._guard, reader.passages, run, NO_TEXTS)
                is_given = bool(given) or any(text.strip() != said for text in texts)
                return not is_given and self._has_graded(run)
        return False

    def _has_graded(self, run: Run) -> bool:
        """Whether models said grades alone of what a run has found itself, if it has found any."""
        inner = [run, *run.below()]
        found = max((each.start for each in inner if each.kind is RunKind.RETRIEVER), default=None)
        models = [each for each in inner if each.kind is RunKind.GENERATOR]
        later = [each for each in models if found is None or each.start >= found]
        said = [try_read(self._guard, reader_of(each).generation, each, None) for each in later]
        grades = [is_no_answer(str(each.completion)) for each in said if each is not None]
        return all(grades) and (found is None or bool(grades))
