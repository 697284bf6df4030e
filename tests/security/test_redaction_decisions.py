"""The redactor and what is decided: reasons of samplers, late evaluations, names of attributes.

Rows P2 and P3 of the reliability matrix.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry.context import Context
from opentelemetry.sdk.trace import Span, SpanProcessor
from opentelemetry.trace import SpanContext

from claimspan.judges import Judge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Decision, Facts
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import rag_chain
from support import ScriptedJudge

CANARY = "qxcanary"


def redact(text: str) -> str:
    return text.replace(CANARY, "[gone]")


def refuse(text: str) -> str:
    if CANARY in text:
        raise ValueError("cannot read it")
    return text


@dataclass
class Telling:
    """A sampler whose reason names the facts; it waits for a first judge or for a user."""

    first_judge: Judge | None = None
    needs_feedback: bool = True

    def decide(self, facts: Facts) -> Decision:
        if self.first_judge is not None and facts.first_scores is None:
            return Decision(sampled=True, rate=1.0, reason="not yet", undecided=True)
        sampled = self.first_judge is not None or facts.feedback is not None
        return Decision(sampled=sampled, rate=1.0, reason=f"tenant {CANARY}")


class Stamp(SpanProcessor):
    """Stamps an attribute whose name tells something."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        span.set_attribute(f"tenant.{CANARY}", 1)


def ask(monitor: InMemoryMonitor, query: str) -> None:
    rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})


def root_of(monitor: InMemoryMonitor) -> SpanContext:
    (root,) = [span.get_span_context() for span in monitor.spans() if span.parent is None]
    assert root is not None
    return root


def everything(monitor: InMemoryMonitor) -> str:
    kept = [each.job.to_json() + each.outcome.to_json() for each in monitor.records()]
    return "".join([*kept, *(span.to_json() for span in monitor.spans())])


@pytest.mark.parametrize("audiences", [{"judge", "export"}, {"export"}])
def test_the_reason_of_a_decision_after_the_first_judge_is_redacted(audiences: set[str]) -> None:
    sampler = Telling(first_judge=ScriptedJudge())
    with InMemoryMonitor(sample=sampler, redact=redact, redact_for=audiences) as monitor:  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - the literals are in the parameters
        ask(monitor, f"the {CANARY}")
        record = monitor.only_record()
        shown = everything(monitor)

    assert record.status == "evaluated"
    assert record.job.decision is not None
    assert record.job.decision.reason == "tenant [gone]"
    assert CANARY not in shown


@pytest.mark.parametrize("audiences", [{"judge", "export"}, {"export"}])
def test_the_reason_of_a_decision_after_feedback_is_redacted(audiences: set[str]) -> None:
    with InMemoryMonitor(sample=Telling(), redact=redact, redact_for=audiences) as monitor:  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - the literals are in the parameters
        ask(monitor, f"the {CANARY}")
        monitor.feedback(0.0, trace_id=root_of(monitor))
        record = monitor.only_record()
        shown = everything(monitor)

    assert (record.status, record.outcome.late) == ("evaluated", True)
    assert CANARY not in shown


def test_what_the_redactor_failed_on_is_not_judged_after_feedback() -> None:
    judge = ScriptedJudge()
    with InMemoryMonitor(judge=judge, sample=Telling(), redact=refuse) as monitor:
        ask(monitor, f"the {CANARY}")
        monitor.feedback(0.0, trace_id=root_of(monitor))
        record = monitor.only_record()

    assert record.status == "not_sampled"
    assert judge.checked == []


def test_the_names_of_what_others_have_stamped_are_redacted_in_the_spool(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    with InMemoryMonitor(
        judge=ScriptedJudge(delay=30), redact=redact, spool=path, hold_seconds=0.2
    ) as monitor:
        monitor.provider.add_span_processor(Stamp())
        ask(monitor, "q")
        monitor.flush(0.5)
        on_disk = [file.read_bytes() for file in tmp_path.iterdir()]

    assert any(b"tenant.[gone]" in content for content in on_disk)
    assert not any(CANARY.encode() in content for content in on_disk)
