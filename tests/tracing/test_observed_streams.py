"""Streams of plain code that are not read to their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import contextmanager

import pytest

from claimspan_tracing import observe

from support import MonitorFactory, Spans, attributes


def test_a_stream_that_is_left_early_is_abandoned(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    closed: list[bool] = []

    @observe(monitor=monitor)
    def ask(query: str) -> Generator[str]:
        try:
            yield "one"
            yield "two"
        finally:
            closed.append(True)

    stream = ask("q")
    next(stream)
    stream.close()
    assert monitor.flush()

    assert closed == [True]
    assert attributes(spans.root)["claimspan.evaluation.status"] == "abandoned"


def test_a_stream_whose_cleaning_up_fails_is_abandoned_all_the_same(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()

    @observe(monitor=monitor)
    def ask(query: str) -> Generator[str]:
        with _failing_at_its_end():
            yield "one"

    @observe(monitor=monitor)
    async def aask(query: str) -> AsyncGenerator[str]:
        with _failing_at_its_end():
            yield "one"

    async def leave() -> None:
        stream = aask("q")
        await anext(stream)
        await stream.aclose()

    stream = ask("q")
    next(stream)
    with pytest.raises(ConnectionError):
        stream.close()
    with pytest.raises(ConnectionError):
        asyncio.run(leave())
    assert monitor.flush()

    assert monitor.stats.skipped == {"abandoned": 2}


@contextmanager
def _failing_at_its_end() -> Generator[None]:
    try:
        yield
    finally:
        raise ConnectionError
