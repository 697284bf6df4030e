"""The handle of a record that the application's own code fills."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from types import TracebackType
from typing import Final, Protocol, Self

from opentelemetry.trace import INVALID_SPAN_CONTEXT, format_span_id, format_trace_id

from claimspan_tracing.capture.hooks import Capture
from claimspan_tracing.capture.joining import joined
from claimspan_tracing.capture.reader import Generation
from claimspan_tracing.capture.runs import Run, RunKind
from claimspan_tracing.observed.reader import Outcome, Parts
from claimspan_tracing.observed.returned import chunks_of

__all__ = ["Feedback", "ObservedRecord", "current_record", "open_record"]


class Feedback(Protocol):
    """``Monitor.feedback``."""

    def __call__(self, value: float, *, trace_id: str, span_id: str) -> None:
        """Note what a user said about a response."""
        ...


_current: Final[ContextVar[ObservedRecord | None]] = ContextVar("claimspan_observed", default=None)


def current_record() -> ObservedRecord | None:
    """Return the record that the calling code is in; None outside of one."""
    return _current.get()


class ObservedRecord:
    """A query that the application's own code answers; made by ``Monitor.record`` and ``observe``.

    What frameworks run within the block becomes a part of the record, where an integration of the
    same monitor is attached. Methods may be called in any thread, and never raise: a fault of ours
    is counted, and the record has what could be read.
    """

    def __init__(self, capture: Capture, root: Run | None, feedback: Feedback) -> None:
        """Begin a record.

        Args:
            capture: Takes the runs.
            root: The root that was started; None where nothing is captured.
            feedback: Takes what users say.
        """
        self._capture = capture
        self._root = root
        self._feedback = feedback
        # Not asked of the span later: who keeps this handle for feedback is not to keep the texts.
        context = INVALID_SPAN_CONTEXT if root is None else root.tree.span.get_span_context()
        self.trace_id: Final = format_trace_id(context.trace_id)
        """Trace of the query, 32 hex digits; zeros where nothing is captured."""
        self.span_id: Final = format_span_id(context.span_id)
        """Root span of the query, 16 hex digits; zeros where nothing is captured."""
        self._answer: object = None
        self._block: AbstractContextManager[None] | None = None

    def retrieved(self, documents: Iterable[object], *, query: str | None = None) -> None:
        """Note what was found for the query. May be called for each search.

        Args:
            documents: Texts, mappings with ``text``, ``id``, ``score`` and ``metadata``, or the
                documents and nodes of a framework. What has no text is left out.
            query: What was searched for; None stands for the query of the record.
        """
        with self._capture.guard:
            found = list(documents)
            self._add(RunKind.RETRIEVER, "retrieved", query, found)

    def generated(
        self, completion: str, *, prompt: str | None = None, model: str | None = None
    ) -> None:
        """Note a call of a language model. Only needed where no integration reports it.

        Args:
            completion: What the model wrote.
            prompt: What it read.
            model: Its name.
        """
        made = Generation(prompt=prompt, completion=completion, model=model)
        with self._capture.guard:
            self._add(RunKind.GENERATOR, "generated", prompt, made)

    def answered(self, answer: object) -> None:
        """Note the answer that the user gets; the last one counts.

        Args:
            answer: A text, a message, or a mapping that has the text under a usual name.
        """
        self._answer = answer

    def feedback(self, value: float) -> None:
        """Note what the user said about the answer, at any time; as ``Monitor.feedback``.

        Args:
            value: From 0.0 (bad) to 1.0 (good).

        Raises:
            ConfigError: The value is out of its range.
        """
        if int(self.trace_id, 16):
            self._feedback(value, trace_id=self.trace_id, span_id=self.span_id)

    def __enter__(self) -> Self:
        """Begin the block; code in its context belongs to the record."""
        self._block = self.inside()
        self._block.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the record; what the block raised is its error, and goes on."""
        if self._block is not None:
            self._block.__exit__(None, None, None)
        self.end(error)

    @contextmanager
    def inside(self) -> Generator[None]:
        """Have code belong to the record, without ending it: one step of a stream."""
        before = _current.get()
        _current.set(self)
        try:
            with nullcontext() if self._root is None else joined(self._root):
                yield
        finally:
            # Not ``reset``, which refuses to work in another context.
            _current.set(before)

    def returned(self, value: object) -> None:
        """End the record with what its function has returned."""
        if self._answer is None:
            self._answer = value
        with self._capture.guard:
            documents = chunks_of(value)
            if documents is not None and not self._has_retrieved():
                self.retrieved(documents)
        self.end()

    def streamed(self, parts: list[object], returned: object) -> None:
        """End the record with the parts of its answer, or with what its generator returned."""
        self.returned(Parts(parts) if parts else returned)

    def end(self, error: BaseException | None = None) -> None:
        """End the record, once: with what was answered, or with an exception."""
        root, self._root = self._root, None
        answer, self._answer = self._answer, None
        if root is None:
            return
        if error is None or (answer is not None and _is_left(error)):
            self._capture.end(root.id, Outcome(answer))
        else:
            self._capture.fail(root.id, error)

    def _has_retrieved(self) -> bool:
        return self._root is not None and bool(self._root.tree.of_kind(RunKind.RETRIEVER))

    def _add(self, kind: RunKind, name: str, inputs: object, outputs: object) -> None:
        """Add a run that has ended."""
        if self._root is None:
            return
        run_id = object()
        # Of a record that has ended it is no query of its own.
        self._capture.start(run_id, self._root.id, kind, name, inputs, may_be_root=False)
        self._capture.end(run_id, outputs)


def _is_left(error: BaseException) -> bool:
    """Whether code has left on purpose, by ``sys.exit()`` or ``st.rerun()`` of Streamlit.

    What it has answered before counts. The reader of a stream who leaves, and a task that is
    cancelled, may have been given a part.
    """
    return not isinstance(error, Exception | GeneratorExit | asyncio.CancelledError)


def open_record(
    capture: Capture,
    feedback: Feedback,
    *,
    name: str,
    inputs: object,
    metadata: Mapping[str, object] | None,
) -> ObservedRecord:
    """Start the root of a record.

    Args:
        capture: Takes the runs.
        feedback: Takes what users say.
        name: What the pipeline is called.
        inputs: What went in: the query, or the arguments of a function.
        metadata: What the application knows about the query.
    """
    run_id = object()
    capture.start(run_id, None, RunKind.CHAIN, name, inputs, metadata)
    return ObservedRecord(capture, capture.run(run_id), feedback)
