"""A monitor with a judge behind an endpoint: budgets, and connections that end with the monitor."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from claimspan.cost.pricing import Price
from claimspan.judges import OpenAIJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Budget, Monitor

from judge_server import JudgeServer, judge_server
from lc_pipelines import rag_chain
from support import MonitorFactory, Spans, attributes, score_names


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


def run(monitor: Monitor, query: str) -> None:
    rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush(30)


def test_a_record_beyond_the_budget_ends_as_over_budget(
    make_monitor: MonitorFactory, spans: Spans, server: JudgeServer
) -> None:
    price = Price(input=1.0, output=1.0)
    judge = OpenAIJudge("stub", base_url=server.url, price=price, budget=Budget(per_day=1e-6))
    monitor = make_monitor(judge=judge)

    run(monitor, "q")

    root = attributes(spans.root)
    assert root["claimspan.evaluation.status"] == "over_budget"
    assert "dollars a day could be exceeded" in str(root["claimspan.evaluation.reason"])
    assert score_names(spans.root) == set()
    assert monitor.stats.skipped == {"over_budget": 1}
    assert server.calls == 0


def test_connections_of_the_judge_end_with_the_monitor(
    make_monitor: MonitorFactory, spans: Spans, server: JudgeServer
) -> None:
    monitor = make_monitor(judge=OpenAIJudge("stub", base_url=server.url))

    run(monitor, "q")
    monitor.shutdown(timeout=5)
    gc.collect()  # an open connection would be a warning, and so an error

    assert "faithfulness" in score_names(spans.root)
    assert attributes(spans.root)["claimspan.judge.calls"] == server.calls > 0
