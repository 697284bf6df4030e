"""Requests of several tenants at once: each query keeps its own session, user and texts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

import pytest
from openinference.instrumentation import using_attributes

from claimspan_tracing import Monitor

from hs_driver import HaystackDriver
from lc_driver import LangChainDriver
from li_driver import LlamaIndexDriver
from pipelines import Driver, Recipe, answer_to
from support import MonitorFactory, Spans, attributes

QUERIES = [f"question {number}" for number in range(40)]

DRIVERS: list[Callable[[], Driver]] = [LangChainDriver, LlamaIndexDriver, HaystackDriver]


@pytest.fixture
def monitor(make_monitor: MonitorFactory) -> Monitor:
    return make_monitor(hold_seconds=300.0)


@pytest.fixture(params=DRIVERS, ids=lambda make: make().name)
def driver(request: pytest.FixtureRequest, monitor: Monitor) -> Iterator[Driver]:
    make: Callable[[], Driver] = request.param
    driver = make()
    detach = driver.attach(monitor)
    yield driver
    detach()


def tenant_of(query: str) -> AbstractContextManager[object]:
    """The context of a request, as an application sets it around its pipeline."""
    return using_attributes(session_id=f"session of {query}", user_id=f"user of {query}")


def assert_each_has_its_own(spans: Spans) -> None:
    found = {
        str(root["input.value"]): (
            root["session.id"],
            root["user.id"],
            str(root["output.value"]).strip(),
        )
        for root in map(attributes, spans.roots)
    }
    assert found == {
        query: (f"session of {query}", f"user of {query}", answer_to(query)) for query in QUERIES
    }


def test_requests_on_threads_keep_their_own_tenants(
    driver: Driver, monitor: Monitor, spans: Spans
) -> None:
    pipeline = driver.build(Recipe())

    def serve(query: str) -> None:
        with tenant_of(query):
            pipeline.run(query)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(serve, QUERIES))

    assert monitor.flush(60)
    assert_each_has_its_own(spans)


async def test_requests_in_tasks_keep_their_own_tenants(
    driver: Driver, monitor: Monitor, spans: Spans
) -> None:
    pipeline = driver.build(Recipe())

    async def serve(query: str) -> None:
        with tenant_of(query):
            await pipeline.arun(query)

    await asyncio.gather(*map(serve, QUERIES))

    assert await monitor.aflush(60)
    assert_each_has_its_own(spans)
