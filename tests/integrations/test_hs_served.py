"""Pipelines below the operations that a server, such as Hayhooks, puts around them."""

from __future__ import annotations

from haystack.tracing.tracer import tracer

import claimspan_haystack
from claimspan_tracing import Monitor

from hs_driver import HaystackDriver
from pipelines import Recipe
from support import MonitorFactory, Spans, attributes


def test_the_operation_of_a_server_around_a_pipeline_is_no_query(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor: Monitor = make_monitor()
    undo = claimspan_haystack.instrument(monitor)
    pipeline = HaystackDriver().build(Recipe())

    with tracer.trace("server.pipeline.run", tags={"server.pipeline": "rag"}) as around:
        around.set_tag("server.success", True)
        answers = [pipeline.run("first"), pipeline.run("second")]
    undo()
    assert monitor.flush()

    roots = [attributes(root) for root in spans.roots]
    assert sorted(str(root["output.value"]) for root in roots) == sorted(answers)
    assert [root["claimspan.evaluation.status"] for root in roots] == ["evaluated", "evaluated"]
    assert monitor.stats.unasked == 0
