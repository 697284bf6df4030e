"""A judge whose probabilities are read as people label one's own traffic."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan import Chunk, Claim, Label, RagRecord, Verdict, VerdictMatrix, evaluate
from claimspan.errors import ClaimspanError, ConfigError
from claimspan.judges import CalibratedJudge, LexicalJudge, SparseJudge, default_judge
from claimspan.judges.calibrated import JudgeCalibration
from claimspan.judges.protocol import Cell, ContextJudge

E, N, C = Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED
STRICT = JudgeCalibration(judge="lexical", threshold=0.9)
MILD = JudgeCalibration(judge="lexical", threshold=0.2)

shares = st.floats(0, 1)
calibrations = st.builds(
    JudgeCalibration,
    judge=st.just("lexical"),
    threshold=st.floats(0.001, 0.999),
    slope=st.floats(0.1, 1e6),
)


def verdict(label: Label, entailed: float, contradicted: float = 0.0) -> Verdict:
    neutral = 1 - entailed - contradicted
    return Verdict(label=label, entailed=entailed, neutral=neutral, contradicted=contradicted)


class ReadingJudge:
    """Reads p(entailed) from the text of the claim, also of all references together."""

    name = "lexical"
    version = "1"

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        return [Claim(text=part) for part in text.split()]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        rows = [[self._verdict(claim) for _ in references] for claim in claims]
        return VerdictMatrix.of(rows, len(references))

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        return await self.check(claims, references)

    async def check_context(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        context: Sequence[int],
        question: str | None = None,
    ) -> VerdictMatrix:
        return await self.check(claims, [*references, ""])

    def _verdict(self, claim: Claim) -> Verdict:
        entailed = float(claim.text)
        return verdict(E if entailed >= 0.5 else N, entailed)


@given(calibrations, shares, shares)
def test_a_verdict_stays_a_distribution_and_keeps_the_order(
    calibration: JudgeCalibration, one: float, other: float
) -> None:
    below, above = sorted((one, other))

    first, second = (calibration.verdict(verdict(N, p, (1 - p) / 3)) for p in (below, above))

    assert first is not None
    assert second is not None
    assert (first.entailed or 0.0) <= (second.entailed or 0.0)
    assert (first.label is E) == (below >= calibration.threshold)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (verdict(E, 0.8), N),
        (verdict(E, 0.5, 0.4), C),
        (verdict(C, 0.1, 0.8), C),
        (verdict(E, 0.95), E),
    ],
)
def test_a_claim_below_the_threshold_has_the_more_probable_of_the_other_labels(
    before: Verdict, after: Label
) -> None:
    found = STRICT.verdict(before)

    assert found is not None
    assert found.label is after


def test_a_verdict_without_probabilities_stays_as_it_is() -> None:
    bare = Verdict(label=E)

    assert STRICT.verdict(bare) is bare
    assert STRICT.verdict(None) is None


def test_a_threshold_moves_the_scores_of_an_evaluation() -> None:
    record = RagRecord(query="?", response="0.3 0.6 0.95", chunks=(Chunk(id="a", text="A."),))

    scores = [
        evaluate(record, judge=CalibratedJudge(ReadingJudge(), each)).metrics["faithfulness"]
        for each in (MILD, STRICT)
    ]

    assert scores == [pytest.approx(1.0), pytest.approx(1 / 3)]


def test_verdicts_on_and_by_a_ground_truth_stay_those_of_the_judge() -> None:
    record = RagRecord(
        query="?",
        response="0.6",
        ground_truth="0.7",
        chunks=(Chunk(id="a", text="A."), Chunk(id="b", text="B.")),
    )

    plain = evaluate(record, judge=ReadingJudge()).matrices
    found = evaluate(record, judge=CalibratedJudge(ReadingJudge(), STRICT)).matrices

    assert found.ground_truth_vs_chunks == plain.ground_truth_vs_chunks
    assert found.ground_truth_vs_response == plain.ground_truth_vs_response
    assert found.response_vs_ground_truth == plain.response_vs_ground_truth
    assert found.response_vs_chunks != plain.response_vs_chunks
    assert found.response_vs_context != plain.response_vs_context


async def test_it_has_the_calls_of_the_judge_behind_it() -> None:
    reading = CalibratedJudge(ReadingJudge(), STRICT)
    lexical = CalibratedJudge(LexicalJudge(), STRICT)

    assert isinstance(reading, ContextJudge)
    assert isinstance(lexical, SparseJudge) == isinstance(LexicalJudge(), SparseJudge)
    assert isinstance(lexical, ContextJudge) == isinstance(LexicalJudge(), ContextJudge)
    found = await reading.check_context([Claim(text="0.8")], ["a"], {(0, 1)}, context=[0])
    assert found.labels == [[N, N]]


def test_the_version_changes_with_the_calibration() -> None:
    versions = {CalibratedJudge(LexicalJudge(), each).version for each in (MILD, STRICT)}

    assert len(versions) == 2
    assert all(v.startswith(f"{LexicalJudge().version}+") for v in versions)


def test_a_calibration_of_another_judge_is_refused() -> None:
    other = JudgeCalibration(judge="local", threshold=0.5)

    with pytest.raises(ConfigError, match="made for the judge 'local', not for 'lexical'"):
        CalibratedJudge(LexicalJudge(), other)


def test_a_name_with_a_file_behind_it_is_a_calibrated_judge(tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(STRICT.model_dump_json())

    judge = default_judge(f"lexical@{path}")

    assert judge.name == "calibrated(lexical)"
    assert isinstance(judge, CalibratedJudge)
    assert judge.calibration == STRICT


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", json.dumps({"judge": "lexical", "threshold": 1.5})]
)
def test_a_file_that_is_no_calibration_is_refused_with_a_remedy(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(content)

    with pytest.raises(ClaimspanError, match="holds no calibration: give a calibration"):
        default_judge(f"lexical@{path}")
    with pytest.raises(ClaimspanError, match="cannot read"):
        default_judge(f"lexical@{tmp_path / 'none.json'}")
