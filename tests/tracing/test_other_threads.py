"""Other threads never wait for the reading of a record, however large it is. Rows I1 and F14."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import pytest
from langchain_core.documents import Document
from pydantic import BaseModel

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Finished, Monitor
from claimspan_tracing.text import MAX_TEXT_BYTES, MAX_WALKED, Walk, to_json

from hs_driver import HaystackDriver
from lc_driver import LangChainDriver
from lc_pipelines import Shelf, rag_chain
from li_driver import LlamaIndexDriver
from pipelines import Driver, Passage, Recipe
from support import MonitorFactory, Spans, attributes

LARGE: Final = "Čaša vode, 船と🚣. " * 600_000
"""Nine million characters beyond ASCII."""

SHARE: Final = 1 / 3
"""Of the time that it takes to clean all of these in one call, that another thread may wait."""

DRIVERS: Final[list[Callable[[], Driver]]] = [LangChainDriver, LlamaIndexDriver, HaystackDriver]


class Ticks:
    """The longest time between two turns of a thread that always wants one."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.ended = False

    def run(self) -> None:
        before = time.perf_counter()
        while not self.ended:
            time.sleep(0.001)
            now = time.perf_counter()
            self.longest, before = max(self.longest, now - before), now


@pytest.fixture(scope="module")
def max_gap() -> float:
    """The longest that a thread may wait: measured here, as other machines are slower."""
    begin = time.perf_counter()
    assert len(LARGE.translate({0: "?"})) == len(LARGE)
    return SHARE * (time.perf_counter() - begin)


@contextmanager
def ticking() -> Generator[Ticks]:
    ticks = Ticks()
    thread = threading.Thread(target=ticks.run, daemon=True)
    thread.start()
    try:
        yield ticks
    finally:
        ticks.ended = True
        thread.join()


def flush(monitor: Monitor) -> float:
    """Have the waiting record read; returns how long another thread had to wait meanwhile."""
    with ticking() as ticks:
        assert monitor.flush(60)
    return ticks.longest


@pytest.mark.parametrize("sample", [0.0, 1.0])
@pytest.mark.parametrize("make", DRIVERS, ids=lambda make: make().name)
def test_a_prompt_of_nine_million_characters_stops_no_other_thread(
    make: Callable[[], Driver],
    make_monitor: MonitorFactory,
    spans: Spans,
    max_gap: float,
    sample: float,
) -> None:
    monitor, driver = make_monitor(sample=sample, max_queue_bytes=2**30), make()
    detach = driver.attach(monitor)
    try:
        driver.build(Recipe(passages=[Passage(LARGE, "a")], answer="Čaša vode")).run("q")
    finally:
        detach()

    assert flush(monitor) < max_gap
    assert attributes(spans.one("RETRIEVER"))["retrieval.documents.0.document.content"]
    assert LARGE.startswith(
        str(attributes(spans.one("RETRIEVER"))["retrieval.documents.0.document.content"])
    )


@dataclasses.dataclass
class Node:
    """Has a text that doubles with each level, where both parts are one."""

    left: object
    right: object


class Model(BaseModel):
    """As ``Node``, by pydantic."""

    left: object
    right: object


def shared(make: Callable[[object, object], object]) -> object:
    value: object = "leaf"
    for _ in range(40):
        value = make(value, value)
    return value


def endless() -> object:
    value: dict[str, object] = {}
    value["self"] = [value, value]
    return value


class Large:
    """Has a text of 40 MB."""

    def __str__(self) -> str:
        return "ž" * 20_000_000


class Items(list[object]):
    """Has a text that takes long."""


VALUES: Final[dict[str, Callable[[], object]]] = {
    "shared dicts": lambda: shared(lambda a, b: {"left": a, "right": b}),
    "wide shared lists": lambda: shared(lambda a, _: [a] * 64),
    "shared dataclasses": lambda: shared(Node),
    "shared models": lambda: shared(lambda a, b: Model(left=a, right=b)),
    "endless": endless,
    "large text": Large,
    "list of millions": lambda: Items(range(3_000_000)),
    "set of millions": lambda: set(range(3_000_000)),
    "dict of millions": lambda: dict.fromkeys(range(3_000_000)),
    "huge integer": lambda: 1 << 40_000_000,
    "bytes": lambda: b"\xff" * 9_000_000,
    "long key": lambda: {"k" * 9_000_000: 1},
}


@pytest.mark.parametrize("name", VALUES)
def test_metadata_of_any_size_and_shape_stops_no_other_thread(
    make_monitor: MonitorFactory, max_gap: float, name: str
) -> None:
    kept: list[Finished] = []
    # The queue would refuse the largest of them unread.
    monitor = make_monitor(sinks=[Sink(kept)], sample=0.0, max_queue_bytes=1 << 30)
    found = [Document(id="a", page_content="Answer to q", metadata={"value": VALUES[name]()})]

    rag_chain(retriever=Shelf(documents=found)).invoke(
        "q", {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    )

    assert flush(monitor) < max_gap
    (finished,) = kept
    assert "value" in finished.job.record.chunks[0].metadata
    assert len(finished.job.to_json()) < 40 * MAX_TEXT_BYTES


class Sink:
    """Keeps what it gets."""

    def __init__(self, kept: list[Finished]) -> None:
        self.kept = kept

    def write(self, finished: Finished) -> None:
        self.kept.append(finished)


def test_all_metadata_of_a_record_share_one_budget() -> None:
    walk = Walk()
    value = [list(range(64))] * 64

    for _ in range(10):
        to_json(value, walk)

    assert -64 * 64 < walk.items <= 0
    assert to_json(value, walk) is None or to_json(value, walk) == []
    assert MAX_WALKED > 64 * 64


def test_a_mapping_that_changes_while_it_is_read_is_read_somehow() -> None:
    value: dict[int, object] = {number: None for number in range(50)}
    stop = threading.Event()

    def change() -> None:
        number = 50
        while not stop.is_set():
            value[number] = value.pop(number - 50, None)
            number += 1

    thread = threading.Thread(target=change, daemon=True)
    thread.start()
    try:
        sizes = {len(found) for _ in range(3000) if isinstance(found := to_json(value), dict)}
    finally:
        stop.set()
        thread.join()

    assert sizes <= {49, 50, 51}
