"""The life of a record: one state each, bounds kept, nothing lost without being counted."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterator, Sequence

import pytest
from langchain_core.runnables import RunnableLambda
from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY as SUPPRESSED,  # pyright: ignore[reportPrivateUsage] - what every instrumentation looks at
)
from opentelemetry.context import get_value
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from claimspan import Claim, VerdictMatrix
from claimspan.cost.usage import add_note
from claimspan.errors import ConfigError, GroundTruthError
from claimspan.judges import LexicalJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor, Stats
from claimspan_tracing.decide.status import DROPPED, Status

from lc_pipelines import Shelf, answer_to, rag_chain
from support import MonitorFactory, ScriptedJudge, Spans, attributes, ids, score_names


def run(monitor: Monitor, *queries: str) -> None:
    for query in queries or ("q",):
        rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def balance(stats: Stats) -> int:
    return (
        stats.evaluated + sum(stats.skipped.values()) + sum(stats.dropped.values()) + stats.pending
    )


def statuses(spans: Spans) -> list[object]:
    return [attributes(root)["claimspan.evaluation.status"] for root in spans.roots]


def test_the_books_balance_while_records_are_pending_and_after(
    make_monitor: MonitorFactory,
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=0.1), sample=0.5)

    seen: list[Stats] = []
    for i in range(40):
        run(monitor, f"q{i}")
        seen.append(monitor.stats)
    assert monitor.flush(30)
    seen.append(monitor.stats)

    assert [stats.produced for stats in seen] == [*range(1, 41), 40]
    assert all(balance(stats) == stats.produced for stats in seen)
    assert seen[-1].pending == 0
    assert any(stats.pending for stats in seen)


def test_a_full_queue_refuses_the_newest_and_says_so_on_its_span(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=0.3), max_queue_records=2)

    run(monitor, "first", "second", "third", "fourth")

    assert statuses(spans) == ["queue_full", "queue_full"]
    assert [attributes(r)["claimspan.sample.rate"] for r in spans.roots] == [1.0, 1.0]
    assert not monitor.flush()  # something was lost
    assert monitor.stats.dropped == {"queue_full": 2}
    assert monitor.stats.evaluated == 2


def test_the_room_of_a_finished_record_is_given_back(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor(max_queue_records=1)

    for i in range(5):
        run(monitor, f"q{i}")
        assert monitor.flush()

    assert monitor.stats.evaluated == 5


def test_the_queue_is_bounded_by_the_size_of_the_chunks_too(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(max_queue_bytes=20)

    run(monitor)

    assert statuses(spans) == ["queue_full"]


class Foreigner(LexicalJudge):
    """A judge that says that it decides otherwise than usual."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        claims = await super().extract_claims(text, question=question)
        add_note("not English", 2 * len(claims))
        return claims


@pytest.mark.parametrize(
    ("judge", "notes"), [(Foreigner(), ("not English: 2",)), (LexicalJudge(), None)]
)
def test_what_a_judge_notes_stands_on_the_root_and_is_absent_where_it_notes_nothing(
    make_monitor: MonitorFactory, spans: Spans, judge: LexicalJudge, notes: object
) -> None:
    monitor = make_monitor(judge=judge)

    run(monitor)
    assert monitor.flush()

    assert attributes(spans.root).get("claimspan.judge.notes") == notes


def test_when_the_judge_takes_too_long_the_spans_go_first_and_the_scores_follow_on_a_carrier(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=0.4), hold_seconds=0.2)

    run(monitor)
    while not spans.roots:
        time.sleep(0.01)
    before = {span.name for span in spans.all}
    monitor.flush()

    assert before == {"invoke_workflow RunnableSequence", "retrieval", "chat"}
    root, (carrier,), (annotated,) = spans.root, spans.evaluations, spans.annotations
    assert attributes(root)["claimspan.evaluation.status"] == "timeout"
    assert score_names(root) == set()
    assert score_names(carrier) == {"faithfulness", "contradicted_by_chunks"}
    assert attributes(annotated)["evaluations.0.evaluation.name"] == "faithfulness"
    assert attributes(annotated)["evaluations.0.evaluation.score"] == 0.5
    for span in (carrier, annotated):
        assert [link.context.span_id for link in span.links] == [ids(root).span_id]
        assert span.end_time == root.end_time  # the trace is not stretched
    assert monitor.stats.dropped == {"timeout": 1}
    assert monitor.stats.late == 1


def test_shutdown_ends_what_is_left_with_its_true_time(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=60))

    run(monitor, "a", "b")
    started = time.monotonic()
    assert not monitor.shutdown(timeout=0.3)

    assert time.monotonic() - started < 3
    assert statuses(spans) == ["shutdown", "shutdown"]
    assert {span.name for span in spans.all} == {
        "invoke_workflow RunnableSequence",
        "retrieval",
        "chat",
    }
    for root in spans.roots:
        assert root.end_time is not None
        assert root.start_time is not None
        assert root.end_time - root.start_time < 0.3e9
    assert monitor.stats.dropped == {"shutdown": 2}
    assert monitor.stats.pending == 0


def test_shutdown_is_not_held_up_by_a_judge_that_blocks_the_worker(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    class Blocking(ScriptedJudge):
        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            time.sleep(1.5)  # what no judge should do
            return await super().extract_claims(text, question=question)

    monitor = make_monitor(judge=Blocking())

    run(monitor)
    time.sleep(0.2)
    monitor.shutdown(timeout=0.3)

    assert statuses(spans) == ["shutdown"]


def test_shutdown_waits_for_what_can_still_be_evaluated(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=0.1))

    run(monitor)
    assert monitor.shutdown(timeout=5)
    assert monitor.shutdown()  # twice is fine

    assert statuses(spans) == ["evaluated"]


def test_traffic_after_shutdown_is_traced_and_counted(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor()
    monitor.shutdown()

    run(monitor)

    assert statuses(spans) == ["shutdown"]
    assert monitor.stats.dropped == {"shutdown": 1}


def test_a_trace_that_the_application_does_not_record_costs_nothing_and_is_counted() -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    judge = ScriptedJudge()
    monitor = Monitor(judge=judge, sample=1.0, tracer_provider=provider)

    run(monitor)
    assert monitor.flush()

    assert monitor.stats.skipped == {"not_sampled": 1}
    assert judge.checked == []


def test_flush_is_false_while_something_is_left(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=0.5))

    run(monitor)

    assert not monitor.flush(timeout=0.05)
    assert monitor.flush(timeout=5)


async def test_flushing_does_not_block_the_event_loop(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=0.3))
    run(monitor)

    flushing = asyncio.create_task(monitor.aflush())
    turns = 0
    while not flushing.done():
        await asyncio.sleep(0.01)
        turns += 1

    assert flushing.result()
    assert turns > 5


def test_who_waits_without_an_end_gives_infinity(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor()
    run(monitor, "q")

    assert monitor.flush(math.inf)
    assert monitor.shutdown(math.inf)


def test_several_records_are_before_the_judge_at_once(make_monitor: MonitorFactory) -> None:
    monitor = make_monitor(judge=ScriptedJudge(delay=0.2))

    run(monitor, *(f"q{i}" for i in range(8)))
    started = time.monotonic()
    assert monitor.flush(10)

    # One after the other they would take 8 x 2 calls x 0.2 s.
    assert time.monotonic() - started < 1.6


def test_a_run_that_never_ends_is_given_up_when_the_table_is_full(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "claimspan_tracing.capture.table.RunTable.__init__.__defaults__", (3, 3600.0)
    )
    monitor = make_monitor()
    handler = ClaimspanCallbackHandler(monitor)
    streams: list[Iterator[str]] = []
    for i in range(5):
        stream = rag_chain().stream(f"q{i}", {"callbacks": [handler]})
        next(stream)
        streams.append(stream)
    monitor.flush()

    assert statuses(spans) == ["abandoned", "abandoned"]
    reasons = {attributes(root)["claimspan.evaluation.reason"] for root in spans.roots}
    assert reasons == {"the run never ended"}


def test_a_judge_that_calls_sys_exit_does_not_end_the_worker(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    class Leaving(ScriptedJudge):
        async def check(
            self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
        ) -> VerdictMatrix:
            if self.checked == []:
                self.checked.append(())
                raise SystemExit(3)
            return await super().check(claims, references, question=question)

    monitor = make_monitor(judge=Leaving())

    run(monitor, "first")
    monitor.flush()
    run(monitor, "second")
    monitor.flush()

    assert statuses(spans) == ["judge_error", "evaluated"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sample": 1.5}, "sample is 1.5"),
        ({"sample": "0.5"}, "give a share between 0.0 and 1.0, or a sampler"),
        ({"hold_seconds": 0}, "hold_seconds is 0"),
        ({"hold_seconds": "30"}, "hold_seconds is '30'"),
        ({"max_queue_records": -1}, "max_queue_records is -1"),
        ({"max_queue_records": 0.5}, "max_queue_records is 0.5: give a whole number"),
        ({"max_queue_bytes": math.inf}, "max_queue_bytes is inf: give a whole number"),
        ({"judge": "gpt-4o"}, "the judge=.gpt-4o. names no judge"),
        ({"ground_truth": 7}, "ground_truth is of type int"),
    ],
)
def test_bad_options_are_refused_at_set_up(options: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Monitor(**options)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - wrong on purpose


@pytest.mark.parametrize("name", ["lexical", "Lexical"])
def test_a_judge_can_be_given_by_its_name(
    make_monitor: MonitorFactory, spans: Spans, name: str
) -> None:
    monitor = make_monitor(judge=name)
    run(monitor)
    assert monitor.flush()

    assert attributes(spans.root)["claimspan.judge.name"] == LexicalJudge().name


def test_a_missing_ground_truth_file_is_an_error_at_set_up() -> None:
    with pytest.raises(GroundTruthError, match="cannot read"):
        Monitor(ground_truth="no-such-file.jsonl")


def test_every_state_is_either_evaluated_skipped_or_dropped() -> None:
    assert set(Status) > DROPPED
    assert Status.EVALUATED not in DROPPED


def test_undecided_claims_are_counted_on_the_root(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(judge=ScriptedJudge(undecided="Invented"))

    run(monitor, "q")
    monitor.flush()

    root = attributes(spans.root)
    assert root["claimspan.claims.response.count"] == 2
    assert root["claimspan.claims.unknown.count"] == 1
    assert root["claimspan.score.faithfulness"] == 1.0


def test_each_claim_stands_on_the_evaluator_span_with_the_chunks_that_support_it(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(ground_truth={"q": "Answer to q"})

    run(monitor, "q")
    monitor.flush()

    claims = attributes(spans.one("EVALUATOR"))
    assert claims["claimspan.claim.0.text"] == "Answer to q"
    assert claims["claimspan.claim.0.label"] == "entailed"
    assert claims["claimspan.claim.0.supported_by"] == '["doc-q"]'
    assert claims["claimspan.claim.0.ground_truth_label"] == "entailed"
    assert claims["claimspan.claim.1.text"] == "Invented for q"
    assert claims["claimspan.claim.1.label"] == "neutral"
    assert claims["claimspan.ground_truth.claim.0.label"] == "entailed"
    assert claims["claimspan.claims.recorded"] == 3


def test_of_several_retrievers_each_gets_the_metrics_of_its_own_chunks(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(ground_truth={"q": "Answer to first. Answer to third"})

    def twice(_: str) -> str:
        Shelf().invoke("first")
        Shelf().invoke("second")
        return "Answer to first"

    RunnableLambda(twice).invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    monitor.flush()

    recalls = {
        attributes(span)["input.value"]: attributes(span)["claimspan.score.claim_recall"]
        for span in spans.of_kind("RETRIEVER")
    }
    assert recalls == {"first": 0.5, "second": 0.0}
    assert attributes(spans.root)["claimspan.score.claim_recall"] == 0.5


def test_the_judges_own_requests_stay_out_of_the_applications_traces(
    make_monitor: MonitorFactory,
) -> None:
    seen: list[object] = []

    class Watching(ScriptedJudge):
        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            seen.append(get_value(SUPPRESSED))
            return await super().extract_claims(text, question=question)

    monitor = make_monitor(judge=Watching())
    run(monitor)
    monitor.flush()

    assert seen == [True]
    assert get_value(SUPPRESSED) is None


def test_no_span_has_more_than_a_hundred_attributes_and_no_evidence_is_longer_than_two_kib(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    from langchain_core.documents import Document

    long = "word " * 2_000
    documents = [Document(id=str(i), page_content=f"{i} {long}") for i in range(300)]
    claims = ". ".join(f"claim {i} {long}" for i in range(60))
    monitor = make_monitor(ground_truth={"q": claims})
    chain = rag_chain(retriever=Shelf(documents=documents))

    chain.invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush(60)

    for span in spans.all:
        assert len(attributes(span)) <= 100
        assert span.dropped_attributes == 0
    for name, value in attributes(spans.one("EVALUATOR")).items():
        most = 8192 if name == "output.value" else 2048
        assert len(str(value).encode()) <= most, name
    found = attributes(spans.one("RETRIEVER"))
    texts = [str(v) for k, v in found.items() if k.endswith("document.content")]
    assert sum(len(text.encode()) for text in texts) <= 32 * 1024
    assert found["claimspan.chunks.count"] == 300
    assert found["claimspan.chunks.recorded"] == len(texts)
    assert found["input.value"] == "q"
    assert answer_to("q") in str(attributes(spans.root)["output.value"])
