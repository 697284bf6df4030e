"""Attaching to LlamaIndex and detaching again, beside other handlers."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# The dispatcher's lists of handlers leave open which spans these make.

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index_instrumentation import root_dispatcher
from llama_index_instrumentation.base import BaseEvent
from llama_index_instrumentation.dispatcher import instrument_tags
from llama_index_instrumentation.event_handlers.base import BaseEventHandler
from llama_index_instrumentation.span_handlers import SimpleSpanHandler

import claimspan_llama_index
from claimspan.errors import ConfigError, MissingExtraError
from claimspan_llama_index import _spans
from claimspan_llama_index._reader import LlamaIndexReader
from claimspan_llama_index._spans import SpanHandler
from claimspan_tracing import Monitor
from claimspan_tracing.capture.table import RunTable
from claimspan_tracing.engine import Engine

from li_pipelines import Echo, Shelf, engine_of, read, text_of
from pipelines import answer_to
from support import MonitorFactory, Spans, attributes

QUERY = "the question"
Attach = Callable[[Monitor], Monitor]


@pytest.fixture
def attach() -> Iterator[Attach]:
    """Attaches a monitor until the end of the test."""
    undoes: list[Callable[[], None]] = []

    def attach(monitor: Monitor) -> Monitor:
        undoes.append(claimspan_llama_index.instrument(monitor))
        return monitor

    yield attach
    for undo in undoes:
        undo()


def test_a_monitor_is_attached_once(make_monitor: MonitorFactory, spans: Spans) -> None:
    monitor = make_monitor()
    before = len(root_dispatcher.span_handlers)
    undoes = [claimspan_llama_index.instrument(monitor) for _ in range(3)]

    engine_of(Shelf(), Echo()).query(QUERY)
    assert len(root_dispatcher.span_handlers) == before + 1
    for undo in undoes:
        undo()

    assert monitor.flush()
    assert monitor.stats.produced == 1
    assert len(spans.of_kind("RETRIEVER")) == 1


def test_two_monitors_each_have_their_own_record(
    make_monitor: MonitorFactory, attach: Attach
) -> None:
    monitors = [attach(make_monitor()), attach(make_monitor(hold_seconds=20.0))]

    assert "".join(read(engine_of(Shelf(), Echo(), streaming=True).query(QUERY))).strip()

    for monitor in monitors:
        assert monitor.flush()
        assert monitor.stats.produced == monitor.stats.evaluated == 1


def test_undoing_twice_leaves_the_dispatcher_as_it_was(make_monitor: MonitorFactory) -> None:
    spans_before = list(root_dispatcher.span_handlers)
    events_before = list(root_dispatcher.event_handlers)
    monitor = make_monitor()
    undo = claimspan_llama_index.instrument(monitor)

    undo()
    undo()

    assert root_dispatcher.span_handlers == spans_before
    assert root_dispatcher.event_handlers == events_before
    engine_of(Shelf(), Echo()).query(QUERY)
    assert monitor.stats.produced == 0


def test_a_stream_under_way_is_followed_after_detaching(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    undo = claimspan_llama_index.instrument(monitor)
    response = engine_of(Shelf(), Echo(), streaming=True).query(QUERY)
    undo()

    str(response)

    assert monitor.flush()
    assert attributes(spans.root)["claimspan.evaluation.status"] == "evaluated"


class _Events(BaseEventHandler):
    seen: list[str] = []  # noqa: RUF012 - a field: pydantic copies it

    def handle(self, event: BaseEvent, **_: Any) -> None:
        self.seen.append(event.class_name())


def test_handlers_of_others_see_what_they_saw_before(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    def watched() -> tuple[list[str], int]:
        events, other = _Events(), SimpleSpanHandler()
        root_dispatcher.add_event_handler(events)
        root_dispatcher.add_span_handler(other)
        list(read(engine_of(Shelf(), Echo(), streaming=True).query(QUERY)))
        root_dispatcher.event_handlers.remove(events)
        root_dispatcher.span_handlers.remove(other)
        return events.seen, len(other.completed_spans)

    alone = watched()
    monitor = make_monitor()
    undo = claimspan_llama_index.instrument(monitor)
    beside_us = watched()
    undo()

    assert beside_us == alone
    assert monitor.flush()
    assert attributes(spans.root)["claimspan.evaluation.status"] == "evaluated"


def test_tags_are_the_metadata_of_a_record(
    make_monitor: MonitorFactory, attach: Attach, spans: Spans
) -> None:
    monitor = attach(make_monitor(ground_truth={"r-1": "It is so."}))

    with instrument_tags({"query_id": "r-1"}):
        engine_of(Shelf(), Echo()).query("asked in other words")
    assert monitor.flush()

    assert attributes(spans.root)["claimspan.record.id"] == "r-1"


HOOKS = [
    (RunTable, "get"),
    (RunTable, "add"),
    (RunTable, "close"),
    (Engine, "start_root"),
    (Engine, "submit"),
    (SpanHandler, "_follow"),
    (SpanHandler, "_end"),
    (_spans, "documents_of"),
    (_spans, "role_of"),
    (_spans, "parent_of"),
    (_spans, "taken"),
    (_spans, "is_called_beside"),
    *((LlamaIndexReader, name) for name in ("query", "response", "retrieval", "context")),
    *((LlamaIndexReader, name) for name in ("generation", "parts", "interrupted")),
]


@pytest.mark.parametrize("streaming", [False, True], ids=["plain", "streaming"])
@pytest.mark.parametrize(("owner", "hook"), HOOKS, ids=lambda each: getattr(each, "__name__", each))
async def test_a_fault_of_ours_leaves_the_answer_as_it_is(
    make_monitor: MonitorFactory,
    monkeypatch: pytest.MonkeyPatch,
    attach: Attach,
    owner: object,
    hook: str,
    streaming: bool,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monitor = attach(make_monitor())
    engine = engine_of(Shelf(), Echo(), streaming=streaming)
    monkeypatch.setattr(owner, hook, broken)

    plain = str(engine.query(QUERY)).strip()
    asynchronous = (await text_of(await engine.aquery(QUERY))).strip()

    assert (plain, asynchronous) == (answer_to(QUERY), answer_to(QUERY))
    monkeypatch.undo()
    monitor.flush()
    make_monitor.expected_faults = monitor.stats.faults


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llama_index", None)
    monkeypatch.delitem(sys.modules, "claimspan_llama_index")

    with pytest.raises(MissingExtraError, match=r"claimspan\[llama-index\]"):
        __import__("claimspan_llama_index")


def test_a_monitor_and_options_are_one_too_many(make_monitor: MonitorFactory) -> None:
    with pytest.raises(ConfigError):
        claimspan_llama_index.instrument(make_monitor(), sample=0.5)
