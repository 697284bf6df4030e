"""Scores that need probabilities, on the spans of a judge that gives them."""

from __future__ import annotations

import re
from typing import Final

import pytest

from claimspan.metrics import METRICS
from claimspan.testing import ScriptedJudge, entailed_if_contained
from claimspan.verdicts import Label, Verdict
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.monitor import MonitorOptions
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import rag_chain
from support import attributes, score_names

TRUTH: Final = {"q": "Answer to q. Nobody knows q."}


def graded(claim: str, reference: str) -> Verdict:
    """What the reference contains is entailed at 0.9; the rest at 0.1."""
    if entailed_if_contained(claim, reference) is Label.ENTAILED:
        return Verdict(label=Label.ENTAILED, entailed=0.9, neutral=0.1, contradicted=0.0)
    return Verdict(label=Label.NEUTRAL, entailed=0.1, neutral=0.9, contradicted=0.0)


@pytest.mark.parametrize(
    ("options", "span_name"),
    [
        (MonitorOptions(judge=ScriptedJudge(graded)), "invoke_workflow"),
        (
            MonitorOptions(judge=ScriptedJudge(graded, delay_seconds=0.3), hold_seconds=0.1),
            "claimspan.evaluate",
        ),
    ],
    ids=["on-time", "late"],
)
def test_a_judge_with_probabilities_has_every_score_on_its_span(
    options: MonitorOptions, span_name: str
) -> None:
    truth: MonitorOptions = {"ground_truth": TRUTH, "metrics": "all"}
    with InMemoryMonitor(**(truth | options)) as monitor:
        rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        scores = monitor.only_record().scores
        spans = {span.name.split()[0]: span for span in monitor.spans()}

    # One fact at 0.9 and one at 0.1: 2E / (2E + 2C + N) of E = 1 and N = 1.
    assert scores["soft_alignment"] == pytest.approx(2 / 3)
    # This judge reads each chunk on its own.
    given = set(METRICS) - {"groundedness"}
    assert score_names(spans[span_name]) == given
    assert spans[span_name].dropped_attributes == 0
    if span_name == "claimspan.evaluate":
        annotated = attributes(spans["claimspan.annotations"])
        names = re.compile(r"evaluations\.\d+\.evaluation\.name")
        found = {value for key, value in annotated.items() if names.fullmatch(key)}
        assert found == given
