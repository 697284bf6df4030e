"""Reads the runs of a record that was observed, with those of frameworks that joined it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.capture.paths import Key, value_at
from claimspan_tracing.capture.reader import Document, Generation, Reader, Retrieval
from claimspan_tracing.capture.runs import Run, RunKind
from claimspan_tracing.observed.returned import document_of, text_of
from claimspan_tracing.text import join_bounded

__all__ = ["Arguments", "ObservedReader", "Outcome", "Parts"]

QUERY_NAMES = ("query", "question", "input", "user_input", "user_query", "prompt", "text")
"""Names of parameters that hold the user's question; else it is the first text."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a function was called with."""

    names: Sequence[str]
    """Names of its positional parameters."""

    positional: tuple[object, ...]
    """Its positional arguments."""

    named: Mapping[str, object]
    """Its named arguments."""

    def by_name(self) -> dict[str, object]:
        """The arguments by the names of their parameters, or by their place where that is all."""
        named = dict(zip(self.names, self.positional, strict=False))
        unnamed = enumerate(self.positional[len(named) :], len(named))
        return {**named, **{str(place): value for place, value in unnamed}, **self.named}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a block or a function ended with."""

    answer: object = None
    """What it answered; None where it did not say."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a stream has yielded."""

    parts: Sequence[object]
    """In their order."""


class ObservedReader:
    """Reads what the application's code has said itself, and asks the readers of joined runs."""

    def __init__(self, query_key: Key | None = None, response_key: Key | None = None) -> None:
        """Set where query and response are.

        Args:
            query_key: Name of a parameter, a path from it, or a callable that takes all arguments.
            response_key: Where the answer is in what the function returns.
        """
        self._query_key = query_key
        self._response_key = response_key

    def is_query(self, root: Run) -> bool:
        """Return True: the code says so by recording it."""
        return True

    def query(self, root: Run) -> object:
        """Return the question."""
        asked = root.inputs
        if not isinstance(asked, Arguments):
            return asked if isinstance(asked, str) else text_of(asked)
        arguments = asked.by_name()
        if self._query_key is not None:
            return value_at(arguments, self._query_key)
        named = [arguments[name] for name in QUERY_NAMES if name in arguments]
        texts = (each for each in (*named, *arguments.values()) if isinstance(each, str))
        return next(texts, None)

    def response(self, root: Run) -> object:
        """Return the answer: what the code said, else what the last joined run answered."""
        said = _said(root)
        if isinstance(said, Parts):
            return join_bounded(map(text_of, said.parts))
        if said is not None and self._response_key is not None and not isinstance(said, str):
            said = value_at(said, self._response_key)
        return text_of(said) or _generated(root)

    def names_answer(self, root: Run) -> bool:
        """Return True: the code has said it."""
        return True

    def retrieval(self, run: Run) -> Retrieval:
        """Return the documents that the code said it has retrieved."""
        found = run.outputs if is_list(run.outputs) else ()
        return Retrieval(run.inputs, [d for d in map(document_of, found) if d is not None])

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return None: what was not said is not known."""
        return None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return nothing: what was not said is not known."""
        return ()

    def passages(self, run: Run) -> Sequence[str]:
        """Return nothing: what was not said is not known."""
        return ()

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return what a joined pipeline says that its generator read."""
        said = (reader.context(run) for run, reader in _joined(root))
        return next((documents for documents in said if documents is not None), None)

    def generation(self, run: Run) -> Generation:
        """Return the prompt and the completion that the code has said."""
        return run.outputs if isinstance(run.outputs, Generation) else Generation()

    def is_internal(self, name: str) -> bool:
        """Return False: no framework adds metadata."""
        return False

    def parts(self, value: object) -> Sequence[object]:
        """Return the texts of arguments, documents and answers."""
        match value:
            case Arguments():
                return (value.positional, dict(value.named))
            case Outcome():
                return (value.answer,)
            case Parts():
                return value.parts
            case Generation():
                return (value.prompt, value.completion)
            case _:
                return _texts_of(value)

    def interrupted(self, root: Run) -> bool:
        """Whether the task was cancelled, or a joined pipeline waits for a person."""
        if root.failed_with(asyncio.CancelledError):
            return True
        return any(reader.interrupted(run) for run, reader in _joined(root))


def _said(root: Run) -> object:
    """What the code has answered or returned; None where it has not said."""
    return root.outputs.answer if isinstance(root.outputs, Outcome) else None


def _joined(root: Run) -> Iterator[tuple[Run, Reader]]:
    """The outermost runs of frameworks in a record, each with the reader of its framework."""
    for run in root.tree.runs:
        if run.parent is root and run.reader is not None:
            yield run, run.reader


def _generated(root: Run) -> object:
    """What the last generator answered, as the pipeline around it returned it where it has one."""
    completed = [
        run
        for run in root.tree.of_kind(RunKind.GENERATOR)
        if run.end is not None and run.error is None
    ]
    if not completed:
        return None
    generator = completed[-1]
    outermost = _outermost(generator, root)
    if outermost is not generator and outermost.reader is not None:
        answer = outermost.reader.response(outermost)
        if answer:
            return answer
    return (generator.reader or root.tree.reader).generation(generator).completion


def _outermost(run: Run, root: Run) -> Run:
    """The run of a framework that a run belongs to, just below the root."""
    while run.parent is not None and run.parent is not root:
        run = run.parent
    return run


def _texts_of(value: object) -> Sequence[object]:
    """The long text of an object of a framework, without calling code of the user's."""
    if is_mapping(value):
        return ()
    fields: Mapping[str, object] = getattr(value, "__dict__", {})
    return [each for each in fields.values() if isinstance(each, str)]
