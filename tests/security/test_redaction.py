"""A user's redactor: when it runs, for whom, and what happens where it fails. Rows P2 and P3."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from claimspan.errors import ConfigError, JudgeUnavailableError
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Decision, Facts, Finished, Job, Monitor, PiiRedactor
from claimspan_tracing.dispatch.dispatcher import Deliver
from claimspan_tracing.guard import Guard
from claimspan_tracing.job import JobKey
from claimspan_tracing.monitor import MonitorOptions
from claimspan_tracing.redact.redaction import FAILED, MAX_HANGING, Redaction
from claimspan_tracing.text import MAX_TEXT_BYTES

from lc_pipelines import Shelf, rag_chain
from support import MonitorFactory, ScriptedJudge, Spans, attributes

Redactor = Callable[[str], str]


class Kept:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []

    def write(self, finished: Finished) -> None:
        self.finished.append(finished)

    @property
    def job(self) -> Job:
        return self.finished[-1].job


class Elsewhere:
    """A dispatcher to another process, as far as its jobs are concerned."""

    def start(self, deliver: Deliver) -> None:
        self.deliver = deliver

    def dispatch(self, job: Job) -> bool:
        return False

    def withdraw(self, key: JobKey) -> bool:
        return True

    def stop(self, timeout: float) -> None:
        pass


@pytest.fixture
def sink() -> Kept:
    return Kept()


def ask(
    monitor: Monitor, query: str = "q", *, chunk: str = "Answer to q", metadata: object = None
) -> None:
    found = [Document(id="a", page_content=chunk, metadata={"note": metadata})]
    config = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
    rag_chain(retriever=Shelf(documents=found)).invoke(query, config)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a config may be any mapping
    monitor.flush()
    assert monitor.stats.pending == 0


def status(spans: Spans) -> object:
    return attributes(spans.roots[-1])["claimspan.evaluation.status"]


def raises_on(word: str) -> Redactor:
    def redact(text: str) -> str:
        if word in text:
            raise ValueError(f"cannot read {text}")
        return text.replace("secret", "[s]")

    return redact


# --- when it fails ---


def test_a_text_on_which_the_redactor_raises_is_left_out_and_the_others_stay(
    make_monitor: MonitorFactory, spans: Spans, sink: Kept
) -> None:
    monitor = make_monitor(redact=raises_on("BAD"), sinks=[sink])
    make_monitor.expected_faults = 1

    ask(monitor, "q", chunk="Answer to q. A secret", metadata="BAD secret")

    assert sink.job.record.chunks[0].metadata == {"note": FAILED}
    assert sink.job.record.chunks[0].text == "Answer to q. A [s]"
    assert status(spans) == "evaluated"
    assert attributes(spans.root)["claimspan.redaction.failed"] == 1


def test_a_record_that_the_judge_cannot_read_is_counted_and_not_judged(
    make_monitor: MonitorFactory, spans: Spans, sink: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    judge = ScriptedJudge()
    monitor = make_monitor(redact=raises_on("BAD"), sinks=[sink], judge=judge)

    ask(monitor, "q", chunk="BAD secret")
    ask(monitor, "q")
    make_monitor.expected_faults = monitor.stats.faults

    first, second = (attributes(root) for root in spans.roots)
    assert first["claimspan.evaluation.status"] == "judge_error"
    assert first["claimspan.evaluation.reason"] == "the redactor failed"
    assert "BAD secret" not in f"{[s.to_json() for s in spans.all]}{caplog.text}{judge.checked}"
    assert second["claimspan.evaluation.status"] == "evaluated"
    assert "claimspan.redaction.failed" not in second
    assert (monitor.stats.produced, monitor.stats.evaluated) == (2, 1)
    assert monitor.stats.faults >= 1


def test_a_redactor_that_returns_no_text_leaves_everything_out(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(redact=lambda text: None)  # type: ignore[arg-type,return-value] # pyright: ignore[reportArgumentType] - what is wrong about it

    ask(monitor, "the query")
    make_monitor.expected_faults = monitor.stats.faults

    assert "the query" not in "".join(span.to_json() for span in spans.all)
    assert attributes(spans.root)["input.value"] == FAILED
    assert status(spans) == "judge_error"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, RecursionError])
def test_whatever_a_redactor_raises_the_record_reaches_its_state(
    make_monitor: MonitorFactory, spans: Spans, error: type[BaseException]
) -> None:
    def redact(text: str) -> str:
        raise error

    monitor = make_monitor(redact=redact)

    ask(monitor)
    make_monitor.expected_faults = monitor.stats.faults

    assert status(spans) == "judge_error"


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def some_job(make_monitor: MonitorFactory, sink: Kept) -> Job:
    ask(make_monitor(sinks=[sink]), "first", chunk="second")
    return sink.job


def test_a_redactor_that_hangs_is_given_up_and_what_it_had_found_stays(
    make_monitor: MonitorFactory, sink: Kept, released: threading.Event
) -> None:
    def redact(text: str) -> str:
        if text == "second":
            released.wait(60)
        return text.upper()

    job, guard = some_job(make_monitor, sink), Guard()

    begin = time.monotonic()
    shown = Redaction(redact, seconds=0.3).apply(job, guard)

    assert time.monotonic() - begin < 10
    assert shown.record.query == "FIRST"
    assert shown.record.chunks[0].text == FAILED
    assert shown.redaction_failed > 0
    assert guard.faults == 1


def test_after_a_few_hung_calls_no_more_are_waited_for(
    make_monitor: MonitorFactory, sink: Kept, released: threading.Event
) -> None:
    def redact(text: str) -> str:
        released.wait(60)
        return text

    redaction, job = Redaction(redact, seconds=0.05), some_job(make_monitor, sink)
    for _ in range(MAX_HANGING):
        redaction.apply(job, Guard())
    threads = threading.active_count()

    shown = redaction.apply(job, Guard())

    assert shown.record.query == FAILED
    assert threading.active_count() <= threads


# --- when it runs ---


def test_the_redactor_sees_each_text_once_and_never_on_the_applications_thread(
    make_monitor: MonitorFactory, sink: Kept
) -> None:
    seen: Counter[str] = Counter()
    threads: set[int] = set()

    def redact(text: str) -> str:
        seen[text] += 1
        threads.add(threading.get_ident())
        return text

    # Its scores are late for nothing: what the judge says is redacted, too, and counted apart.
    ask(make_monitor(redact=redact, sinks=[sink], sample=0.0), "the query", chunk="the chunk")

    assert seen["the query"] == seen["the chunk"] == 1
    assert set(seen.values()) == {1}
    assert threading.get_ident() not in threads


def test_ids_and_reasons_are_redacted_as_well(
    make_monitor: MonitorFactory, spans: Spans, sink: Kept
) -> None:
    class Quotes:
        def decide(self, facts: Facts) -> Decision:
            return Decision(sampled=True, rate=1.0, reason="user secret@example.com")

    monitor = make_monitor(redact="pii", sample=Quotes(), sinks=[sink])

    ask(monitor)

    assert attributes(spans.root)["claimspan.sample.reason"] == "user [email]"
    assert sink.job.decision is not None
    assert sink.job.decision.reason == "user [email]"


def test_what_is_cut_leaves_no_half_of_a_secret(make_monitor: MonitorFactory, sink: Kept) -> None:
    address = "jan.novak@example.com"
    monitor = make_monitor(redact="pii", sinks=[sink])
    for place in (1, 10, 20):
        text = "x " * ((MAX_TEXT_BYTES - place) // 2) + address + " and more" * 5000

        ask(monitor, chunk=text[place % 2 :])

        kept = sink.job.record.chunks[0].text
        assert len(kept) > MAX_TEXT_BYTES - 100
        assert "jan" not in kept


def test_many_secrets_before_the_cut_bring_no_half_of_one_into_the_text(
    make_monitor: MonitorFactory, sink: Kept
) -> None:
    monitor = make_monitor(redact="pii", sinks=[sink])
    many = " ".join(f"jan.novak.the.{n:07}@department.example.com" for n in range(5000))

    ask(monitor, chunk=many)

    assert set(sink.job.record.chunks[0].text.split()) == {"[email]"}


@settings(max_examples=60)
@given(st.integers(0, 40), st.sampled_from(["a@b.co", "4111 1111 1111 1111", "+386 40 123 456"]))
def test_wherever_the_cut_falls_no_half_of_a_secret_is_left(shift: int, secret: str) -> None:
    text = "-" * (MAX_TEXT_BYTES - shift - 1) + " " + secret + " tail"

    kept = REDACTION.apply_to_text(text, Guard())

    assert kept is not None
    assert not any(part in kept for part in ("a@b", "4111", "+386", "123"))


REDACTION = Redaction(PiiRedactor())


# --- for whom ---


def test_the_judge_of_this_process_alone_may_see_raw_texts(
    make_monitor: MonitorFactory, spans: Spans, sink: Kept
) -> None:
    judge = ScriptedJudge()
    monitor = make_monitor(redact="pii", redact_for={"export"}, judge=judge, sinks=[sink])

    ask(monitor, "jan@example.com", chunk="Answer to jan@example.com")

    assert "Answer to jan@example.com" in judge.checked[0]
    (finished,) = sink.finished
    assert "jan@" not in finished.job.to_json() + finished.outcome.to_json()
    assert finished.outcome.evaluation is not None
    assert "[redacted]" in finished.outcome.evaluation.response_claims[0].text
    assert status(spans) == "evaluated"


def test_scores_that_come_late_are_redacted_too(
    make_monitor: MonitorFactory, spans: Spans, sink: Kept
) -> None:
    judge = ScriptedJudge(delay=0.6)
    monitor = make_monitor(
        judge=judge, sinks=[sink], redact="pii", redact_for={"export"}, hold_seconds=0.3
    )

    ask(monitor, "jan@example.com", chunk="Answer to jan@example.com")
    deadline = time.monotonic() + 30
    while len(sink.finished) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)

    assert [each.outcome.late for each in sink.finished] == [False, True]
    assert "jan@" not in "".join(span.to_json() for span in spans.all)
    assert "jan@" not in sink.finished[1].outcome.to_json()


REFUSED: list[tuple[dict[str, object], str]] = [
    ({"redact": "pii", "redact_for": {"judge"}}, "lacks 'export'"),
    ({"redact": "pii", "redact_for": []}, "lacks 'export'"),
    ({"redact": "pii", "redact_for": {"export", "sink"}}, "redact_for is"),
    ({"redact": "pii", "redact_for": "export"}, "redact_for is"),
    ({"redact_for": {"export"}}, "without redact"),
    ({"redact": "pii", "redact_for": {"export"}, "dispatch": Elsewhere()}, "dispatch"),
    ({"redact": "names"}, "give 'pii'"),
    ({"redact": 7}, "is of type int"),
    ({"capture_content": "no"}, "True or False"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_options_that_would_show_raw_texts_are_refused(
    options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        Monitor(ScriptedJudge(), **options)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - what is wrong about them


@pytest.mark.parametrize("value", ["NO_CONTENT", "false", "EVENT_ONLY", "NO-CONTENT"])
def test_the_environment_may_forbid_content(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)

    ask(make_monitor(), "the query")

    assert "input.value" not in attributes(spans.root)
    assert status(spans) == "evaluated"


@pytest.mark.parametrize("value", ["", "SPAN_ONLY", "span_and_event", "true"])
def test_the_environment_may_ask_for_the_content_that_is_captured_by_default(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", value)

    ask(make_monitor(), "the query")

    assert "input.value" in attributes(spans.root)


def test_the_environment_does_not_allow_what_the_option_forbids(
    make_monitor: MonitorFactory, spans: Spans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_AND_EVENT")

    ask(make_monitor(capture_content=False), "the query")

    assert "input.value" not in attributes(spans.root)


@pytest.mark.parametrize(
    ("options", "is_raw"),
    [
        (MonitorOptions(redact="pii"), False),
        (MonitorOptions(redact="pii", redact_for={"export"}), False),
        (MonitorOptions(redact="pii", capture_content=False), False),
        # The judge needs the texts of a record that is taken up again.
        (MonitorOptions(capture_content=False), True),
    ],
)
def test_the_spool_holds_redacted_texts_wherever_there_is_a_redactor(
    make_monitor: MonitorFactory, tmp_path: Path, options: MonitorOptions, is_raw: bool
) -> None:
    away = ScriptedJudge(error=JudgeUnavailableError("the endpoint refuses connections"))
    waiting = MonitorOptions(judge=away, spool=tmp_path / "spool.db", hold_seconds=0.2)
    monitor = make_monitor(**(options | waiting))

    ask(monitor, "jan@example.com", chunk="Answer to jan@example.com")

    assert monitor.stats.spooled == 1
    kept = b"".join(file.read_bytes() for file in tmp_path.glob("spool.db*"))
    assert (b"jan@example.com" in kept) == is_raw
    assert b"Answer to" in kept
