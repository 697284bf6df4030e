"""Scores for the spans of another instrumentation, on one carrier span for each trace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_core.retrievers import BaseRetriever
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    StatusCode,
    TraceFlags,
    Tracer,
    set_span_in_context,
)

from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_openinference import ClaimspanSpanProcessor
from claimspan_openinference._traces import MAX_SPANS
from claimspan_tracing import Finished, Monitor

from lc_pipelines import Echo, Shelf, answer_to, rag_chain
from support import MonitorFactory, Spans, attributes, ids, score_names

QUERY = "the question"
# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")

OTHERS = "somebody else's instrumentation"


@pytest.fixture
def monitor(make_monitor: MonitorFactory, provider: TracerProvider) -> Monitor:
    monitor = make_monitor(ground_truth={QUERY: f"Answer to {QUERY}"})
    provider.add_span_processor(ClaimspanSpanProcessor(monitor))
    return monitor


@pytest.fixture
def instrumented(monitor: Monitor, provider: TracerProvider) -> Iterator[Monitor]:
    """OpenInference's instrumentor of LangChain, attached."""
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield monitor
    instrumentor.uninstrument()


@pytest.fixture
def tracer(provider: TracerProvider) -> Tracer:
    return provider.get_tracer(OTHERS)


def carriers(spans: Spans) -> list[ReadableSpan]:
    """The spans with scores and claims; beside each stands one with the annotations."""
    return [span for span in spans.of_kind("EVALUATOR") if span.name == "claimspan.evaluate"]


def root_of(spans: Spans) -> ReadableSpan:
    (root,) = [span for span in spans.all if span.parent is None]
    return root


def test_the_scores_of_openinferences_spans_go_to_one_carrier_with_one_link_to_the_root(
    instrumented: Monitor, spans: Spans
) -> None:
    assert rag_chain().invoke(QUERY) == answer_to(QUERY)
    assert instrumented.flush()

    (carrier,) = carriers(spans)
    assert [link.context.span_id for link in carrier.links] == [ids(root_of(spans)).span_id]
    assert ids(carrier).trace_id == ids(root_of(spans)).trace_id
    assert attributes(carrier)["claimspan.score.faithfulness"] == 0.5
    assert attributes(carrier)["claimspan.score.precision"] == 0.5
    (annotated,) = [span for span in spans.of_kind("EVALUATOR") if span is not carrier]
    assert [link.context.span_id for link in annotated.links] == [ids(root_of(spans)).span_id]
    assert "evaluations.0.evaluation.name" in attributes(annotated)


def test_there_is_no_second_set_of_spans(instrumented: Monitor, spans: Spans) -> None:
    rag_chain().invoke(QUERY)
    assert instrumented.flush()

    assert [s.name for s in spans.all if s.instrumentation_scope.name == "claimspan"] == [  # type: ignore[union-attr] # pyright: ignore[reportOptionalMemberAccess] - every span here has a scope
        "claimspan.evaluate",
        "claimspan.annotations",
    ]
    assert len(spans.of_kind("RETRIEVER")) == 1
    assert instrumented.stats.evaluated == 1


def test_each_item_of_a_batch_has_its_own_carrier(instrumented: Monitor, spans: Spans) -> None:
    rag_chain().batch(["a", "b", "c"])
    assert instrumented.flush()

    assert len({ids(carrier).trace_id for carrier in carriers(spans)}) == 3


def test_a_pipeline_that_fails_gets_no_carrier_and_is_counted(
    instrumented: Monitor, spans: Spans
) -> None:
    with pytest.raises(LookupError):
        rag_chain(model=Echo(error=LookupError())).invoke(QUERY)
    assert instrumented.flush()

    assert carriers(spans) == []
    assert instrumented.stats.skipped == {"app_error": 1}


def test_our_callback_and_openinference_on_one_chain_both_keep_working(
    make_monitor: MonitorFactory, provider: TracerProvider, spans: Spans
) -> None:
    monitor = make_monitor()
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    rag_chain().invoke(QUERY, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    instrumentor.uninstrument()
    assert monitor.flush()

    ours = [s for s in spans.all if s.name == "invoke_workflow RunnableSequence"]
    theirs = [s for s in spans.all if s.name == "RunnableSequence" and s.parent is None]
    assert len(ours) == len(theirs) == 1
    assert attributes(ours[0])["output.value"] == attributes(theirs[0])["output.value"]


def test_a_trace_without_a_retriever_is_left_alone(instrumented: Monitor) -> None:
    Echo().invoke(QUERY)

    assert instrumented.flush()
    assert instrumented.stats.produced == 0


def test_nested_retrievers_count_once(instrumented: Monitor, spans: Spans) -> None:
    from langchain_classic.retrievers import EnsembleRetriever

    ensemble: BaseRetriever = EnsembleRetriever(retrievers=[Shelf(), Shelf()], weights=[0.5, 0.5])
    rag_chain(retriever=ensemble).invoke(QUERY)
    assert instrumented.flush()

    (carrier,) = carriers(spans)
    assert attributes(carrier)["claimspan.score.context_precision"] == 0.5  # 1 of 2, not of 4


def test_a_trace_that_begins_elsewhere_is_complete_with_its_first_span_here(
    monitor: Monitor, spans: Spans, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("rag", elsewhere()) as root:
        root.set_attributes({"input.value": QUERY, "output.value": "said"})
        retrieved(tracer)
    assert monitor.flush()

    (carrier,) = carriers(spans)
    assert [link.context.span_id for link in carrier.links] == [root.get_span_context().span_id]


def elsewhere() -> Context:
    """The context of a request whose trace begins in another process."""
    remote = SpanContext(0x1234, 0x5678, is_remote=True, trace_flags=TraceFlags(1))
    return set_span_in_context(NonRecordingSpan(remote))


class Collected:
    """A sink of the user's."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []

    def write(self, finished: Finished) -> None:
        self.finished.append(finished)


def test_two_queries_of_one_trace_at_the_same_time_have_their_own_chunks(
    make_monitor: MonitorFactory, provider: TracerProvider, tracer: Tracer
) -> None:
    seen = Collected()
    monitor = make_monitor(sinks=[seen])
    provider.add_span_processor(ClaimspanSpanProcessor(monitor))
    roots = {name: tracer.start_span(name, elsewhere()) for name in "ab"}
    for name, root in roots.items():
        with tracer.start_as_current_span("step", set_span_in_context(root)):
            chunk = f'[{{"id": "{name}", "content": "said so"}}]'
            retrieved(tracer, **{"gen_ai.retrieval.documents": chunk})
        root.set_attributes({"input.value": QUERY, "output.value": "said"})
    for root in roots.values():
        root.end()
    assert monitor.flush()

    assert sorted([chunk.id for chunk in f.job.record.chunks] for f in seen.finished) == [
        ["a"],
        ["b"],
    ]


def test_a_root_from_elsewhere_is_a_record_however_many_spans_it_has(
    monitor: Monitor, spans: Spans, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("rag", elsewhere()) as root:
        root.set_attributes({"input.value": QUERY, "output.value": "said"})
        retrieved(tracer)
        for _ in range(MAX_SPANS + 1):
            tracer.start_span("step").end()
    assert monitor.flush()

    assert monitor.stats.evaluated == 1


def retrieved(tracer: Tracer, **more: str) -> None:
    with tracer.start_as_current_span("retrieve") as span:
        span.set_attributes(
            {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.retrieval.query.text": QUERY,
                "gen_ai.retrieval.documents": '[{"id": "a", "score": 0.5, "content": "said so"}]',
            }
            | more
        )


@pytest.mark.parametrize(
    ("input_value", "output_value"),
    [
        (QUERY, "said"),
        (f'{{"input": "{QUERY}"}}', '{"answer": "said", "context": []}'),
        (
            f'{{"messages": [{{"role": "user", "content": "{QUERY}"}}]}}',
            '{"messages": [{"type": "human", "content": "q"}, {"type": "ai", "content": "said"}]}',
        ),
    ],
)
def test_opentelemetrys_own_retrieval_spans_are_read_where_they_have_content(
    monitor: Monitor, spans: Spans, tracer: Tracer, input_value: str, output_value: str
) -> None:
    with tracer.start_as_current_span("rag") as root:
        root.set_attributes({"input.value": input_value, "output.value": output_value})
        retrieved(tracer)
    assert monitor.flush()

    claims = attributes(carriers(spans)[0])
    assert claims["claimspan.claim.0.text"] == "said"
    assert claims["claimspan.claim.0.supported_by"] == '["a"]'
    assert "claimspan.score.precision" in claims  # the ground truth was found by the query


def test_what_a_reranker_let_through_is_what_is_judged(
    monitor: Monitor, spans: Spans, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("rag") as root:
        root.set_attributes({"input.value": QUERY, "output.value": "said"})
        retrieved(tracer)
        with tracer.start_as_current_span("rerank") as span:
            span.set_attribute("openinference.span.kind", "RERANKER")
            span.set_attribute("reranker.output_documents.0.document.content", "something else")
    assert monitor.flush()

    assert attributes(carriers(spans)[0])["claimspan.score.faithfulness"] == 0.0


def test_unsampled_traces_get_no_carrier(
    make_monitor: MonitorFactory, provider: TracerProvider, spans: Spans, tracer: Tracer
) -> None:
    monitor = make_monitor(sample=0.0)
    provider.add_span_processor(ClaimspanSpanProcessor(monitor))
    with tracer.start_as_current_span("rag") as root:
        root.set_attributes({"input.value": QUERY, "output.value": "said"})
        retrieved(tracer)
    assert monitor.flush()

    assert carriers(spans) == []
    assert monitor.stats.skipped == {"not_sampled": 1}


def test_spans_that_are_nothing_like_a_pipeline_pass_by(
    monitor: Monitor, spans: Spans, tracer: Tracer
) -> None:
    with tracer.start_as_current_span("request") as request:
        request.set_status(StatusCode.ERROR)
        tracer.start_span("query", links=[Link(request.get_span_context())]).end()

    assert monitor.flush()
    assert monitor.stats.produced == 0
    assert score_names(root_of(spans)) == set()
