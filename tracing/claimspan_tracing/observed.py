"""Records of code that uses no framework: a block of code, and what runs within it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final, Protocol, Self, TypeGuard, cast

from opentelemetry.trace import INVALID_SPAN_CONTEXT, format_span_id, format_trace_id

from claimspan.files.names import CHUNK_NAMES
from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.capture.hooks import Capture, joined
from claimspan_tracing.capture.runs import (
    Document,
    Generation,
    Reader,
    Retrieval,
    Run,
    RunKind,
    value_at,
)
from claimspan_tracing.text import join_bounded

__all__ = [
    "Arguments",
    "ObservedReader",
    "ObservedRecord",
    "Parts",
    "chunks_of",
    "current_record",
    "document_of",
    "is_pair",
    "open_record",
    "text_of",
]

# --- the record -----------------------------------------------------------------------------------


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

    What frameworks run within the block becomes a part of the record, if an integration of the
    same monitor is attached. Methods may be called in any thread, and never raise: a fault of ours
    is counted, and the record has what could be read.
    """

    def __init__(self, capture: Capture, root: Run | None, feedback: Feedback) -> None:
        """Begin a record below a root that was started; None if nothing is captured."""
        self._capture = capture
        self._root = root
        self._feedback = feedback
        # Not asked of the span later: who keeps this handle for feedback is not to keep the texts.
        context = INVALID_SPAN_CONTEXT if root is None else root.tree.span.get_span_context()
        self.trace_id: Final = format_trace_id(context.trace_id)
        """Trace of the query, 32 hex digits; zeros if nothing is captured."""
        self.span_id: Final = format_span_id(context.span_id)
        """Root span of the query, 16 hex digits; zeros if nothing is captured."""
        self._answer: object = None
        self._block: AbstractContextManager[None] | None = None

    def retrieved(self, documents: Iterable[object], *, query: str | None = None) -> None:
        """Note the documents of the query. May be called for each search.

        Args:
            documents: Texts, mappings with ``text``, ``id``, ``score`` and ``metadata``, or the
                documents and nodes of a framework. Those without text are left out.
            query: The question of the search; None stands for the query of the record.
        """
        with self._capture.guard:
            found = list(documents)
            self._add(RunKind.RETRIEVER, "retrieved", query, found)

    def generated(
        self, completion: str, *, prompt: str | None = None, model: str | None = None
    ) -> None:
        """Note a call of a language model. Only needed if no integration reports it.

        Args:
            completion: What the model wrote.
            prompt: The model's input.
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

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """End the record. An exception of the block is its error, and is raised further."""
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
        """End the record with the result of its function."""
        if self._answer is None:
            self._answer = value
        with self._capture.guard:
            documents = chunks_of(value)
            if documents is not None and not self._has_retrieved():
                self.retrieved(documents)
        self.end()

    def end(self, error: BaseException | None = None) -> None:
        """End the record, once: with the answer, or with an exception."""
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
        if self._root is None:
            return
        run_id = object()
        # Of a record that has ended it is no query of its own.
        self._capture.start(run_id, self._root.id, kind, name, inputs, may_be_root=False)
        self._capture.end(run_id, outputs)


def _is_left(error: BaseException) -> bool:
    """Whether code has left on purpose, by ``sys.exit()`` or ``st.rerun()`` of Streamlit.

    Its answer of before counts. The reader of a stream who leaves, and a task that is cancelled,
    may have been given a part.
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
    """Start the root of a record: a query went in, or the arguments of a function."""
    run_id = object()
    capture.start(run_id, None, RunKind.CHAIN, name, inputs, metadata)
    return ObservedRecord(capture, capture.run(run_id), feedback)


# --- reading its runs ----------------------------------------------------------------------------

QUERY_NAMES = ("query", "question", "input", "user_input", "user_query", "prompt", "text")
"""Names of parameters that hold the user's question; else it is the first text."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a function."""

    names: Sequence[str]
    """Names of its positional parameters."""

    positional: tuple[object, ...]
    """Its positional arguments."""

    named: Mapping[str, object]
    """Its named arguments."""

    def by_name(self) -> dict[str, object]:
        """The arguments by the names of their parameters, or by their place if that is all."""
        named = dict(zip(self.names, self.positional, strict=False))
        unnamed = enumerate(self.positional[len(named) :], len(named))
        return {**named, **{str(place): value for place, value in unnamed}, **self.named}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a block or a function ended with."""

    answer: object = None
    """What it answered; None if it did not say."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The items that a stream has yielded."""

    parts: Sequence[object]
    """In their order."""


class ObservedReader(Reader):
    """Reads the reports of the application's code, and asks the readers of joined runs.

    A key of the question is a parameter's name, a path from it, or a callable of all arguments.
    """

    def is_query(self, root: Run) -> bool:
        """Return True: the code says so by recording it."""
        return True

    def query(self, root: Run) -> object:
        """Return the question."""
        asked = root.inputs
        if not isinstance(asked, Arguments):
            return asked if isinstance(asked, str) else text_of(asked)
        arguments = asked.by_name()
        if self.query_key is not None:
            return value_at(arguments, self.query_key)
        named = [arguments[name] for name in QUERY_NAMES if name in arguments]
        texts = (each for each in (*named, *arguments.values()) if isinstance(each, str))
        return next(texts, None)

    def response(self, root: Run) -> object:
        """Return the answer: what the code said, else what the last joined run answered."""
        said = _said(root)
        if isinstance(said, Parts):
            return join_bounded(map(text_of, said.parts))
        if said is not None and self.response_key is not None and not isinstance(said, str):
            said = value_at(said, self.response_key)
        return text_of(said) or _generated(root)

    def names_answer(self, root: Run) -> bool:
        """Return True: the code has said it."""
        return True

    def retrieval(self, run: Run) -> Retrieval:
        """Return the documents that the code said it has retrieved."""
        found = run.outputs if is_list(run.outputs) else ()
        return Retrieval(run.inputs, [d for d in map(document_of, found) if d is not None])

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return the context that a joined pipeline reports for its generator."""
        said = (reader.context(run) for run, reader in _joined(root))
        return next((documents for documents in said if documents is not None), None)

    def generation(self, run: Run) -> Generation:
        """Return the prompt and the completion that the code has said."""
        return run.outputs if isinstance(run.outputs, Generation) else Generation()

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
    """The answer that the code reported or returned; None if it did neither."""
    return root.outputs.answer if isinstance(root.outputs, Outcome) else None


def _joined(root: Run) -> Iterator[tuple[Run, Reader]]:
    """The outermost runs of frameworks in a record, each with the reader of its framework."""
    for run in root.tree.runs:
        if run.parent is root and run.reader is not None:
            yield run, run.reader


def _generated(root: Run) -> object:
    """What the last generator answered, as the pipeline around it returned it if it has one."""
    completed = [
        run
        for run in root.tree.of_kind(RunKind.GENERATOR)
        if run.end is not None and run.error is None
    ]
    if not completed:
        return None
    outermost = generator = completed[-1]
    while outermost.parent is not None and outermost.parent is not root:
        outermost = outermost.parent
    if outermost is not generator and outermost.reader is not None:
        answer = outermost.reader.response(outermost)
        if answer:
            return answer
    return (generator.reader or root.tree.reader).generation(generator).completion


def _texts_of(value: object) -> Sequence[object]:
    """The long text of an object of a framework, without calling code of the user's."""
    if is_mapping(value):
        return ()
    fields: Mapping[str, object] = getattr(value, "__dict__", {})
    return [each for each in fields.values() if isinstance(each, str)]


# --- what code hands over: documents, and answers ------------------------------------------------

ANSWER_KEYS: Final = ("response", "answer", "result", "output", "text", "content")
"""Keys and attributes in which functions return the answer."""

CHUNK_KEYS: Final = (
    *("chunks", "contexts", "context", "documents", "source_documents", "retrieved_context"),
    "sources",
)
"""Keys under which functions return retrieved documents."""

TEXT_KEYS: Final = CHUNK_NAMES["text"]
"""Keys and attributes in which a chunk has its text."""


def document_of(chunk: object) -> Document | None:
    """Read a chunk: a text, a mapping, or an object of LangChain, LlamaIndex or Haystack.

    Args:
        chunk: Its text stands under one of ``TEXT_KEYS``; ``id``, ``score`` and ``metadata`` (or
            ``meta``) are read if they are there.

    Returns:
        None if it has no text.
    """
    if isinstance(chunk, str):
        return Document(chunk)
    text = _first_of(chunk, TEXT_KEYS)
    if not isinstance(text, str):
        return None
    id_ = _first_of(chunk, ("id", "doc_id", "node_id"))
    metadata = _first_of(chunk, ("metadata", "meta"))
    return Document(
        text,
        id=None if id_ is None else str(id_),
        score=_first_of(chunk, ("score",)),
        metadata={str(key): each for key, each in metadata.items()} if is_mapping(metadata) else {},
    )


def text_of(answer: object) -> str:
    """Return the text of an answer: of a str, a message, a mapping, or ``(answer, documents)``.

    Returns:
        An empty text if none is found.
    """
    if is_pair(answer):
        answer = answer[0]
    if isinstance(answer, str):
        return answer
    found = _first_of(answer, ANSWER_KEYS)
    # One step and no further: an answer within an answer is not ours to guess.
    return found if isinstance(found, str) else ""


def chunks_of(returned: object) -> Sequence[object] | None:
    """Return the documents that a function has returned beside its answer; None without any."""
    if is_pair(returned):
        return returned[1]
    found = _first_of(returned, CHUNK_KEYS) if is_mapping(returned) else None
    return found if is_list(found) else None


def is_pair(returned: object) -> TypeGuard[tuple[object, Sequence[object]]]:
    """Whether a function has returned ``(answer, documents)``."""
    if not isinstance(returned, tuple):
        return False
    both = cast("tuple[object, ...]", returned)
    return len(both) == 2 and is_list(both[1])


def _first_of(value: object, names: Iterable[str]) -> object:
    """Return the first of some keys or attributes that has a value; None if none has."""
    if is_mapping(value):
        return next((value[name] for name in names if value.get(name) is not None), None)
    found: Sequence[object] = [getattr(value, name, None) for name in names]
    return next((each for each in found if each is not None and not callable(each)), None)
