"""Plain functions as pipelines: reads what they return, and captures it as a record."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextvars import copy_context

from claimspan.errors import ConfigError
from claimspan.text.shapes import is_list
from claimspan_tracing.capture.hooks import Capture
from claimspan_tracing.monitor import Monitor
from claimspan_tracing.observed import (
    ObservedReader,
    ObservedRecord,
    chunks_of,
    document_of,
    is_pair,
    open_record,
    text_of,
)
from claimspan_tracing.run.pipeline import AttachedPipeline, attach_all
from claimspan_tracing.suppression import suppress

__all__ = ["attach_function"]


def attach_function(function: Callable[[str], object], monitor: Monitor) -> AttachedPipeline:
    """Capture the calls of a function.

    If it returns chunks, they are its record, and what it does with frameworks is left out from
    the second call on. If it returns none, the record of the framework counts.

    Args:
        function: From question to answer; it may be asynchronous.
        monitor: Takes the records.
    """
    undo = attach_all(monitor)

    def detach() -> None:
        for each in undo:
            each()

    return AttachedPipeline(_Calls(function, monitor).ask, detach)


class _Calls:
    """Opens a record for each call of a function, and ends it with what the call returns."""

    def __init__(self, function: Callable[[str], object], monitor: Monitor) -> None:
        self._function = function
        self._monitor = monitor
        self._capture = Capture(ObservedReader(), monitor)
        self._name = getattr(function, "__name__", type(function).__name__)
        self._returns_chunks = False

    def ask(self, query: str) -> object:
        capture, feedback = self._capture, self._monitor.feedback
        record = open_record(capture, feedback, name=self._name, inputs=query, metadata=None)
        try:
            # In a copy of the context, so that nothing is suppressed in the thread's next call.
            returned = copy_context().run(self._call, query)
            if inspect.isawaitable(returned):
                return self._finish_later(record, query, returned)
            self._finish(record, query, returned)
        except BaseException as error:
            record.end(error)
            raise
        return None

    def _call(self, query: str) -> object:
        # What the first call has returned tells whose record counts.
        if self._returns_chunks:
            suppress()
        returned = self._function(query)
        return self._awaited(returned) if inspect.isawaitable(returned) else returned

    async def _awaited(self, returned: Awaitable[object]) -> object:
        if self._returns_chunks:
            suppress()
        return await returned

    async def _finish_later(
        self, record: ObservedRecord, query: str, returned: Awaitable[object]
    ) -> None:
        try:
            self._finish(record, query, await returned)
        except BaseException as error:
            record.end(error)
            raise

    def _finish(self, record: ObservedRecord, query: str, returned: object) -> None:
        # A list of anything has no answer and no chunks that could be told apart.
        text = text_of(returned) if is_pair(returned) or not is_list(returned) else ""
        if not text:
            raise ConfigError(
                f"the function returned a {type(returned).__name__}: return a str, (answer, "
                "chunks), or a mapping with answer and chunks"
            )
        chunks = chunks_of(returned)
        if chunks is not None:
            documents = [document_of(chunk) for chunk in chunks]
            if None in documents:
                kind = type(chunks[documents.index(None)]).__name__
                raise ConfigError(
                    f"a chunk is of type {kind} without text: return texts, or mappings with text, "
                    "id and score"
                )
            self._returns_chunks = True
            record.retrieved(documents, query=query)
        record.answered(text)
        record.end()
