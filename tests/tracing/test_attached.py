"""Session, user, tags and metadata of a query: where they come from, and what becomes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from langchain_core.messages import HumanMessage
from openinference.instrumentation import (
    using_attributes,
    using_metadata,
    using_session,
    using_tags,
    using_user,
)
from opentelemetry.context import attach, detach, set_value

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Rule, RuleSampler, attribute
from claimspan_tracing.testing import InMemoryMonitor

from lc_graphs import messages_graph
from lc_pipelines import rag_chain
from support import attributes

NAMES = ("session.id", "user.id", "tag.tags", "metadata")


def attached(monitor: InMemoryMonitor) -> dict[str, object]:
    """What is attached to the one root."""
    (root,) = [span for span in monitor.spans() if span.name.startswith("invoke_workflow")]
    return {name: attributes(root)[name] for name in NAMES if name in attributes(root)}


def ask(
    monitor: InMemoryMonitor,
    metadata: Mapping[str, object] | None = None,
    tags: list[str] | None = None,
) -> None:
    rag_chain().invoke(
        "q",
        {
            "callbacks": [ClaimspanCallbackHandler(monitor)],
            "metadata": dict(metadata or {}),
            "tags": tags or [],
        },
    )


# --- from the run ---


def test_session_user_and_tags_are_found_behind_any_amount_of_metadata() -> None:
    much = {f"key {n}": "v" * 300 for n in range(5_000)}
    with InMemoryMonitor() as monitor:
        ask(monitor, {**much, "thread_id": "s-1", "user_id": "u-1"}, ["t-1"])

        found = attached(monitor)
    assert (found["session.id"], found["user.id"]) == ("s-1", "u-1")
    assert found["tag.tags"] == ("t-1",)


@pytest.mark.parametrize("key", ["session.id", "session_id", "conversation_id", "thread_id"])
def test_a_session_is_found_in_the_metadata_of_the_run(key: str) -> None:
    with InMemoryMonitor() as monitor:
        ask(monitor, {key: "s-1"})

        assert attached(monitor)["session.id"] == "s-1"


@pytest.mark.parametrize("key", ["user.id", "user_id"])
def test_a_user_is_found_in_the_metadata_of_the_run(key: str) -> None:
    with InMemoryMonitor() as monitor:
        ask(monitor, {key: 4711})

        assert attached(monitor)["user.id"] == "4711"


def test_the_thread_of_a_graph_is_its_session_and_what_the_framework_adds_is_left_out() -> None:
    with InMemoryMonitor() as monitor:
        messages_graph().invoke(
            {"messages": [HumanMessage("q")]},
            {
                "callbacks": [ClaimspanCallbackHandler(monitor)],
                "configurable": {"thread_id": "t-1"},
                "metadata": {"team": "search", "ls_provider": "x", "checkpoint_ns": "y"},
                "tags": ["prod", "seq:step:1", "langsmith:hidden"],
            },
        )

        found = attached(monitor)
    assert found["session.id"] == "t-1"
    assert found["tag.tags"] == ("prod",)
    assert json.loads(str(found["metadata"])) == {"team": "search", "thread_id": "t-1"}


def test_a_query_without_any_has_none_of_the_attributes() -> None:
    with InMemoryMonitor() as monitor:
        ask(monitor)

        assert attached(monitor) == {}


def test_metadata_are_whole_json_of_2_kib_without_what_does_not_fit() -> None:
    metadata = {"long": "x" * 3000} | {f"key{n}": "y" * 100 for n in range(40)}
    with InMemoryMonitor() as monitor:
        ask(monitor, metadata)

        found = str(attached(monitor)["metadata"])
    assert len(found.encode()) <= 2048
    assert len(json.loads(found)) > 10
    assert "long" not in json.loads(found)


# --- from OpenTelemetry's context ---


def test_openinferences_context_managers_are_heard() -> None:
    with InMemoryMonitor() as monitor:
        with using_session("s-1"), using_user("u-1"), using_tags(["a"]), using_metadata({"m": 1}):
            ask(monitor)

        found = attached(monitor)
    assert found == {
        "session.id": "s-1",
        "user.id": "u-1",
        "tag.tags": ("a",),
        "metadata": '{"m":1}',
    }


def test_the_run_goes_before_the_context_and_tags_are_those_of_both() -> None:
    with InMemoryMonitor() as monitor:
        with using_attributes(session_id="s-2", metadata={"m": 1, "n": 2}, tags=["b", "a"]):
            ask(monitor, {"session.id": "s-1", "m": 3}, ["a"])

        found = attached(monitor)
    assert found["session.id"] == "s-1"
    assert found["tag.tags"] == ("a", "b")
    assert json.loads(str(found["metadata"])) == {"m": 3, "n": 2}


@pytest.mark.parametrize("value", ["{", "[1]", "[" * 60_000, 7, "{" + " " * 70_000 + "}", None])
def test_a_value_in_the_context_that_is_no_json_object_is_no_metadata(value: object) -> None:
    with InMemoryMonitor() as monitor:
        token = attach(set_value("metadata", value))
        ask(monitor)
        detach(token)

        assert attached(monitor) == {}
        assert monitor.stats.faults == 0


def test_a_query_after_the_block_is_not_of_its_session() -> None:
    with InMemoryMonitor() as monitor:
        with using_session("s-1"):
            pass
        ask(monitor)

        assert attached(monitor) == {}


# --- what becomes of them ---


def test_samplers_and_sinks_see_the_session() -> None:
    rule = Rule(attribute("session.id", "s-1"), rate=0.0)
    with InMemoryMonitor(sample=RuleSampler([rule], default=1.0)) as monitor:
        with using_session("s-1"):
            ask(monitor)

        record = monitor.only_record()
    assert record.status == "not_sampled"
    assert record.record.metadata == {"session.id": "s-1"}


def test_without_content_nothing_that_was_attached_is_written() -> None:
    with InMemoryMonitor(capture_content=False) as monitor:
        with using_attributes(session_id="s-1", user_id="u", metadata={"m": 1}, tags=["t"]):
            ask(monitor, {"team": "search"})

        assert attached(monitor) == {}


def test_what_is_attached_is_redacted_before_it_is_written() -> None:
    with InMemoryMonitor(redact=lambda text: text.replace("bird", "[x]")) as monitor:
        with using_attributes(session_id="bird 1", user_id="bird 2", tags=["bird"]):
            ask(monitor, {"team": "bird"})

        found = attached(monitor)
    assert found["session.id"] == "[x] 1"
    assert found["user.id"] == "[x] 2"
    assert found["tag.tags"] == ("[x]",)
    assert found["metadata"] == '{"team":"[x]"}'
