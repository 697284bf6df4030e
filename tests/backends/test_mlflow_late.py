"""Scores that reach a real MLflow late, twice, or for spans that are not ours."""

from __future__ import annotations

import pytest
from langchain_core.runnables import RunnableConfig
from openinference.instrumentation import using_user
from openinference.instrumentation.langchain import LangChainInstrumentor

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_mlflow import MLflowWriter
from claimspan_openinference import ClaimspanSpanProcessor
from claimspan_tracing import Finished, Monitor

from lc_pipelines import rag_chain
from mlflow_api import Experiment, StoredSpan, Trace
from mlflow_queries import monitor_to
from support import ScriptedJudge

QUERY = "Is it late?"


class Kept:
    """A sink that keeps what is finished."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []

    def write(self, finished: Finished) -> None:
        self.finished.append(finished)


@pytest.fixture
def experiment(mlflow: str) -> Experiment:
    return Experiment(mlflow)


def test_late_scores_change_neither_state_nor_duration_of_their_trace(
    experiment: Experiment,
) -> None:
    # Longer than its spans are held, and these long enough for a busy machine to begin: a job that
    # no judge has begun by then is not evaluated at all.
    judge = ScriptedJudge(delay=4.0)
    with monitor_to(experiment, judge=judge, hold_seconds=3.0) as monitor:
        ask(monitor)

    trace = experiment.trace(QUERY)
    root = experiment.span(trace, "CHAIN")
    late = [span for span in experiment.spans(trace) if span.type == "EVALUATOR"]
    assert root.attributes["claimspan.evaluation.status"] == "timeout"
    assert any("claimspan.score.faithfulness" in span.attributes for span in late)
    assert trace.feedback(root)["faithfulness"].value == 0.5
    assert trace.state == "OK"
    assert_as_long_as(root, trace)


def test_a_slow_judge_stretches_no_duration(experiment: Experiment) -> None:
    with monitor_to(experiment, judge=ScriptedJudge(delay=0.5)) as monitor:
        ask(monitor)

    trace = experiment.trace(QUERY)
    root = experiment.span(trace, "CHAIN")
    assert root.attributes["claimspan.evaluation.status"] == "evaluated"
    assert_as_long_as(root, trace)


def test_scores_that_are_written_twice_are_stored_once(experiment: Experiment) -> None:
    kept, first = Kept(), MLflowWriter(experiment.url)
    with monitor_to(experiment, sinks=[first, kept]) as monitor:
        ask(monitor)
        assert monitor.flush(timeout=60)
        assert first.flush(timeout=60)
    before = experiment.trace(QUERY)
    again = MLflowWriter(experiment.url)
    for finished in kept.finished:
        again.write(finished)
    assert again.flush(timeout=60)

    assert again.lost == 0
    assert before.assessments
    assert experiment.trace(QUERY).assessments == before.assessments


def test_the_user_of_a_query_is_that_of_its_trace(experiment: Experiment) -> None:
    with monitor_to(experiment) as monitor, using_user("somebody"):
        ask(monitor)

    assert experiment.asked("metadata.`mlflow.trace.user` = 'somebody'") == {QUERY}


# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
@pytest.mark.filterwarnings("ignore:Calling .text")
def test_a_trace_of_openinferences_spans_gets_feedback_on_its_root(experiment: Experiment) -> None:
    provider = experiment.provider()
    with monitor_to(experiment, provider) as monitor:
        provider.add_span_processor(ClaimspanSpanProcessor(monitor))
        instrumentor = LangChainInstrumentor()
        instrumentor.instrument(tracer_provider=provider)
        rag_chain().invoke(QUERY)
        instrumentor.uninstrument()
        assert monitor.flush(timeout=60)

    (trace,) = experiment.traces("feedback.faithfulness <= 0.5")
    (root,) = [span for span in experiment.spans(trace) if not span.parent]
    assert root.name == "RunnableSequence"
    assert trace.feedback(root)["faithfulness"].value == 0.5
    assert_as_long_as(root, trace)


def ask(monitor: Monitor) -> None:
    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    rag_chain().invoke(QUERY, config)


def assert_as_long_as(root: StoredSpan, trace: Trace) -> None:
    # MLflow cuts start and end to milliseconds before it subtracts them.
    assert abs(trace.milliseconds - (root.ended - root.started) / 1e6) <= 1
