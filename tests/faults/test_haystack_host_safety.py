"""Exceptions in Haystack's tracer end the pipeline: ours raises none, and hides none of others."""

# No postponed annotations: Haystack before 2.24 takes the types of a component as they stand.

import asyncio
import contextlib
from collections.abc import Generator, Iterator
from typing import Any, NoReturn

import pytest
from haystack import Pipeline, component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import ComponentTool
from haystack.tracing.tracer import (
    NullSpan,
    NullTracer,
    Span,
    Tracer,
    disable_tracing,
    enable_tracing,
    tracer,
)

import claimspan_haystack
from claimspan_tracing import Monitor

from hs_driver import HaystackDriver
from hs_pipelines import Shelf, rag_pipeline
from pipelines import Recipe, answer_to
from support import MonitorFactory, ScriptedJudge

QUERY = "the question"
DATA = {"shelf": {"query": QUERY}, "prompt": {"question": QUERY}}

PLACES = [
    "claimspan_haystack._tracer.Step.__init__",
    "claimspan_haystack._tracer.Step.note",
    "claimspan_haystack._tracer.Step.settle",
    "claimspan_haystack._tracer.ClaimspanTracer._parent",
    "claimspan_haystack._tracer.ClaimspanTracer._report",
    "claimspan_haystack._tracer.root_name",
    "claimspan_haystack._tracer.kind_of",
    "claimspan_haystack._tracer.noted",
    "claimspan_haystack._reader.HaystackReader.parts",
    "claimspan_haystack._reader.HaystackReader.is_query",
    "claimspan_haystack._reader.HaystackReader.passages",
    "claimspan_haystack._reader.HaystackReader.query",
    "claimspan_haystack._reader.HaystackReader.response",
    "claimspan_haystack._reader.HaystackReader.retrieval",
    "claimspan_haystack._reader.HaystackReader.context",
    "claimspan_haystack._reader.HaystackReader.generation",
    "claimspan_haystack._reader.HaystackReader.interrupted",
    "claimspan_tracing.capture.table.RunTable.add",
    "claimspan_tracing.capture.table.RunTable.close",
    "claimspan_tracing.engine.Engine.start_root",
    "claimspan_tracing.engine.Engine.submit",
    "claimspan_tracing.engine.reading.read_job",
]


def fail(*_: object, **__: object) -> NoReturn:
    raise ZeroDivisionError("injected; quotes sk-canary")


@component
class Caller:
    """A chat model that calls the tool once and then answers."""

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: object = None) -> dict[str, Any]:
        if any(message.tool_call_results for message in messages):
            return {"replies": [ChatMessage.from_assistant(answer_to(QUERY))]}
        call = ToolCall(tool_name="look_up", arguments={"query": QUERY})
        return {"replies": [ChatMessage.from_assistant(tool_calls=[call])]}


def run_agent() -> str:
    generator: Any = Caller()
    tool = ComponentTool(Shelf(), name="look_up", description="Looks something up")
    pipeline = Pipeline()
    pipeline.add_component("shelf", Shelf())
    pipeline.add_component("agent", Agent(chat_generator=generator, tools=[tool]))
    outputs = pipeline.run(
        {"shelf": {"query": QUERY}, "agent": {"messages": [ChatMessage.from_user(QUERY)]}}
    )
    return str(outputs["agent"]["messages"][-1].text)


@pytest.fixture(autouse=True)
def empty_slot() -> Iterator[None]:
    yield
    disable_tracing()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mode", ["run", "run_async", "stream", "agent"])
async def test_a_fault_anywhere_inside_leaves_the_result_as_it_is(
    make_monitor: MonitorFactory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    place: str,
    mode: str,
) -> None:
    monkeypatch.setattr(place, fail)
    monitor = make_monitor()
    undo = claimspan_haystack.instrument(monitor)
    pipeline = HaystackDriver().build(Recipe())

    match mode:
        case "run":
            result = pipeline.run(QUERY)
        case "run_async":
            result = await pipeline.arun(QUERY)
        case "stream":
            result = "".join([part async for part in pipeline.astream(QUERY)]).strip()
        case _:
            result = run_agent()
    undo()
    monitor.shutdown(timeout=1)

    assert result == answer_to(QUERY)
    assert monitor.stats.faults > 0
    make_monitor.expected_faults = monitor.stats.faults
    assert "sk-canary" not in caplog.text


class Broken(Tracer):
    """A tracer of another package, whose spans raise when a tag is set."""

    @contextlib.contextmanager
    def trace(
        self,
        operation_name: str,
        tags: dict[str, Any] | None = None,
        parent_span: Span | None = None,
    ) -> Generator[Span]:
        yield BrokenSpan()

    def current_span(self) -> Span | None:
        return None


class BrokenSpan(Span):
    def set_tag(self, key: str, value: Any) -> None:
        fail()


@pytest.mark.parametrize("instrumented", [False, True])
def test_what_another_tracer_raises_is_its_own(
    make_monitor: MonitorFactory, instrumented: bool
) -> None:
    enable_tracing(Broken())
    undo = claimspan_haystack.instrument(make_monitor()) if instrumented else disable_tracing

    with pytest.raises(ZeroDivisionError):
        rag_pipeline().run(DATA)
    undo()


@component
class Thrower:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    @component.output_types(nothing=str)
    def run(self, wish: str) -> dict[str, Any]:
        raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()])
def test_what_is_meant_for_the_application_passes(
    make_monitor: MonitorFactory, error: BaseException
) -> None:
    monitor = make_monitor()
    undo = claimspan_haystack.instrument(monitor)
    pipeline = Pipeline()
    pipeline.add_component("thrower", Thrower(error))

    with pytest.raises(type(error)) as caught:
        pipeline.run({"thrower": {"wish": QUERY}})
    undo()

    assert caught.value is error
    assert isinstance(tracer.actual_tracer, NullTracer)
    assert monitor.flush()
    assert monitor.stats.produced == 1


class Interrupting(dict[str, str]):
    """Metadata that Ctrl-C hits while it is read."""

    def get(self, key: str, default: object = None) -> NoReturn:  # pyright: ignore[reportIncompatibleMethodOverride] - it returns nothing
        raise KeyboardInterrupt


def test_a_span_of_the_wrapped_tracer_ends_where_ctrl_c_comes_within_our_hook() -> None:
    ended: list[str] = []

    class Theirs(NullTracer):
        @contextlib.contextmanager
        def trace(self, operation_name: str, *_: Any, **__: Any) -> Generator[Any]:
            try:
                yield NullSpan()
            finally:
                ended.append(operation_name)

    monitor = Monitor(judge=ScriptedJudge())
    undo = claimspan_haystack.instrument(monitor)
    enable_tracing(Theirs())
    try:
        operation = tracer.trace(
            "haystack.pipeline.run", tags={"haystack.pipeline.metadata": Interrupting(name="x")}
        )
        with pytest.raises(KeyboardInterrupt), operation:
            pass
    finally:
        disable_tracing()
        undo()
        monitor.shutdown()

    assert ended == ["haystack.pipeline.run"]
