"""An application's other threads may change what a query was given, while the query begins."""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from langchain_core.runnables import RunnableLambda
from llama_index_instrumentation import get_dispatcher

import claimspan_llama_index
from claimspan_langchain import ClaimspanCallbackHandler

from support import MonitorFactory

QUERIES: Final = 300
KEYS: Final = 300


@contextmanager
def changing(state: dict[str, object]) -> Generator[None]:
    """Add keys to a mapping and remove them, with as many changes of threads as there can be."""
    ended = threading.Event()

    def change() -> None:
        while not ended.is_set():
            for number in range(KEYS):
                state[f"key {number}"] = number
            for number in range(KEYS):
                del state[f"key {number}"]

    thread, before = threading.Thread(target=change), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(before)


def shared() -> dict[str, object]:
    return {"question": "q", **{f"history {number}": [number] for number in range(50)}}


def answer(state: dict[str, object]) -> str:
    return "an answer"


def test_no_query_of_langchain_is_lost_whose_input_changes(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor()
    chain = RunnableLambda(answer)
    state = shared()
    with changing(state):
        for _ in range(QUERIES):
            chain.invoke(state, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush()

    assert (monitor.stats.produced, monitor.stats.faults) == (QUERIES, 0)


def test_no_query_of_llama_index_is_lost_whose_input_changes(make_monitor: MonitorFactory) -> None:
    @get_dispatcher().span
    def ask(state: dict[str, object]) -> str:
        return "an answer"

    monitor = make_monitor()
    undo = claimspan_llama_index.instrument(monitor)
    state = shared()
    with changing(state):
        for _ in range(QUERIES):
            ask(state)
    undo()
    assert monitor.flush()

    assert (monitor.stats.produced, monitor.stats.faults) == (QUERIES, 0)
