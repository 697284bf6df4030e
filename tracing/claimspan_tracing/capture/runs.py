"""What the hooks note about one query on the caller's thread, and who reads it afterwards.

A ``RunTree`` holds the runs of a query with the framework's own objects, and an adapter's
``Reader`` reads them on the worker.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, cast

from opentelemetry.trace import Span

from claimspan.text.shapes import is_list, is_mapping
from claimspan_tracing.model_calls import NOT_KNOWN, ModelCall

__all__ = [
    "Document",
    "Generation",
    "Key",
    "Reader",
    "Retrieval",
    "Run",
    "RunKind",
    "RunTree",
    "value_at",
]


class RunKind(Enum):
    """The role of a run in the pipeline. Some frameworks show it only in the run's output."""

    CHAIN = "chain"
    """Holds other runs together; gets no span of its own below the root."""

    RETRIEVER = "retriever"
    """Returns documents for a query."""

    GENERATOR = "generator"
    """A call of a language model."""

    TOOL = "tool"
    """A call of a tool, by a model or by code, which may return what an answer rests on; otherwise
    as a chain."""


@dataclass(slots=True, eq=False)
class Run:
    """One step of a pipeline, as the framework reported it. Nothing is copied or serialised."""

    id: Hashable
    """Identifies the run until it ends."""

    tree: RunTree
    parent: Run | None
    """The run that this one is part of; None for the root."""

    kind: RunKind
    name: object
    """Name of the run, as the framework shows it."""

    start: int
    """Nanoseconds since the epoch."""

    inputs: object
    """What went in, by reference."""

    metadata: Mapping[str, object]
    """What the application attached to the run."""

    end: int | None = None
    """Nanoseconds since the epoch; None while it runs."""

    outputs: object = None
    """What came out, by reference."""

    # Not the exception: its traceback holds the frames that it went through, and all that is in
    # them, such as the running loop of a graph.
    error: type[BaseException] | None = None
    """Type of the exception that ended the run."""

    failure: str = ""
    """What that exception says; a tool's may be told to a model in place of a result."""

    span_id: int = 0
    """Of the span that another package made for the run; 0 if the worker is to make one."""

    reader: Reader | None = None
    """Reads the run, if its framework is not that of the tree's root."""

    @property
    def root(self) -> Run:
        """The run above all that this one is part of; itself for a root."""
        # Not the tree's: it lets go of its runs, and a hook may come in then on another thread.
        run = self
        while run.parent is not None:
            run = run.parent
        return run

    @property
    def read_by(self) -> Reader:
        """The reader of the framework that the run is of."""
        return self.reader or self.tree.reader

    @property
    def is_completed(self) -> bool:
        """Whether the run has ended without an error."""
        return self.end is not None and self.error is None

    @property
    def was_thrown_away(self) -> bool:
        """Whether it failed or is part of an attempt that did, which something made up for."""
        run = self
        while run.parent is not None:
            if run.error is not None and issubclass(run.error, Exception):
                return True
            run = run.parent
        return False

    @property
    def counts(self) -> bool:
        """Whether what a generator run said may have reached the answer."""
        return self.is_completed and not self.was_thrown_away

    def failed_with(self, kind: type[BaseException]) -> bool:
        """Whether an exception of a type, or of one below it, ended the run."""
        return self.error is not None and issubclass(self.error, kind)

    def has_ancestor(self, kind: RunKind) -> bool:
        """Whether any run above this one is of the kind."""
        run = self.parent
        while run is not None and run.kind is not kind:
            run = run.parent
        return run is not None

    def around(self) -> Iterator[Run]:
        """Yield the runs that this one is part of, from within."""
        run = self.parent
        while run is not None:
            yield run
            run = run.parent

    def is_part_of(self, other: Run) -> bool:
        """Whether this run is another one, or ran below it."""
        return self is other or any(each is other for each in self.around())

    def below(self) -> list[Run]:
        """The runs below this one, in the order of their start."""
        inside: set[Run | None] = {self}
        for run in self.tree.runs:  # a run comes after its parent
            if run.parent in inside:
                inside.add(run)
        inside.remove(self)
        return [run for run in self.tree.runs if run in inside]


# Not ``list[Run]`` itself as a factory, which takes three times the time to make a list.
_NO_RUNS: Final = cast("Callable[[], list[Run]]", list)
_NO_VALUES: Final = cast("Callable[[], list[object]]", list)
_NO_NUMBERS: Final = cast("Callable[[], set[int]]", set)
_NO_IDS: Final = cast("Callable[[], set[Hashable]]", set)


@dataclass(slots=True, eq=False)
class RunTree:
    """All runs of one query, with the root span that was started for it.

    The tree is the only value that holds objects of a framework. The worker reads it into a
    ``Job`` and lets go of it.
    """

    span: Span
    """The root span."""

    reader: Reader

    # Context variables, not OpenTelemetry's context alone: span processors of services stamp
    # tenant or user from variables of their own.
    context: Context = field(default_factory=Context)
    """Context variables of the request. The spans of the query are built in a copy of them."""

    runs: list[Run] = field(default_factory=_NO_RUNS)
    """In the order of their start; the first is the root."""

    size: int = 0
    """Approximate bytes that the tree keeps alive."""

    max_bytes: int = sys.maxsize
    """What the tree may keep alive; beyond, its texts go while it is still running."""

    weighed: set[int] = field(default_factory=_NO_NUMBERS)
    """Ids of the texts and objects that ``size`` holds already: runs hand them on."""

    unweighed: list[object] = field(default_factory=_NO_VALUES)
    """Inputs and outputs that ``size`` lacks so far."""

    skipped: set[Hashable] = field(default_factory=_NO_IDS)
    """Ids of open runs that are not kept, because the tree has too many."""

    dropped: int = 0
    """Number of runs that were not kept."""

    # One look at the wall clock for each tree: between two looks the clock may be set.
    clock_offset: int = field(default_factory=lambda: time.time_ns() - time.monotonic_ns())
    """Difference of nanoseconds since the epoch and the monotonic clock, as the tree began."""

    started: int = 0
    """Start of the root, nanoseconds since the epoch."""

    is_left: bool = False
    """Whether the root has ended because the reader of its stream has left, by its framework."""

    closed: bool = False
    """Whether the root has ended or was given up: what its runs report from now on is ignored."""

    failed: bool = False
    """Whether the root span could not be started, by a fault outside of claimspan."""

    def now(self) -> int:
        """Nanoseconds since the epoch; never earlier than what it returned before."""
        return time.monotonic_ns() + self.clock_offset

    @property
    def root(self) -> Run:
        """The run that the query came in with."""
        return self.runs[0]

    def let_go(self) -> None:
        """Let go of the values of ended runs, as they will not be read."""
        for run in self.runs:
            # Not the root's: the end of a streamed answer is recognised by its output.
            if run.parent is not None and run.end is not None:
                run.inputs = run.outputs = ""

    def release(self) -> None:
        """Let go of the runs and of all that they have kept, after the last look at the tree.

        A tree refers to its runs and they to it, so that without this texts, runs and root span
        would stay until the garbage collector comes round, which may take thousands of queries.
        """
        # Another list, as another thread may be going through this one.
        runs, self.runs = self.runs, []
        for run in runs:
            run.inputs = run.outputs = run.error = None
            run.metadata = {}
        self.weighed, self.unweighed = set(), []
        self.context = Context()

    @property
    def last_model(self) -> Run | None:
        """The model that ran last, if nothing began after it; None for one within a retriever."""
        last = next(reversed(self.of_kind(RunKind.GENERATOR)), None)
        if last is None or last.has_ancestor(RunKind.RETRIEVER):
            return None
        ended = last.end or last.start
        is_last = all(run.start <= ended or run.error is not None for run in self.runs)
        return last if is_last else None

    def of_kind(self, kind: RunKind) -> list[Run]:
        """The runs of a kind, in the order of their start."""
        return [run for run in self.runs if run.kind is kind]


# --- what an adapter provides: a reader of the framework's objects, and the values it returns -----


# Not frozen, though nothing changes it: a frozen one takes twice the time to make, and pipelines
# hand on their documents many times.
@dataclass(slots=True)
class Document:
    """One retrieved document as the framework returned it, before any cleaning."""

    text: object
    """The text that the generator can read."""

    id: object = None
    """Its id in the store; None if the store gave none."""

    score: object = None
    """The retriever's own score, on its own scale; None if it gave none."""

    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    """What the store keeps with the document."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What went into a retriever and what came out."""

    query: object
    """The retriever's question."""

    documents: Sequence[Document]
    """What it returned, in its order."""

    source: object = None
    """Name of the store, if known."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What went into a generator and what came out."""

    prompt: object = None
    """Everything that the model read."""

    completion: object = None
    """What the model answered."""

    model: object = None
    """Name of the model."""

    provider: object = None
    """Name of the model's provider, as the framework says it."""

    call: ModelCall = NOT_KNOWN
    """Its id, tokens and parameters, as far as they are shown."""

    is_completion: bool = False
    """Whether the model continues a plain text, and does not chat."""

    tool_results: Sequence[object] | None = None
    """What tools had returned, of the messages of the prompt: evidence, without failures and notes
    of the framework. None for all messages of the role ``tool``."""

    messages: Sequence[tuple[object, object]] = ()
    """Role and text of each message of the prompt; the roles are ``system``, ``user``,
    ``assistant`` and ``tool``. Nothing if the model takes a plain text."""


class Reader(Protocol):
    """Reads the raw inputs and outputs of runs. The worker calls all methods but ``parts``.

    If a method raises, the one value that it was asked for is empty, and the fault is counted. What
    few frameworks have is nothing unless a reader says otherwise.
    """

    query_key: Key | None = None
    response_key: Key | None = None

    def __init__(self, query_key: Key | None = None, response_key: Key | None = None) -> None:
        """Look for question and answer in the application's places, or else in the usual ones."""
        self.query_key = query_key
        self.response_key = response_key

    def look_at(self, query_key: Key | None, response_key: Key | None) -> None:
        """Look for question and answer there from now on; None leaves it as it is."""
        self.query_key = self.query_key if query_key is None else query_key
        self.response_key = self.response_key if response_key is None else response_key

    def is_query(self, root: Run) -> bool:
        """Whether a question was asked, as far as the framework's own types tell.

        False for what builds an index, embeds, judges an answer, or retrieves and does no more.
        """
        ...

    def query(self, root: Run) -> object:
        """Return what the user asked; None if it cannot be found."""
        ...

    def response(self, root: Run) -> object:
        """Return what the pipeline answered; None if it cannot be found."""
        ...

    def values(self, root: Run) -> tuple[object, object]:
        """Return the inputs and outputs of a root, as texts, lists and mappings."""
        return root.inputs, root.outputs

    def untold(self, root: Run) -> str:
        """Say why the answer cannot be told, and what helps.

        Called only if a model has said something, and no answer was found.
        """
        return "no text of the output is known as the answer: response_key says where it is"

    def names_answer(self, root: Run) -> bool:
        """Whether the application itself says where its answer is.

        Then it is one, also if it consists of retrieved texts: else that is a pipeline which
        retrieves and does no more.
        """
        return self.response_key is not None

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query and the documents of a retriever run."""
        ...

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return the documents in the output of a run that is no retriever; None if it has none.

        Called only if no retriever ran: some pipelines search a store without a retriever, and
        the framework does not report that search as a run.
        """
        return None

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return the documents in the input of a run; nothing if it has none.

        They count only if they stand in the prompt of the answer.
        """
        return ()

    def passages(self, run: Run) -> Sequence[str]:
        """Return texts of a run that may have been read as evidence, and are no documents.

        Such as what a search returned as a plain text. They count only if they stand in the
        prompt of the answer, and no document explains them. The results of tools among the messages
        of a prompt need not be returned: ``Generation.messages`` has them.
        """
        return ()

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return the generator's documents, after rerankers and cut-offs.

        None if the run does not show it: then it is what the retrievers returned.
        """
        return None

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a generator run."""
        ...

    def is_internal(self, name: str) -> bool:
        """Whether a key of the metadata, or a tag, is the framework's own.

        Such names say nothing about the application, and are left out.
        """
        return False

    def parts(self, value: object) -> Sequence[object]:
        """Return the texts, lists, mappings and objects that an object of the framework holds.

        Nothing for any other object. Runs on the caller's thread, to measure what a record keeps
        alive, so it must not call code of the user's.
        """
        ...

    def interrupted(self, root: Run) -> bool:
        """Whether the run waits for a person, or was cancelled; neither is an error."""
        return False


# --- where the query or the response is in an input or output -------------------------------------

Key = str | Callable[..., object]
"""A key, a dotted path, or a callable that takes the whole input or output."""


def value_at(value: object, key: Key) -> object:
    """Return the value under a key or a dotted path, or the callable's result for the input.

    Args:
        value: The whole input or output.
        key: A key, a dotted path whose steps are keys, indexes of lists or attributes, or a
            callable. A key wins over a path of the same spelling.

    Returns:
        None if a step leads nowhere.
    """
    if callable(key):
        return key(value)
    # "messages.0" may be the name of a key, too.
    if is_mapping(value) and key in value:
        return value[key]
    for step in key.split("."):
        value = _step(value, step)
    return value


def _step(value: object, step: str) -> object:
    if is_mapping(value):
        return value.get(step)
    if is_list(value) and step.lstrip("-").isdigit():
        index = int(step)
        return value[index] if -len(value) <= index < len(value) else None
    return getattr(value, step, None)
