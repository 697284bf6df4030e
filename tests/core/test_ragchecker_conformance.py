"""The numbers that the ragchecker 0.1.9 package returned, reproduced to the last bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import AliasChoices, BaseModel, Field

from claimspan.metrics import compute_metrics
from claimspan.results.rag_results import RAGCHECKER_METRICS

DATA = Path(__file__).parents[3] / "shared" / "data" / "ragchecker"
RAGCHECKER = RAGCHECKER_METRICS
TOLERANCE = 1e-12


Labels = list[str]


class Case(BaseModel):
    """One entry of either file: four label matrices and the metrics that were returned."""

    name: str = ""
    answer2response: Labels
    response2answer: Labels
    retrieved2response: list[Labels]
    retrieved2answer: list[Labels]
    metrics: dict[str, float]

    def computed(self) -> dict[str, float]:
        metrics = compute_metrics(
            response_vs_ground_truth=self.answer2response,
            ground_truth_vs_response=self.response2answer,
            response_vs_chunks=self.retrieved2response,
            ground_truth_vs_chunks=self.retrieved2answer,
            undefined="zero",
        )
        return {name: metrics[name] for name in RAGCHECKER}

    def returned(self) -> object:
        expected = {name: self.metrics[name] for name in RAGCHECKER}
        return pytest.approx(expected, abs=TOLERANCE, rel=0)  # pyright: ignore[reportUnknownMemberType] - pytest leaves approx untyped


class Cases(BaseModel):
    cases: list[Case] = Field(validation_alias=AliasChoices("cases", "results"))


def read(name: str) -> list[Case]:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{name} stands in the shared data, which is absent here")
    return Cases.model_validate_json(path.read_text(encoding="utf-8")).cases


def test_every_conformance_case_gives_what_ragchecker_gave() -> None:
    cases = read("conformance_ragchecker_0.1.9.json")

    wrong = [case.name for case in cases if case.computed() != case.returned()]

    assert len(cases) == 165
    assert wrong == []


def test_both_published_samples_give_what_ragchecker_published() -> None:
    samples = read("checking_outputs.json")

    assert len(samples) == 2
    for sample in samples:
        assert sample.computed() == sample.returned()
