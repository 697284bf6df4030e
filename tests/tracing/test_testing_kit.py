"""The monitor that is shipped for the tests of users, on a real pipeline of each framework."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from types import ModuleType

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import claimspan_haystack
import claimspan_llama_index
from claimspan.errors import ConfigError, JudgeError
from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Finished, Status, testing
from claimspan_tracing.testing import InMemoryMonitor

from hs_pipelines import rag_pipeline
from lc_pipelines import rag_chain
from li_pipelines import Echo, Shelf, engine_of
from pipelines import answer_to
from support import attributes


@pytest.fixture
def monitor() -> Iterator[InMemoryMonitor]:
    with InMemoryMonitor() as monitor:
        yield monitor
        assert monitor.stats.faults == 0


def ask(monitor: InMemoryMonitor, *queries: str) -> None:
    """Ask a LangChain chain that this monitor is attached to."""
    for query in queries:
        rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def check_record(monitor: InMemoryMonitor) -> None:
    """The record and the scores of the question ``q``, whichever framework was asked."""
    record = monitor.only_record()
    assert (record.record.query, record.record.response) == ("q", answer_to("q"))
    assert record.record.chunks[0].id == "doc-q"
    assert record.status is Status.EVALUATED
    assert record.scores["faithfulness"] == 0.5


# --- each framework ---


def test_a_langchain_chain_gives_its_record(monitor: InMemoryMonitor) -> None:
    ask(monitor, "q")

    check_record(monitor)


def test_a_llama_index_engine_gives_its_record(monitor: InMemoryMonitor) -> None:
    detach = claimspan_llama_index.instrument(monitor)
    engine_of(Shelf(), Echo()).query("q")
    detach()

    check_record(monitor)


def test_a_haystack_pipeline_gives_its_record(monitor: InMemoryMonitor) -> None:
    detach = claimspan_haystack.instrument(monitor)
    rag_pipeline().run({"shelf": {"query": "q"}, "prompt": {"question": "q"}})
    detach()

    check_record(monitor)


def test_the_example_of_the_documentation_holds() -> None:
    _, _, after = (testing.__doc__ or "").partition("records::\n")
    example = textwrap.dedent(after.partition("\nEvery query")[0])
    module = ModuleType("example")
    module.__dict__["chain"] = rag_chain()

    # The documentation is ours, and running it is the point.
    exec(compile(example, "testing.py", "exec"), module.__dict__)  # noqa: S102 - see above
    module.__dict__["test_an_invented_sentence_lowers_faithfulness"]()


# --- records ---


def test_records_come_in_the_order_in_which_their_queries_began(monitor: InMemoryMonitor) -> None:
    ask(monitor, "a", "b", "c")

    assert [record.record.query for record in monitor.records()] == ["a", "b", "c"]


def test_records_that_are_not_evaluated_are_there_without_scores() -> None:
    with InMemoryMonitor(sample=0.0) as monitor:
        ask(monitor, "q")

        record = monitor.only_record()

    assert (record.status, record.scores) == (Status.NOT_SAMPLED, {})


def test_a_judge_that_fails_gives_a_record_that_says_so() -> None:
    judge = ScriptedJudge(error=JudgeError("the endpoint is down"))
    with InMemoryMonitor(judge=judge) as monitor:
        ask(monitor, "q")

        record = monitor.only_record()

    assert (record.status, record.scores) == (Status.JUDGE_ERROR, {})


def test_a_record_whose_scores_came_late_is_there_once_with_its_scores() -> None:
    judge = ScriptedJudge(delay_seconds=0.3)
    with InMemoryMonitor(judge=judge, hold_seconds=0.1) as monitor:
        ask(monitor, "q")

        record = monitor.only_record()

    assert record.outcome.late
    assert record.scores["faithfulness"] == 0.5


def test_options_reach_the_monitor() -> None:
    with InMemoryMonitor(ground_truth={"q": answer_to("q")}) as monitor:
        ask(monitor, "q")

        assert monitor.only_record().scores["precision"] == 1.0


def test_sinks_of_the_test_are_called_too() -> None:
    class Kept:
        def __init__(self) -> None:
            self.queries: list[str] = []

        def write(self, finished: Finished) -> None:
            self.queries.append(finished.job.record.query)

    sink = Kept()
    with InMemoryMonitor(sinks=[sink]) as monitor:
        ask(monitor, "q")

        assert monitor.only_record().record.query == "q"
    assert sink.queries == ["q"]


# --- spans ---


def test_the_spans_are_those_that_a_backend_would_get(monitor: InMemoryMonitor) -> None:
    ask(monitor, "q")

    by_name = {span.name: attributes(span) for span in monitor.spans()}
    assert set(by_name) == {
        "invoke_workflow RunnableSequence",
        "retrieval",
        "chat",
        "claimspan.evaluate",
    }
    assert by_name["invoke_workflow RunnableSequence"]["claimspan.score.faithfulness"] == 0.5


def test_the_global_provider_is_left_alone_and_its_spans_are_not_ours(
    monitor: InMemoryMonitor,
) -> None:
    before = trace.get_tracer_provider()
    ask(monitor, "q")

    assert trace.get_tracer_provider() is before
    assert monitor.provider is not before


def test_two_monitors_keep_their_records_apart(monitor: InMemoryMonitor) -> None:
    with InMemoryMonitor() as other:
        ask(monitor, "mine")
        ask(other, "other")

        assert other.only_record().record.query == "other"
    assert monitor.only_record().record.query == "mine"


def test_clear_forgets_records_and_spans(monitor: InMemoryMonitor) -> None:
    ask(monitor, "first")
    monitor.clear()
    assert (monitor.records(), monitor.spans()) == ([], ())
    ask(monitor, "second")

    assert monitor.only_record().record.query == "second"


def test_it_works_without_a_with_block() -> None:
    monitor = InMemoryMonitor()
    ask(monitor, "q")

    check_record(monitor)
    assert monitor.shutdown()


def test_leaving_the_block_shuts_it_down_and_keeps_its_records() -> None:
    with InMemoryMonitor() as monitor:
        ask(monitor, "q")
    ask(monitor, "after")

    check_record(monitor)
    assert monitor.stats.dropped == {"shutdown": 1}


# --- what it refuses ---


def test_without_a_record_the_message_says_how_to_attach(monitor: InMemoryMonitor) -> None:
    with pytest.raises(AssertionError, match="attach this monitor to the pipeline"):
        monitor.only_record()


def test_with_several_records_the_message_counts_them(monitor: InMemoryMonitor) -> None:
    ask(monitor, "a", "b")

    with pytest.raises(AssertionError, match="2 records were captured where one was expected"):
        monitor.only_record()


def test_records_that_were_never_read_are_counted_in_the_message(monitor: InMemoryMonitor) -> None:
    monitor.shutdown()
    ask(monitor, "q")

    with pytest.raises(AssertionError, match=r"no record was read \(shutdown: 1\)"):
        monitor.only_record()


def test_a_record_that_is_not_finished_in_time_is_an_error() -> None:
    with InMemoryMonitor(judge=ScriptedJudge(delay_seconds=1.0)) as monitor:
        ask(monitor, "q")

        with pytest.raises(AssertionError, match=r"1 of 1 records have no state after 0\.1 s"):
            monitor.records(timeout=0.1)
        assert monitor.only_record().status is Status.EVALUATED


def test_a_provider_of_the_test_is_refused() -> None:
    with pytest.raises(ConfigError, match="a tracer provider of its own"):
        InMemoryMonitor(tracer_provider=TracerProvider(shutdown_on_exit=False))


def test_it_needs_no_test_framework() -> None:
    code = "import claimspan_tracing.testing, sys; sys.exit('pytest' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
