"""The tracer: reports Haystack's operations to the capture, and passes every call on.

Haystack does not catch what a tracer raises, so an error of ours would end the user's pipeline.
All of our code therefore runs in the monitor's guard. The calls of the wrapped tracer do not: what
that one raises reaches the pipeline as it would without us.

Haystack reports no kind for a component, and users give components any name. An operation is told
by its name, its component's class and its values. What runs here runs on the caller's thread: it
looks at names and at first items, never at whole lists.
"""

from __future__ import annotations

import re
from asyncio import CancelledError
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, TypeGuard, cast

from haystack.dataclasses import ChatMessage
from haystack.tracing.tracer import Span, Tracer

from claimspan_haystack._documents import Known, declares_documents, lists_documents, noted
from claimspan_haystack._texts import is_said, parts
from claimspan_tracing.adapters import (
    Capture,
    Monitor,
    Run,
    RunKind,
    is_list,
    is_mapping,
    is_suppressed,
    leave_out,
)

REPLIES_KEY: Final = "replies"
"""Name of the output of all of Haystack's generators."""

DOCUMENTS_WRITTEN: Final = "documents_written"
"""Name of the output of ``DocumentWriter``."""

CHAT_GENERATOR_RUN: Final = "haystack.chat_generator.run"
"""A model call by a component that has a generator inside: a ranker, an evaluator, a router."""

PIPELINE_RUNS: Final = ("haystack.pipeline.run", "haystack.async_pipeline.run")
"""Operations of a whole pipeline; the second is that of ``AsyncPipeline`` before Haystack 3."""

GENERATOR_RUNS: Final = ("haystack.agent.step.llm", CHAT_GENERATOR_RUN)
"""Operations that are model calls."""

PACKAGES: Final = re.compile(
    r"haystack\w*\.components\.generators\.(?:chat\.)?(?!fallback\b|llm\b)(\w+)"
)
"""The module of a generator, which has the name of its provider; not of those around another."""

AGENT_RUN: Final = "haystack.agent.run"
TOOL_RUN: Final = "haystack.agent.step.tool"
COMPONENT_RUN: Final = "haystack.component.run"

QUERY_NAME: Final = re.compile(r"quer(?:y|ies)|questions?")
"""Names of inputs that hold the question."""

_RETRIEVING_CLASS: Final = re.compile(r"(?:Retriever|Search|Searcher)$")
_OTHER_CLASS: Final = re.compile(
    r"(?:ToDocuments?|Converter|Splitter|Chunker|Cleaner|Embedder|Writer|Fetcher|Crawler|Loader"
    r"|Parser|Scraper|Ranker|Reranker|Joiner|Evaluator|Extractor|Router|Classifier|Preprocessor"
    r"|Checker|Sampler|Validator|Importer|Reader|Adapter|Builder)$"
)
"""Ends of the names of classes that return documents without being asked a question."""

_CONVERTING_CLASS: Final = re.compile(r"(?:ToDocuments?|Converter|Crawler|Loader|Importer)$")
"""Those that make documents of other values."""

_OTHER_NAMES: Final = frozenset(
    "path paths file files filename url urls uri link links source sources dir directory folder "
    "html markdown content contents bucket encoding language mode index reply replies answer "
    "answers".split()
)
"""Words in the names of inputs that name places of documents or earlier turns, not the question."""


@dataclass(slots=True, eq=False)
class Operation:
    """What Haystack says of an operation when it starts. It also serves as the id of the run."""

    name: str
    """Name of the operation, such as ``haystack.component.run``."""

    component: str = ""
    """Name of the component's class."""

    qualified: str = ""
    """The same with its module."""

    takes: Mapping[str, object] | None = None
    """The inputs that a component declares."""

    returns: Mapping[str, object] | None = None
    """The outputs that a component declares, each with its type and receivers."""


_UNKNOWN: Final = Operation("")


def operation_of(run: Run) -> Operation:
    """Return the operation behind a run; an empty one where another framework reported the run."""
    return run.id if isinstance(run.id, Operation) else _UNKNOWN


def is_converter(component: str) -> bool:
    """Whether a class makes documents of files, pages or other sources."""
    return _CONVERTING_CLASS.search(component) is not None


def kind_of(operation: Operation, inputs: object, outputs: object) -> RunKind:
    """Return the role of an operation.

    A retriever returns documents for a query and takes none: rankers and joiners pass on documents
    of others, converters and fetchers are told where they are. Whatever returns messages or answers
    beside its documents is no retriever.

    Args:
        operation: What Haystack said of it.
        inputs: What went in.
        outputs: What came out; None if the operation failed.
    """
    if operation.name in GENERATOR_RUNS:
        return RunKind.GENERATOR
    if operation.name not in (COMPONENT_RUN, TOOL_RUN):
        return RunKind.CHAIN
    # A failed component is judged by the outputs that it declares, as if each were empty.
    if outputs is None:
        outputs = dict.fromkeys(operation.returns or (), ())
    # Routers, joiners and validators pass on the replies of others.
    given = is_mapping(inputs) and inputs.get(REPLIES_KEY) is not None
    if is_mapping(outputs) and REPLIES_KEY in outputs and not given:
        return RunKind.GENERATOR
    returned = lists_documents(outputs) or declares_documents(operation.returns)
    takes = lists_documents(inputs) or declares_documents(operation.takes)
    if not returned or takes or is_said(outputs):
        return RunKind.CHAIN
    asked = operation.name == TOOL_RUN or _is_asked(operation.component, inputs)
    return RunKind.RETRIEVER if asked else RunKind.CHAIN


def root_name(operation: Operation, tags: Mapping[str, Any]) -> object:
    """Return the name of the component, else of the pipeline, else of the operation."""
    # Pipelines have no name in Haystack; users put one into ``Pipeline(metadata={"name": ...})``.
    metadata = tags.get("haystack.pipeline.metadata")
    named = metadata.get("name") if is_mapping(metadata) else None
    return tags.get("haystack.component.name") or named or operation.name


def is_streaming(inputs: object) -> bool:
    """Whether the answer is streamed, which Haystack does through a callback in the inputs."""
    return any(part.get("streaming_callback") is not None for part in parts(inputs))


def _is_asked(component: str, inputs: object) -> bool:
    """Whether a component was given a query, as a text, as messages or as an embedding."""
    asked = [str(n) for n, value in inputs.items() if _asks(value)] if is_mapping(inputs) else []
    if any(QUERY_NAME.search(name) for name in asked) or _RETRIEVING_CLASS.search(component):
        return True
    if _OTHER_CLASS.search(component):
        return False
    return any(_OTHER_NAMES.isdisjoint(name.lower().split("_")) for name in asked)


def _asks(value: object) -> bool:
    """Whether a value may be a query: a text, a message, an embedding, or a list of such."""
    first = value[0] if is_list(value) and value else value
    if isinstance(value, str) or first is not value:
        return isinstance(first, str | float | int | ChatMessage)
    return isinstance(value, ChatMessage) or hasattr(value, "indices")


_INPUT_TAGS: Final = (".input", ".input_data")
_OUTPUT_TAGS: Final = (".output", ".output_data")
"""Ends of the tag names under which components, agents, tools and pipelines report their inputs and
outputs, such as ``haystack.component.output`` and ``haystack.pipeline.output_data``."""

_NOTED_TAGS: Final = _INPUT_TAGS + _OUTPUT_TAGS

_OWN: Final = "haystack."
"""Beginning of the names of Haystack's own operations."""

METADATA_TAG: Final = "haystack.pipeline.metadata"


class Step:
    """An operation that is running: what Haystack has reported of it so far."""

    __slots__ = (
        "id",
        "inputs",
        "inside",
        "is_suppressed",
        "known",
        "outputs",
        "parent",
        "token",
    )

    def __init__(self, operation: str, tags: Mapping[str, Any], parent: Step | None) -> None:
        """Note an operation that starts with some tags."""
        self.id = Operation(
            operation,
            tags.get("haystack.component.type") or "",
            tags.get("haystack.component.fully_qualified_type") or "",
            tags.get("haystack.component.input_spec"),
            tags.get("haystack.component.output_spec"),
        )
        self.parent = parent
        self.known: Known = parent.known if parent else {}
        """The notes of the whole tree."""
        self.inputs: object = None
        self.outputs: object = None
        self.is_suppressed: bool = parent.is_suppressed if parent else is_suppressed()
        """Whether the whole tree started where instrumentation is suppressed, as around a judge.

        Inherited from the parent and not asked again: components such as ``LLMMetadataExtractor``
        run model calls in threads without the caller's context, and pass only the parent span.
        """
        self.inside: Literal["", "called", "replied"] = ""
        """Whether a generator ran inside the operation, and whether its reply was reported."""
        self.token: Token[Mapping[Capture, Step]] | None = None
        """Undoes that the operation is the current one."""
        for key in tags:
            if key.endswith(_NOTED_TAGS):
                self.note(key, tags[key])

    def note(self, key: str, value: object) -> None:
        """Keep inputs as they are now, and outputs until the operation ends; ignore other tags."""
        if key.endswith(_INPUT_TAGS):
            self.inputs = noted(value, self.known)
        elif key.endswith(_OUTPUT_TAGS):
            # Haystack before 2.24 reports the outputs of a pipeline first, and fills them later.
            self.outputs = value

    def settle(self) -> RunKind:
        """Keep the outputs as they are now, and return the operation's role.

        Called once, when the operation ends: inner operations end before outer ones.
        """
        self.outputs = noted(self.outputs, self.known)
        kind = kind_of(self.id, self.inputs, self.outputs)
        if kind is RunKind.GENERATOR:
            # A component such as a whole pipeline returns replies that a generator inside it made.
            # That one counts, or the model call would be reported twice. The call inside of a
            # ``FallbackChatGenerator`` is reported without its reply, so that there it does not.
            if self.inside == "replied" or (self.inside and self.outputs is None):
                return RunKind.CHAIN
            replied = is_mapping(self.outputs) and REPLIES_KEY in self.outputs
            step = self.parent
            while step is not None:
                step.inside = "replied" if replied else step.inside or "called"
                step = step.parent
        return kind


_current: Final[ContextVar[Mapping[Capture, Step]]] = ContextVar("claimspan_haystack")
"""The innermost running step of each capture, except for pipelines.

``run_async_generator`` yields inside the operation of its pipeline, so a pipeline's step would stay
in the context of the reader of the generator. Haystack passes the pipeline's span as the parent of
its components, so it is not needed here.
"""

# A query of another framework that begins in a component would keep what the component was given.
leave_out(cast(ContextVar[object], _current), {})


class ClaimspanSpan(Span):
    """A span of the wrapped tracer that also notes inputs and outputs in a step."""

    def __init__(self, theirs: Span, step: Step, capture: Capture) -> None:
        self.theirs = theirs
        self.step = step
        self.capture = capture

    def set_tag(self, key: str, value: Any) -> None:
        """Note a tag, and pass it on."""
        self._note(key, value)
        self.theirs.set_tag(key, value)

    def set_tags(self, tags: dict[str, Any]) -> None:
        """Note several tags, and pass them on."""
        for key, value in tags.items():
            self._note(key, value)
        self.theirs.set_tags(tags)

    def set_content_tag(self, key: str, value: Any) -> None:
        """Note a tag that holds content, and pass it on."""
        # ``Span.set_content_tag`` drops content unless ``HAYSTACK_CONTENT_TRACING_ENABLED`` is
        # set. The switch is about what a tracer exports; the wrapped one still applies it.
        self._note(key, value)
        self.theirs.set_content_tag(key, value)

    def _note(self, key: str, value: object) -> None:
        # Not ``with guard``: entering a block of ``try`` costs nothing, and this is the caller's
        # path.
        try:
            self.step.note(key, value)
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the pipeline
            self.capture.guard.swallow(error)

    def raw_span(self) -> Any:
        """Return the raw span of the wrapped tracer."""
        return self.theirs.raw_span()

    def get_correlation_data_for_logs(self) -> dict[str, Any]:
        """Return the correlation data of the wrapped tracer."""
        return self.theirs.get_correlation_data_for_logs()

    def __getattr__(self, name: str) -> Any:
        # What Haystack's interface lacks. ``copy`` and ``pickle`` ask an object that has no
        # ``theirs`` yet for special methods.
        if name == "theirs" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.theirs, name)


class ClaimspanTracer(Tracer):
    """Reports every operation to a capture, and passes it on to Haystack's tracer."""

    def __init__(self, theirs: Tracer, monitor: Monitor, capture: Capture) -> None:
        self.theirs = theirs
        self.monitor = monitor
        self.capture = capture
        self.capturing = True
        """False after ``undo``, where another package still calls this one."""

    def trace(  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride] - Haystack only enters what it gets
        self,
        operation_name: str,
        tags: dict[str, Any] | None = None,
        parent_span: Span | None = None,
    ) -> AbstractContextManager[Span]:
        """Run an operation in a span of the wrapped tracer, and report it to the capture."""
        theirs = parent_span.theirs if self._is_own(parent_span) else parent_span
        inner = self.theirs.trace(operation_name, tags=tags, parent_span=theirs)
        if not self.capturing:
            return inner
        return _Traced(self, inner, operation_name, tags or {}, parent_span)

    def current_span(self) -> Span | None:
        """Return the wrapped tracer's current span.

        Wrapped in ours where a step is running, as Haystack passes it back as ``parent_span``.
        """
        inner = self.theirs.current_span()
        with self.capture.guard:
            step = _current.get({}).get(self.capture)
            if inner is not None and step is not None and self.capturing:
                return ClaimspanSpan(inner, step, self.capture)
        return inner

    def start(self, operation: str, tags: dict[str, Any], parent_span: Span | None) -> Step | None:
        """Report the start of an operation; None where that fails, or it is no run of Haystack's.

        A server such as Hayhooks puts its own operations around the runs of pipelines. It says
        nothing of what they return, and there may be several runs in one.
        """
        try:
            parent = self._parent(parent_span)
            if parent is None and not operation.startswith(_OWN):
                return None
            step = Step(operation, tags, parent)
            if not step.is_suppressed:
                parent_id, name = parent and parent.id, root_name(step.id, tags)
                metadata: Mapping[str, object] = tags.get(METADATA_TAG) or {}
                self.capture.start(step.id, parent_id, RunKind.CHAIN, name, step.inputs, metadata)
            if operation not in PIPELINE_RUNS:
                step.token = _current.set({**_current.get({}), self.capture: step})
        except Exception as error:  # noqa: BLE001 - nothing of ours may reach the pipeline
            self.capture.guard.swallow(error)
            return None
        return step

    def _is_own(self, span: Span | None) -> TypeGuard[ClaimspanSpan]:
        """Whether this tracer made the span; a tracer of another monitor may be the wrapped one."""
        return isinstance(span, ClaimspanSpan) and span.capture is self.capture

    def _parent(self, parent_span: Span | None) -> Step | None:
        if self._is_own(parent_span):
            return parent_span.step
        return _current.get({}).get(self.capture)

    def end(self, step: Step, error: BaseException | None) -> None:
        """Report the end of an operation."""
        try:
            if step.token is not None:  # the operation around it is the current one again
                # An asynchronous generator that the garbage collector closes ends in another
                # context than it started in, and the variable cannot be reset there.
                with suppress(ValueError, RuntimeError):
                    _current.reset(step.token)
            if not step.is_suppressed:
                self._report(step, error)
        except Exception as fault:  # noqa: BLE001 - as above
            self.capture.guard.swallow(fault)

    def _report(self, step: Step, error: BaseException | None) -> None:
        kind = step.settle()
        if error is None:
            self.capture.end(step.id, step.outputs, inputs=step.inputs, kind=kind)
            return
        if isinstance(error, CancelledError) and is_streaming(step.inputs):
            # Haystack cancels the run of a stream that its reader abandons. For the capture that
            # is an abandoned stream, not a cancelled task.
            error = GeneratorExit()
        self.capture.fail(step.id, error, inputs=step.inputs, kind=kind)


class _Traced(AbstractContextManager[Span]):
    """An operation in a span of the wrapped tracer, which is entered first and left last.

    Not a generator, which takes twice the time on the caller's thread.
    """

    __slots__ = ("_inner", "_operation", "_parent", "_step", "_tags", "_tracer")

    def __init__(
        self,
        tracer: ClaimspanTracer,
        inner: AbstractContextManager[Span],
        operation: str,
        tags: dict[str, Any],
        parent: Span | None,
    ) -> None:
        self._tracer = tracer
        self._inner = inner
        self._operation = operation
        self._tags = tags
        self._parent = parent
        self._step: Step | None = None

    def __enter__(self) -> Span:
        span = self._inner.__enter__()
        try:
            self._step = step = self._tracer.start(self._operation, self._tags, self._parent)
        except BaseException as error:  # Ctrl-C: the wrapped tracer's span ends all the same
            self._inner.__exit__(type(error), error, error.__traceback__)
            raise
        return span if step is None else ClaimspanSpan(span, step, self._tracer.capture)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        try:
            if self._step is not None:
                self._tracer.end(self._step, error)
        except BaseException as fault:  # as above
            self._inner.__exit__(type(fault), fault, fault.__traceback__)
            raise
        return self._inner.__exit__(kind, error, traceback)
