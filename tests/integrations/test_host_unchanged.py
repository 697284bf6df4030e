"""What a pipeline of LangGraph or LangChain has let go of is gone, though a record of it waits.

LangGraph's own tests count its loops and runners after each run. Here the worker, or the judge,
waits in the record while they are counted.
"""

# pyright: reportMissingTypeStubs=false
# langgraph ships no stubs.

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.pregel._loop import AsyncPregelLoop, SyncPregelLoop
from langgraph.pregel._runner import PregelRunner

import claimspan_llama_index
from claimspan_langchain import ClaimspanCallbackHandler

from lc_graphs import graph_of, interrupted_graph, state_graph
from li_pipelines import Echo, Shelf, engine_of
from support import MonitorFactory, ScriptedJudge

STATE = {"question": "How high is the tower?"}
THREAD: RunnableConfig = {"configurable": {"thread_id": "1"}}


class AppError(Exception):
    """An exception of the application's own."""


class Waiting:
    """Finds the question of a record, and keeps the worker there until it may go on."""

    def __init__(self) -> None:
        self.may_go_on = threading.Event()

    def __call__(self, inputs: object) -> str:
        self.may_go_on.wait(30)
        return STATE["question"]


@pytest.fixture(autouse=True, scope="module")
def only_what_is_new() -> Iterator[None]:
    """The collector passes over what is there already: to look at all of it takes seconds."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    found = Waiting()
    yield found
    found.may_go_on.set()


def running() -> int:
    """Return how many loops and runners of LangGraph are alive."""
    kinds = (SyncPregelLoop, AsyncPregelLoop, PregelRunner)
    return sum(isinstance(each, kinds) for each in gc.get_objects())


def answer(config: RunnableConfig) -> None:
    state_graph().invoke(STATE, config)


def answer_async(config: RunnableConfig) -> None:
    asyncio.run(state_graph().ainvoke(STATE, config))


def leave_a_stream(config: RunnableConfig) -> None:
    next(iter(state_graph().stream(STATE, config)))


def interrupt(config: RunnableConfig) -> None:
    interrupted_graph().invoke(STATE, {**config, **THREAD})


def fail(config: RunnableConfig) -> None:
    def refuse(question: str) -> str:
        raise AppError(question)

    with suppress(AppError):
        graph_of(refuse).invoke(STATE, config)


@pytest.mark.parametrize("run", [answer, answer_async, leave_a_stream, interrupt, fail])
def test_a_graph_that_has_ended_is_gone_before_its_record_is_read(
    make_monitor: MonitorFactory, waiting: Waiting, run: Callable[[RunnableConfig], None]
) -> None:
    handler = ClaimspanCallbackHandler(make_monitor(), query_key=waiting)

    run({"callbacks": [handler]})
    gc.collect()  # a graph that fails is a cycle without us, too

    assert running() == 0


def test_a_stream_that_its_reader_leaves_is_gone_without_the_garbage_collector(
    make_monitor: MonitorFactory, waiting: Waiting
) -> None:
    handler = ClaimspanCallbackHandler(make_monitor(), query_key=waiting)
    gc.disable()
    try:
        leave_a_stream({"callbacks": [handler]})
        after = running()
    finally:
        gc.enable()

    assert after == 0


def test_an_exception_that_was_handled_is_gone_before_its_record_is_read(
    make_monitor: MonitorFactory, waiting: Waiting
) -> None:
    handler = ClaimspanCallbackHandler(make_monitor(), query_key=waiting)
    raised: list[weakref.ref[AppError]] = []

    def refuse(question: str) -> None:
        error = AppError(question)
        raised.append(weakref.ref(error))
        raise error

    with suppress(AppError):
        RunnableLambda(refuse).invoke(STATE["question"], {"callbacks": [handler]})
    gc.collect()  # LangChain's frames refer to the exception, and it to them

    assert [seen() for seen in raised] == [None]


def test_a_graph_is_gone_while_a_query_that_began_in_its_node_is_judged(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=20.0))
    undo = claimspan_llama_index.instrument(monitor)
    engine = engine_of(Shelf(), Echo())

    graph_of(lambda question: str(engine.query(question))).invoke(STATE)
    gc.collect()
    undo()

    assert monitor.stats.pending == 1
    assert running() == 0
