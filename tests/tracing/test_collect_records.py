"""`monitor.collect_records()`: handles of the queries that start in a block, for any framework."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda

import claimspan_haystack
import claimspan_llama_index
from claimspan.errors import ConfigError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import CapturedRecord, Monitor

from hs_pipelines import rag_pipeline
from lc_pipelines import rag_chain
from li_pipelines import Echo, Shelf, engine_of
from support import MonitorFactory, Spans, ids

QUESTION = "Is it?"


def config_of(monitor: Monitor) -> RunnableConfig:
    return {"callbacks": [ClaimspanCallbackHandler(monitor)]}


def roots_of(spans: Spans) -> list[tuple[str, str]]:
    return [(f"{ids(each).trace_id:032x}", f"{ids(each).span_id:016x}") for each in spans.roots]


def pairs(records: list[CapturedRecord]) -> list[tuple[str, str]]:
    return [(each.trace_id, each.span_id) for each in records]


def ask_langchain(monitor: Monitor) -> None:
    rag_chain().invoke(QUESTION, config_of(monitor))


def ask_llama_index(monitor: Monitor) -> None:
    undo = claimspan_llama_index.instrument(monitor)
    engine_of(Shelf(), Echo()).query(QUESTION)
    undo()


def ask_haystack(monitor: Monitor) -> None:
    undo = claimspan_haystack.instrument(monitor)
    rag_pipeline().run({"shelf": {"query": QUESTION}, "prompt": {"question": QUESTION}})
    undo()


@pytest.mark.parametrize("ask", [ask_langchain, ask_llama_index, ask_haystack])
def test_the_query_of_a_framework_has_a_handle_with_the_ids_of_its_root(
    ask: Callable[[Monitor], None], make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    with monitor.collect_records() as records:
        ask(monitor)
    assert monitor.flush(20)
    first = roots_of(spans)
    ask(monitor)  # after the block
    assert monitor.flush(20)

    assert pairs(records) == first
    assert len(roots_of(spans)) == 2


def test_the_handle_is_there_while_the_chain_runs_and_where_it_raises(
    make_monitor: MonitorFactory,
) -> None:
    monitor, seen = make_monitor(), list[CapturedRecord]()

    def look(question: str) -> str:
        seen.extend(records)
        raise LookupError(question)

    with monitor.collect_records() as records, pytest.raises(LookupError):
        RunnableLambda(look).invoke(QUESTION, config_of(monitor))

    assert len(records) == 1
    assert seen == records


def test_each_query_of_a_batch_has_a_handle(make_monitor: MonitorFactory, spans: Spans) -> None:
    monitor = make_monitor()
    with monitor.collect_records() as records:
        rag_chain().batch([QUESTION] * 5, config_of(monitor))

    assert monitor.flush(20)
    assert sorted(pairs(records)) == sorted(roots_of(spans))
    assert len(set(records)) == 5


async def test_requests_that_are_served_side_by_side_have_lists_of_their_own(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor()

    async def serve() -> list[CapturedRecord]:
        with monitor.collect_records() as records:
            await rag_chain().ainvoke(QUESTION, config_of(monitor))
        return records

    served = await asyncio.gather(*(serve() for _ in range(4)))

    assert [len(records) for records in served] == [1] * 4
    assert len({records[0].trace_id for records in served}) == 4


def test_a_block_within_another_adds_to_both_and_other_monitors_to_none(
    make_monitor: MonitorFactory,
) -> None:
    monitor, other = make_monitor(), make_monitor()
    with monitor.collect_records() as outer:
        ask_langchain(monitor)
        with monitor.collect_records() as inner:
            ask_langchain(monitor)
            ask_langchain(other)

    assert (len(outer), len(inner)) == (2, 1)
    assert outer[1:] == inner


def test_feedback_on_a_handle_is_feedback_on_the_root(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor, said = make_monitor(), list[tuple[float, str, str]]()

    def note(value: float, *, trace_id: str, span_id: str) -> None:
        said.append((value, trace_id, span_id))

    monkeypatch.setattr(monitor, "feedback", note)
    with monitor.collect_records() as records:
        ask_langchain(monitor)
    (record,) = records
    record.feedback(1.0)

    assert said == [(1.0, record.trace_id, record.span_id)]
    assert repr(record) == (
        f"CapturedRecord(trace_id='{record.trace_id}', span_id='{record.span_id}')"
    )


def test_a_value_out_of_range_is_refused(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor()
    with monitor.collect_records() as records:
        ask_langchain(monitor)

    with pytest.raises(ConfigError):
        records[0].feedback(2.0)


def test_a_record_without_a_framework_has_a_handle_as_well(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor()
    with monitor.collect_records() as records, monitor.record(QUESTION) as record:
        record.answered("Yes.")

    assert pairs(records) == [(record.trace_id, record.span_id)]
