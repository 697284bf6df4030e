"""Haystack's tracing hooks, passed on to the capture. Whatever tracer was there goes on as before.

An exception in a tracer ends the user's pipeline, so everything of ours runs under the guard, and
nothing of the other tracer's does: what it raises is its own.
"""

from __future__ import annotations

import contextlib
from asyncio import CancelledError
from collections.abc import Generator, Mapping
from contextvars import ContextVar, Token
from typing import Any, Final, TypeGuard

from haystack.tracing.tracer import Span, Tracer

from claimspan_haystack._reader import is_streaming, kind_of, root_name
from claimspan_tracing.adapters import Capture, Monitor, RunKind

__all__ = ["ClaimspanTracer"]

_INPUT_TAGS: Final = (".input", ".input_data")
_OUTPUT_TAGS: Final = (".output", ".output_data")
"""How the names of the tags end with which components, agents, tools and pipelines report."""

PIPELINE_RUNS: Final = ("haystack.pipeline.run", "haystack.async_pipeline.run")
METADATA_TAG: Final = "haystack.pipeline.metadata"


class Step:
    """One operation that is under way: what Haystack says of it until it ends."""

    def __init__(self, operation: str, tags: Mapping[str, Any], parent: Step | None) -> None:
        self.id = object()
        self.operation = operation
        self.tags = tags
        self.parent = parent
        self.inputs: object = None
        self.outputs: object = None
        self.generates = False
        """Whether a generator ran in it."""
        for key, value in tags.items():
            self.note(key, value)

    def note(self, key: str, value: object) -> None:
        """Keep what went in or came out, by reference."""
        if key.endswith(_INPUT_TAGS):
            self.inputs = value
        elif key.endswith(_OUTPUT_TAGS):
            self.outputs = value

    def settle(self) -> RunKind:
        """What the operation turned out to do; tells those around it."""
        kind = kind_of(self.operation, self.tags, self.inputs, self.outputs)
        if kind is RunKind.GENERATOR:
            if self.generates:
                return RunKind.CHAIN
            step = self.parent
            while step is not None:
                step.generates = True
                step = step.parent
        return kind


_current: Final[ContextVar[Mapping[Capture, Step]]] = ContextVar("claimspan_haystack")
"""The innermost step of each of our tracers that has a context of its own.

A pipeline has none: ``run_async_generator`` would leave it behind in its reader's context between
any two parts. Haystack names the pipeline as the parent of its components itself.
"""


class ClaimspanSpan(Span):
    """The span of the other tracer, from which the capture takes notes."""

    def __init__(self, theirs: Span, step: Step, capture: Capture) -> None:
        self.theirs = theirs
        self.step = step
        self.capture = capture

    def set_tag(self, key: str, value: Any) -> None:
        """To the other tracer, and into our notes."""
        with self.capture.guard:
            self.step.note(key, value)
        self.theirs.set_tag(key, value)

    def set_tags(self, tags: dict[str, Any]) -> None:
        """To the other tracer, and into our notes."""
        with self.capture.guard:
            for key, value in tags.items():
                self.step.note(key, value)
        self.theirs.set_tags(tags)

    def set_content_tag(self, key: str, value: Any) -> None:
        """Into our notes whatever the switch for content says; the other tracer heeds it."""
        with self.capture.guard:
            self.step.note(key, value)
        self.theirs.set_content_tag(key, value)

    def raw_span(self) -> Any:
        """The other tracer's."""
        return self.theirs.raw_span()

    def get_correlation_data_for_logs(self) -> dict[str, Any]:
        """The other tracer's."""
        return self.theirs.get_correlation_data_for_logs()

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, name)


class ClaimspanTracer(Tracer):
    """Captures every pipeline, and passes everything on to the tracer that was enabled before."""

    def __init__(self, theirs: Tracer, monitor: Monitor, capture: Capture) -> None:
        self.theirs = theirs
        self.monitor = monitor
        self.capture = capture
        self.capturing = True
        """False once it has been undone, and some other tracer still passes through it."""

    @contextlib.contextmanager
    def trace(
        self,
        operation_name: str,
        tags: dict[str, Any] | None = None,
        parent_span: Span | None = None,
    ) -> Generator[Span]:
        """A span of the other tracer, with our notes on what happens in it."""
        theirs = parent_span.theirs if self._is_own(parent_span) else parent_span
        with self.theirs.trace(operation_name, tags=tags, parent_span=theirs) as inner:
            if not self.capturing:
                yield inner
                return
            step = self._start(operation_name, tags or {}, parent_span)
            token = self._enter(step)
            try:
                yield inner if step is None else ClaimspanSpan(inner, step, self.capture)
            except BaseException as error:
                self._end(step, token, error)
                raise
            self._end(step, token, None)

    def current_span(self) -> Span | None:
        """The other tracer's, which a child that is given it as its parent finds us by."""
        inner = self.theirs.current_span()
        with self.capture.guard:
            step = _current.get({}).get(self.capture)
            if inner is not None and step is not None and self.capturing:
                return ClaimspanSpan(inner, step, self.capture)
        return inner

    def __getattr__(self, name: str) -> Any:
        return _attribute(self, name)

    def _start(self, operation: str, tags: dict[str, Any], parent_span: Span | None) -> Step | None:
        with self.capture.guard:
            step = Step(operation, tags, self._parent(parent_span))
            parent_id = step.parent.id if step.parent else None
            metadata: Mapping[str, object] = tags.get(METADATA_TAG) or {}
            self.capture.start(
                step.id,
                parent_id,
                RunKind.CHAIN,
                root_name(operation, tags),
                step.inputs,
                metadata,
            )
            return step
        return None

    def _is_own(self, span: Span | None) -> TypeGuard[ClaimspanSpan]:
        """Whether we made the span, and not another monitor's tracer that we wrap."""
        return isinstance(span, ClaimspanSpan) and span.capture is self.capture

    def _parent(self, parent_span: Span | None) -> Step | None:
        if self._is_own(parent_span):
            return parent_span.step
        return _current.get({}).get(self.capture)

    def _enter(self, step: Step | None) -> Token[Mapping[Capture, Step]] | None:
        with self.capture.guard:
            if step is not None and step.operation not in PIPELINE_RUNS:
                return _current.set({**_current.get({}), self.capture: step})
        return None

    def _end(
        self,
        step: Step | None,
        token: Token[Mapping[Capture, Step]] | None,
        error: BaseException | None,
    ) -> None:
        with self.capture.guard:
            if token is not None:
                # A generator that is closed from elsewhere ends in a context that is not its own.
                with contextlib.suppress(ValueError):
                    _current.reset(token)
        with self.capture.guard:
            if step is not None:
                self._report(step, error)

    def _report(self, step: Step, error: BaseException | None) -> None:
        kind = step.settle()
        if error is None:
            self.capture.end(step.id, step.outputs, inputs=step.inputs, kind=kind)
            return
        if isinstance(error, CancelledError) and is_streaming(step.inputs):
            # Haystack cancels a stream whose reader has gone: the reader left, nobody interrupted.
            error = GeneratorExit()
        self.capture.fail(step.id, error, inputs=step.inputs, kind=kind)


def _attribute(wrapper: ClaimspanSpan | ClaimspanTracer, name: str) -> Any:
    """What else the other one has, such as a tracer's own ``flush``."""
    if name == "theirs" or name.startswith("__"):  # while a copy is being made
        raise AttributeError(name)
    return getattr(wrapper.theirs, name)
