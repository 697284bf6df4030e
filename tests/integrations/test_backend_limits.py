"""What receivers refuse, delay and decide, and what becomes of scores there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from claimspan_tracing.providers.exporters import span_exporters

from backend_rules import RULES, Sampled, Shown, evaluations_of, tail_sampling
from otlp_receiver import Answer, Request, receiver, spans_in
from pipelines import Driver, Passage, Recipe
from processes import run_python
from sent_ways import DRIVERS, GatedJudge, asked, sending
from support import MonitorFactory, ScriptedJudge, Spans

MIB = 1024 * 1024
GRPC_LIMIT = 4 * MIB
"""``max_recv_msg_size_mib`` of the Collector's gRPC receiver, and the default of gRPC itself."""

BATCH = 512
"""``OTEL_BSP_MAX_EXPORT_BATCH_SIZE`` by default."""

CLAIMS = tuple(f"claim {n} {'x' * 1200}" for n in range(50))
LARGEST = Recipe(
    passages=[
        Passage(f"{CLAIMS[n % 50]} {'y' * 64 * 1024}", f"{'an-id' * 8}-{n}", 0.5)
        for n in range(100)
    ],
    answer=". ".join(CLAIMS),
)
"""100 chunks of 64 KiB, and 50 claims: more than is kept of one record."""

parametrize_drivers = pytest.mark.parametrize("make", DRIVERS, ids=lambda make: make().name)


def scored(shown: Sequence[Shown]) -> list[Shown]:
    """The spans that show a query's scores as a whole."""
    with_score = [s for s in shown if "claimspan.score.faithfulness" in s.attributes]
    return [s for s in with_score if s.attributes["openinference.span.kind"] != "LLM"]


@pytest.fixture(params=DRIVERS, ids=lambda make: make().name)
def full_batch(
    request: pytest.FixtureRequest, make_monitor: MonitorFactory, spans: Spans
) -> list[ReadableSpan]:
    """As many spans as a batch of the SDK has, of queries as large as we write them."""
    make: Callable[[], Driver] = request.param
    monitor = make_monitor(hold_seconds=60.0)
    with asked(make(), monitor, LARGEST):
        assert monitor.flush(60)
    return [*spans.all] * (BATCH // 4)


def test_a_full_batch_is_sent_in_requests_that_receivers_take(
    full_batch: list[ReadableSpan],
) -> None:
    with receiver(max_bytes=GRPC_LIMIT) as received:
        (exporter,) = span_exporters(received.url, None)
        result = exporter.export(full_batch)
        exporter.shutdown()

    assert result is SpanExportResult.SUCCESS
    assert sum(received.sizes) > 3 * GRPC_LIMIT
    assert max(received.sizes) < GRPC_LIMIT
    assert len(received.spans) == len(full_batch) == BATCH
    # Not one request a span either: most of the room is used.
    assert len(received.sizes) < 2 * sum(received.sizes) / GRPC_LIMIT


def test_after_a_request_that_fails_the_rest_of_its_batch_is_not_tried(
    full_batch: list[ReadableSpan],
) -> None:
    with receiver() as received:
        received.answers.extend([Answer(), Answer(400, keeps=False)])
        (exporter,) = span_exporters(received.url, None)
        result = exporter.export(full_batch)
        exporter.shutdown()

    assert result is SpanExportResult.FAILURE
    assert len(received.sizes) == 2


@parametrize_drivers
def test_a_backend_that_is_busy_and_then_away_gets_all_spans_once(
    make: Callable[[], Driver], tmp_path: Path
) -> None:
    with sending(tmp_path) as at:
        at.received.answers.extend([Answer(429, keeps=False), Answer(503, keeps=False)])
        monitor = at.monitor(ScriptedJudge())
        with asked(make(), monitor):
            assert monitor.flush(60)
            assert monitor.stats.export_failures == 0

        shown = RULES["jaeger"](at.received.requests)
        assert len(scored(shown)) == 1
        assert len(shown) == len(at.received.spans) == 4


def test_what_a_partial_success_leaves_out_is_not_sent_again(tmp_path: Path) -> None:
    with sending(tmp_path) as at:
        at.received.answers.append(Answer(rejected=1))
        monitor = at.monitor(ScriptedJudge(), spool=True)
        with asked(DRIVERS[0](), monitor):
            # OTLP: "The client MUST NOT retry the request"; the SDK does not read it at all.
            assert monitor.flush(60)

        assert len(at.received.spans) == 3


# --- the Collector's tail sampling ---


def is_low(span: Shown) -> bool:
    """A policy ``ottl_condition`` on our scores; ``numeric_attribute`` reads doubles as 0."""
    value = span.attributes.get("claimspan.score.faithfulness")
    return isinstance(value, float) and value <= 0.5


def is_server(span: Shown) -> bool:
    """A policy ``string_attribute`` on the span of the request."""
    return span.attributes.get("http.route") == "/ask"


@pytest.fixture(params=DRIVERS, ids=lambda make: make().name)
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Sequence[Request]:
    """What a query sends within a request whose own span is there before the scores are."""
    make: Callable[[], Driver] = request.param
    judge = GatedJudge()
    with sending(tmp_path) as at:
        monitor = at.monitor(judge)
        tracer = at.provider.get_tracer("the application's")
        with tracer.start_as_current_span("POST /ask", attributes={"http.route": "/ask"}):
            context = asked(make(), monitor)
            context.__enter__()
        at.provider.force_flush()
        judge.is_open = True
        assert monitor.flush(60)
        context.__exit__(None, None, None)
        return list(at.received.requests)


def seconds_until_ours(requests: Sequence[Request]) -> float:
    """From the first span of the trace to the first one of ours."""
    ours = [r.at for r in requests if any(s.name != "POST /ask" for s in spans_in(r.message))]
    return ours[0] - requests[0].at


def sampled(requests: Sequence[Request], wait: float, policy: Callable[[Shown], bool]) -> Sampled:
    (result,) = tail_sampling(requests, wait, policy).values()
    return result


def test_spans_held_longer_than_the_window_follow_the_decision_all_together(
    held: Sequence[Request],
) -> None:
    wait = seconds_until_ours(held) / 2

    kept, dropped = sampled(held, wait, is_server), sampled(held, wait, is_low)
    assert [span.name for span in kept.seen] == ["POST /ask"]
    assert len(kept.later) == 4
    assert len(kept.shown) == 5
    assert len(scored(kept.shown)) == 1
    # Its scores are low, and nobody has seen them when it is decided.
    assert dropped.shown == []


def test_a_window_longer_than_the_hold_decides_by_the_scores(held: Sequence[Request]) -> None:
    wait = 2 * (held[-1].at - held[0].at) + 1

    result = sampled(held, wait, is_low)
    assert result.later == []
    assert len(result.shown) == 5
    assert len(scored(result.shown)) == 1


@parametrize_drivers
def test_a_query_without_an_outer_span_is_decided_by_its_scores_however_long_it_was_held(
    make: Callable[[], Driver], tmp_path: Path
) -> None:
    judge = GatedJudge()
    with sending(tmp_path) as at:
        monitor = at.monitor(judge)
        with asked(make(), monitor):
            at.provider.force_flush()
            assert at.received.requests == []
            judge.is_open = True
            assert monitor.flush(60)

        # Its first span comes with its scores, so that no window is too short for it.
        (request,) = at.received.requests
        assert len(sampled([request], 0.001, is_low).shown) == 4


# --- log events ---

EVENTS = """
from opentelemetry._logs import set_logger_provider
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from sent_ways import DRIVERS, QUERY
from pipelines import Recipe
logs = LoggerProvider(shutdown_on_exit=False)
logs.add_log_record_processor(SimpleLogRecordProcessor(OTLPLogExporter(os.environ["LOGS"])))
set_logger_provider(logs)
provider = configure(endpoint=os.environ["TRACES"])
monitor = Monitor(ScriptedJudge(), sample=1.0, tracer_provider=provider, hold_seconds=60)
for make in DRIVERS:
    driver = make()
    detach = driver.attach(monitor)
    driver.build(Recipe()).run(QUERY)
    detach()
print(monitor.flush(60))
"""


def test_each_score_is_one_log_event_on_the_root_of_its_query(tmp_path: Path) -> None:
    with receiver() as received:
        ended = run_python(EVENTS, tmp_path, LOGS=received.logs_url, TRACES=received.url)

        assert ended.words == ["True"], ended.stderr
        roots = [s for s in RULES["jaeger"](received.requests) if not s.parent]
        evaluations = evaluations_of(received.logs)
        n_scores = sum(map(len, evaluations.values()))
        assert len(roots) == len(DRIVERS)
        assert evaluations.keys() == {(root.trace_id, root.span_id) for root in roots}
        assert [scores["faithfulness"] for scores in evaluations.values()] == [0.5] * len(DRIVERS)
        assert len(received.logs) == n_scores
