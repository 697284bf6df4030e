"""Providers whose spans may have fewer attributes, or shorter ones, than the SDK allows by default.

The SDK drops the oldest attributes of a span, and cuts texts wherever the limit is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import pytest
from langchain_core.documents import Document
from opentelemetry.sdk.trace import ReadableSpan

from claimspan.metrics import METRICS
from claimspan.testing import ScriptedJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.monitor import MonitorOptions
from claimspan_tracing.testing import InMemoryMonitor

from lc_pipelines import Shelf, rag_chain
from support import attributes, score_names

TRUTH: Final = {"q": "Answer to q. " + " ".join(f"Fact {n} is unknown." for n in range(9))}
ON_TIME: Final[MonitorOptions] = {}
LATE: Final[MonitorOptions] = {"judge": ScriptedJudge(delay_seconds=0.5), "hold_seconds": 0.1}
# The judge has labels alone, and reads each chunk on its own.
OF_LABELS: Final = set(METRICS) - {"groundedness", "soft_alignment"}


@pytest.fixture(autouse=True)
def limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "40")
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "100")


def spans_of(options: MonitorOptions) -> Mapping[str, ReadableSpan]:
    """The spans of a query with 20 documents and 10 facts, by their operation."""
    chunks = [
        Document(id=f"d{n}", page_content="Answer to q", metadata={"page": n, "score": 0.5})
        for n in range(20)
    ]
    truth: MonitorOptions = {"ground_truth": TRUTH, "metrics": "all"}
    with InMemoryMonitor(**(truth | options)) as monitor:
        rag_chain(Shelf(documents=chunks)).invoke(
            "q", {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        )
        monitor.only_record()
        return {span.name.partition(" ")[0]: span for span in monitor.spans()}


def indices(span: ReadableSpan, pattern: str) -> list[int]:
    """The numbers that the names of a span's attributes have."""
    found = (re.fullmatch(pattern, name) for name in attributes(span))
    return sorted(int(match[1]) for match in found if match)


def test_scores_and_state_are_whole_on_the_root() -> None:
    root = spans_of(ON_TIME)["invoke_workflow"]

    assert score_names(root) == OF_LABELS
    assert root.attributes is not None
    assert root.attributes["claimspan.evaluation.status"] == "evaluated"


def test_late_scores_are_whole_on_their_carrier() -> None:
    carrier = spans_of(LATE)["claimspan.evaluate"]

    assert score_names(carrier) == OF_LABELS
    assert carrier.dropped_attributes > 0


@pytest.mark.parametrize("options", [ON_TIME, LATE], ids=["on-time", "late"])
def test_every_span_but_a_full_root_keeps_its_kind(options: MonitorOptions) -> None:
    spans = dict(spans_of(options))
    spans.pop("invoke_workflow")

    kinds = {name: attributes(span).get("openinference.span.kind") for name, span in spans.items()}
    assert {kinds.pop("retrieval"), kinds.pop("chat")} == {"RETRIEVER", "LLM"}
    assert set(kinds.values()) == {"EVALUATOR"}


@pytest.mark.parametrize("options", [ON_TIME, LATE], ids=["on-time", "late"])
def test_the_first_documents_and_annotations_stay_and_the_last_ones_go(
    options: MonitorOptions,
) -> None:
    spans = spans_of(options)

    ids = indices(spans["retrieval"], r"retrieval\.documents\.(\d+)\.document\.id")
    assert 0 < len(ids) < 20
    assert ids == list(range(len(ids)))
    if options is LATE:
        named = indices(spans["claimspan.annotations"], r"evaluations\.(\d+)\.evaluation\.name")
        assert 0 < len(named) < len(METRICS)
        assert named == list(range(len(named)))
