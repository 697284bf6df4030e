"""What the log says by itself: once where it works, and once for each kind of failure."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from claimspan import Claim, VerdictMatrix
from claimspan.cost.budget import Budget
from claimspan.cost.usage import Usage, add_usage
from claimspan.errors import JudgeError
from claimspan.judges import LexicalJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor

from lc_pipelines import Script, rag_chain
from support import ScriptedJudge


def lines_of(monitor: Monitor, caplog: pytest.LogCaptureFixture, queries: int = 3) -> list[str]:
    """What is said at INFO and above while a chain is asked."""
    caplog.set_level(logging.INFO, "claimspan")
    handler = ClaimspanCallbackHandler(monitor)
    for i in range(queries):
        rag_chain().invoke(f"question {i}", {"callbacks": [handler]})
        monitor.flush(30)
    monitor.shutdown()
    return [each.getMessage() for each in caplog.records if each.name == "claimspan"]


def provider() -> TracerProvider:
    made = TracerProvider()
    made.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    return made


def test_a_set_up_that_works_says_so_in_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    monitor = Monitor(ScriptedJudge(), sample=1.0, tracer_provider=provider())
    first, second = lines_of(monitor, caplog)

    assert first == (
        "claimspan captures queries: spans go to the TracerProvider that the monitor was given; "
        "the judge is scripted, sample 100%, no ground truth"
    )
    assert second.startswith("claimspan wrote its first scores: ")
    assert "faithfulness" in second


def test_the_first_line_says_what_a_free_judge_misses(caplog: pytest.LogCaptureFixture) -> None:
    monitor = Monitor("lexical", sample=1.0, tracer_provider=provider())

    first = lines_of(monitor, caplog)[0]

    assert (
        "the judge is lexical, which misses paraphrase, sums, permission and whose value" in first
    )


@pytest.mark.parametrize(("sample", "told"), [(0.004, "0.4%"), (0.9996, "99.96%"), (0.0, "0%")])
def test_a_small_sample_does_not_read_as_none_and_a_large_one_not_as_all(
    caplog: pytest.LogCaptureFixture, sample: float, told: str
) -> None:
    monitor = Monitor(ScriptedJudge(), sample=sample, tracer_provider=provider())

    assert f"sample {told}," in lines_of(monitor, caplog, queries=1)[0]


def test_a_judge_that_always_fails_is_said_once_with_the_way_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    judge = ScriptedJudge(error=JudgeError("the endpoint answered with status 401"))
    lines = lines_of(Monitor(judge, sample=1.0, tracer_provider=provider()), caplog)

    (warning,) = (line for line in lines if "judge_error" in line)
    assert "status 401" in warning
    assert "claimspan doctor" in warning


def test_what_a_judge_of_others_raises_is_told_without_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    judge = ScriptedJudge(error=ValueError("text of a chunk"))
    lines = lines_of(Monitor(judge, sample=1.0, tracer_provider=provider()), caplog)

    assert any("judge_error" in line and "ValueError" in line for line in lines)
    assert "text of a chunk" not in caplog.text


def test_different_failures_are_each_told(caplog: pytest.LogCaptureFixture) -> None:
    judge = ScriptedJudge(error=JudgeError("first"))
    monitor = Monitor(judge, sample=1.0, tracer_provider=provider())
    handler = ClaimspanCallbackHandler(monitor)
    for reason in ("status 500", "status 502", "out of memory"):
        judge.error = JudgeError(reason)
        rag_chain().invoke("question", {"callbacks": [handler]})
        monitor.flush(30)
    monitor.shutdown()

    told = [each.getMessage() for each in caplog.records if "judge_error" in each.getMessage()]
    assert ["500" in told[0], "memory" in told[1]] == [True, True]
    assert len(told) == 2  # 500 and 502 are one kind


def test_an_answer_that_declines_is_not_said_to_stand_elsewhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "claimspan")
    monitor = Monitor(LexicalJudge(), sample=1.0, tracer_provider=provider())
    chain = rag_chain(model=Script(lines=["I don't know."]))
    chain.invoke("question", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    monitor.flush(30)
    monitor.shutdown()

    (line,) = (each.getMessage() for each in caplog.records if "no_answer" in each.getMessage())
    assert line == "claimspan: no scores, no_answer (the response declines to answer)"


def test_records_that_are_not_to_be_judged_are_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lines = lines_of(Monitor(ScriptedJudge(), sample=0.0, tracer_provider=provider()), caplog)

    assert len(lines) == 1
    assert "sample 0%" in lines[0]


def test_a_log_handler_that_raises_keeps_no_record_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Raising(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            raise RuntimeError

    logger = logging.getLogger("claimspan")
    monkeypatch.setattr(logger, "filters", [Raising()])
    monkeypatch.setattr(logger, "level", logging.INFO)
    monitor = Monitor(ScriptedJudge(), sample=1.0, tracer_provider=provider())
    rag_chain().invoke("question", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    monitor.flush(30)

    assert monitor.stats.evaluated == 1
    monitor.shutdown()


class PaidJudge(ScriptedJudge):
    """Takes a tenth of a cent for each check."""

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        add_usage(Usage(calls=1, cost_usd=0.001))
        return await super().check(claims, references, question=question)


def costs_told(monitor: Monitor, caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in lines_of(monitor, caplog) if "US dollars" in line]


def test_without_a_sample_every_query_is_evaluated() -> None:
    monitor = Monitor(ScriptedJudge(), tracer_provider=provider())
    handler = ClaimspanCallbackHandler(monitor)
    for i in range(20):
        rag_chain().invoke(f"question {i}", {"callbacks": [handler]})
    monitor.flush(30)

    assert monitor.stats.evaluated == 20
    monitor.shutdown()


def test_a_judge_that_is_paid_for_says_once_what_a_thousand_queries_cost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    (line,) = costs_told(Monitor(PaidJudge(), tracer_provider=provider()), caplog)

    assert "cost 1.00 US dollars" in line
    assert "sample=0.05" in line
    assert "budget=" in line


def test_the_cost_is_not_told_to_those_who_chose_a_sample_or_a_budget(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert costs_told(Monitor(PaidJudge(), sample=1.0, tracer_provider=provider()), caplog) == []
    bounded = Monitor(PaidJudge(), budget=Budget(per_day=5.0), tracer_provider=provider())
    assert costs_told(bounded, caplog) == []


def test_a_judge_that_costs_nothing_says_nothing_of_cost(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert costs_told(Monitor(LexicalJudge(), tracer_provider=provider()), caplog) == []
