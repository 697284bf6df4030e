"""Pipelines that are copied, or sent to another process, with the monitor that they hold."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from copy import copy, deepcopy

import pytest

from claimspan_haystack import ClaimspanConnector
from claimspan_langchain import ClaimspanCallbackHandler

from hs_pipelines import rag_pipeline
from lc_pipelines import answer_to, rag_chain
from support import MonitorFactory

QUERY = "the question"


@pytest.mark.parametrize("copied", [copy, deepcopy])
def test_a_copied_chain_is_monitored_as_the_chain_that_it_is_of(
    make_monitor: MonitorFactory, copied: Callable[[object], object]
) -> None:
    monitor = make_monitor()
    handler = ClaimspanCallbackHandler(monitor)

    other = copied(handler)
    assert isinstance(other, ClaimspanCallbackHandler)
    assert rag_chain().invoke(QUERY, {"callbacks": [handler, other]}) == answer_to(QUERY)
    assert rag_chain().invoke(QUERY, {"callbacks": [other]}) == answer_to(QUERY)

    assert monitor.flush()
    assert monitor.stats.evaluated == 2  # on one chain both are one


def test_a_deep_copy_of_a_chain_holds_its_monitor(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor()
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])

    assert deepcopy(chain).invoke(QUERY) == answer_to(QUERY)

    assert monitor.flush()
    assert monitor.stats.evaluated == 1


def test_a_deep_copy_of_a_pipeline_with_a_connector_is_monitored(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor()
    pipeline = rag_pipeline()
    connector = ClaimspanConnector(monitor)
    pipeline.add_component("claimspan", connector)
    try:
        deepcopy(pipeline).run({"shelf": {"query": QUERY}, "prompt": {"question": QUERY}})
    finally:
        connector.undo()

    assert monitor.flush()
    assert monitor.stats.evaluated == 1


def test_a_monitor_that_is_sent_to_another_process_says_where_to_make_one(
    make_monitor: MonitorFactory,
) -> None:
    chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(make_monitor())])

    with pytest.raises(TypeError, match="make one in each process"):
        pickle.dumps(chain)
