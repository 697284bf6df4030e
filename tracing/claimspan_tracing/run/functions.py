"""Plain functions as pipelines: reads what they return, and captures it as a record."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from typing import Final

from claimspan.errors import ConfigError
from claimspan.text.shapes import is_list
from claimspan_tracing.capture.hooks import Capture
from claimspan_tracing.capture.reader import Document, Generation, Retrieval
from claimspan_tracing.capture.runs import Run, RunKind
from claimspan_tracing.monitor import Monitor
from claimspan_tracing.observed import chunks_of, document_of, is_pair, text_of
from claimspan_tracing.run.pipeline import AttachedPipeline, attach_all
from claimspan_tracing.suppression import suppress

__all__ = ["Answer", "attach_function", "read_answer"]

_WANTED: Final = "return a str, (answer, chunks), or a mapping with answer and chunks"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a function returned."""

    text: str
    """The answer."""

    documents: tuple[Document, ...] | None = None
    """What was retrieved; None where the function does not say."""


def read_answer(returned: object) -> Answer:
    """Read what a function returned: a text, ``(answer, chunks)``, or a mapping.

    Raises:
        ConfigError: It is something else.
    """
    text, chunks = _parts(returned)
    if not isinstance(text, str) or not (chunks is None or is_list(chunks)):
        raise ConfigError(f"the function returned a {type(returned).__name__}: {_WANTED}")
    return Answer(text, None if chunks is None else tuple(map(_document, chunks)))


def _parts(returned: object) -> tuple[object, object]:
    """The answer and the chunks, as far as they can be told apart."""
    if is_list(returned) and not is_pair(returned):
        return None, None
    return text_of(returned) or None, chunks_of(returned)


def attach_function(function: Callable[[str], object], monitor: Monitor) -> AttachedPipeline:
    """Capture the calls of a function.

    Where it returns chunks, they are its record, and what it does with frameworks is left out from
    the second call on. Where it returns none, the record of the framework counts.

    Args:
        function: From question to answer; it may be asynchronous.
        monitor: Takes the records.
    """
    undo = attach_all(monitor)
    calls = _Calls(function, monitor)

    def detach() -> None:
        for each in undo:
            each()

    return AttachedPipeline(calls.ask, detach)


class _Calls:
    """Reports the calls of a function to a capture, with what they return."""

    def __init__(self, function: Callable[[str], object], monitor: Monitor) -> None:
        self._function = function
        self._capture = Capture(_FunctionReader(), monitor)
        self._name = getattr(function, "__name__", type(function).__name__)
        self._returns_chunks = False

    def ask(self, query: str) -> object:
        run_id = object()
        self._capture.start(run_id, None, RunKind.CHAIN, self._name, query)
        # What the first call has returned tells whose record counts; a copy of the context, so
        # that nothing is suppressed in the thread's next call.
        call = copy_context().run
        try:
            returned = call(self._call, query)
        except BaseException as error:
            self._capture.fail(run_id, error)
            raise
        if inspect.isawaitable(returned):
            return self._finish_later(run_id, query, returned)
        return self._finish(run_id, query, returned)

    def _call(self, query: str) -> object:
        if self._returns_chunks:
            suppress()
        returned = self._function(query)
        return self._awaited(returned) if inspect.isawaitable(returned) else returned

    async def _awaited(self, returned: Awaitable[object]) -> object:
        if self._returns_chunks:
            suppress()
        return await returned

    async def _finish_later(
        self, run_id: object, query: str, returned: Awaitable[object]
    ) -> object:
        try:
            answer = await returned
        except BaseException as error:
            self._capture.fail(run_id, error)
            raise
        return self._finish(run_id, query, answer)

    def _finish(self, run_id: object, query: str, returned: object) -> Answer:
        try:
            answer = read_answer(returned)
        except ConfigError as error:
            self._capture.fail(run_id, error)
            raise
        if answer.documents is not None:
            self._returns_chunks = True
            # A run of its own, since the reader takes chunks from retriever runs alone.
            search = object()
            self._capture.start(search, run_id, RunKind.RETRIEVER, "chunks", query)
            self._capture.end(search, answer)
        self._capture.end(run_id, answer)
        return answer


class _FunctionReader:
    """Reads the one or two runs of a call."""

    def is_query(self, root: Run) -> bool:
        """Return True: a function is called with a question."""
        return True

    def query(self, root: Run) -> object:
        """Return the question."""
        return root.inputs

    def response(self, root: Run) -> object:
        """Return the text of the answer."""
        return root.outputs.text if isinstance(root.outputs, Answer) else None

    def names_answer(self, root: Run) -> bool:
        """Return True: it is what the function returned."""
        return True

    def retrieval(self, run: Run) -> Retrieval:
        """Return the chunks that the function returned."""
        found = run.outputs.documents if isinstance(run.outputs, Answer) else None
        return Retrieval(run.inputs, found or ())

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return None: there are no other runs."""
        return None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return nothing: a function is given a question."""
        return ()

    def passages(self, run: Run) -> Sequence[str]:
        """Return nothing: a function returns its chunks."""
        return ()

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return None: the generator read what was retrieved."""
        return None

    def generation(self, run: Run) -> Generation:
        """Return nothing: a function does not tell of its models."""
        return Generation()

    def is_internal(self, name: str) -> bool:
        """Return False: no framework adds metadata."""
        return False

    def parts(self, value: object) -> Sequence[object]:
        """Return the texts of an answer."""
        if not isinstance(value, Answer):
            return ()
        return [value.text, *(document.text for document in value.documents or ())]

    def interrupted(self, root: Run) -> bool:
        """Return False: a function waits for nobody."""
        return False


def _document(chunk: object) -> Document:
    document = document_of(chunk)
    if document is None:
        raise ConfigError(
            f"a chunk is of type {type(chunk).__name__} without text:"
            " return texts, or mappings with "
            "text, id and score"
        )
    return document
