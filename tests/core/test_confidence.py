"""How sure a judge is of its verdicts: per cell, per claim, and on the page that people read."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan import Chunk, RagRecord, evaluate
from claimspan.judges import LexicalJudge
from claimspan.report import ReportClaim, ReportEntry, render_report
from claimspan.report.evaluated import entry_of_evaluation
from claimspan.verdicts import Label, Verdict, VerdictMatrix

LABELS = (Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED)


def verdict(entailed: float, contradicted: float = 0.0) -> Verdict:
    probabilities = (entailed, 1 - entailed - contradicted, contradicted)
    label = LABELS[max(range(3), key=probabilities.__getitem__)]
    return Verdict(
        label=label,
        entailed=probabilities[0],
        neutral=probabilities[1],
        contradicted=probabilities[2],
    )


@pytest.mark.parametrize(
    ("row", "confidence", "entailed"),
    [
        ([verdict(0.9)], 0.9, 0.9),
        ([verdict(0.2), verdict(0.8)], 0.8, 0.8),
        ([verdict(0.1, 0.7), verdict(0.3)], 0.7, 0.3),
        ([verdict(0.1), verdict(0.45)], 0.55, 0.45),  # neutral: as sure as the least sure chunk
        ([verdict(0.9), None], 0.9, 0.9),
        ([verdict(0.1), None], None, 0.1),  # undecided as a whole
        ([Verdict(label=Label.ENTAILED)], None, None),
        ([Verdict(label=Label.NEUTRAL), verdict(0.1)], None, 0.1),
        ([], None, None),
    ],
)
def test_a_claim_is_as_sure_as_the_verdict_that_decides_it(
    row: list[Verdict | None], confidence: float | None, entailed: float | None
) -> None:
    matrix = VerdictMatrix.of([row], len(row))

    assert matrix.confidences == [pytest.approx(confidence) if confidence else None]
    assert matrix.entailments == [entailed]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_the_label_of_a_claim_has_a_confidence_of_at_least_a_third(values: list[float]) -> None:
    matrix = VerdictMatrix.of([[verdict(value) for value in values]])

    (confidence,) = matrix.confidences
    assert confidence is not None
    assert 1 / 3 <= confidence <= 1


def test_an_evaluation_shows_which_of_its_labels_are_close_calls() -> None:
    record = RagRecord(
        query="How long is the Drava?",
        chunks=(Chunk(id="a", text="The Drava is 725 km long and rises in Italy."),),
        response="The Drava is 725 km long.",
    )

    (claim,) = entry_of_evaluation(record, evaluate(record, judge=LexicalJudge())).response_claims

    assert claim.label == Label.ENTAILED
    assert claim.confidence == claim.entailed
    assert claim.confidence is not None
    assert claim.confidence > 0.6


def test_the_page_offers_the_least_sure_answers_only_where_that_is_known() -> None:
    def page(confidence: float | None) -> str:
        claim = ReportClaim(text="It is.", label=Label.ENTAILED, confidence=confidence)
        entry = ReportEntry(
            query="Is it?", response="It is.", response_claims=(claim,), status="evaluated"
        )
        return render_report([entry], progress=False)

    assert re.search("least sure first", page(0.52))
    assert "a close call: 0.52" in page(0.52)
    assert "sure: 0.93" in page(0.93)
    assert "a close call" not in page(0.93)
    assert not re.search("least sure first", page(None))
