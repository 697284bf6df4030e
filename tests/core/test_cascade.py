"""A cascade of two judges, and how the default judge is chosen."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from claimspan import Claim, Label, Verdict, VerdictMatrix
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import aevaluate
from claimspan.judges import (
    CascadeJudge,
    Judge,
    LexicalJudge,
    OpenAIJudge,
    SparseJudge,
    default_judge,
)
from claimspan.judges.cascade import Thresholds
from claimspan.judges.protocol import Cell

from judged import RECORD

E, N, C = Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED


class FixedJudge:
    """Reads p(entailed) from the text of the claim."""

    name = "fixed"
    version = "1"

    def __init__(self) -> None:
        self.asked: list[tuple[list[str], list[str]]] = []

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        return [Claim(text=part) for part in text.split()]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        self.asked.append(([c.text for c in claims], list(references)))
        return VerdictMatrix.of([[probable(float(c.text)) for _ in references] for c in claims])


def probable(p: float) -> Verdict:
    return Verdict(label=E if p >= 0.5 else N, entailed=p, neutral=1 - p, contradicted=0.0)


class SparseStrongJudge(FixedJudge):
    """Contradicts every claim, and records the cells that it is asked for."""

    name = "strong"

    def __init__(self) -> None:
        super().__init__()
        self.cells: set[Cell] = set()

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        self.cells |= set(cells)
        wrong = Verdict(label=C)
        rows = [
            [wrong if (i, j) in cells else None for j in range(len(references))]
            for i in range(len(claims))
        ]
        return VerdictMatrix.of(rows, len(references))


def claims_of(*texts: str) -> list[Claim]:
    return [Claim(text=text) for text in texts]


THRESHOLDS = Thresholds(low=0.2, high=0.8)


async def test_the_strong_judge_is_asked_only_where_the_cheap_one_is_unsure() -> None:
    strong = SparseStrongJudge()
    cascade = CascadeJudge(FixedJudge(), strong, thresholds=THRESHOLDS)

    matrix = await cascade.check(claims_of("0.1", "0.2", "0.5", "0.79", "0.8"), ["a", "b"])

    assert strong.cells == {(2, 0), (2, 1), (3, 0), (3, 1)}
    assert [row[0] for row in matrix.labels] == [N, N, C, C, E]


async def test_a_judge_of_whole_matrices_is_asked_for_the_smallest_one() -> None:
    strong = FixedJudge()
    cascade = CascadeJudge(FixedJudge(), strong, thresholds=THRESHOLDS)

    await cascade.check_cells(claims_of("0.1", "0.5"), ["a", "b", "c"], {(0, 0), (1, 1)})

    assert strong.asked == [(["0.5"], ["b"])]


async def test_a_cheap_judge_without_probabilities_is_never_sure() -> None:
    class LabelJudge(FixedJudge):
        async def check(
            self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
        ) -> VerdictMatrix:
            return VerdictMatrix.of([[Verdict(label=E) for _ in references] for _ in claims])

    matrix = await CascadeJudge(LabelJudge(), SparseStrongJudge()).check(claims_of("1"), ["a"])

    assert matrix.labels == [[C]]


async def test_a_label_against_its_own_probability_does_not_stand() -> None:
    verdict = Verdict(label=N, entailed=0.4, neutral=0.5, contradicted=0.1)

    assert not Thresholds(low=0.1, high=0.4).accepts(verdict)
    assert Thresholds(low=0.4, high=0.6).accepts(verdict)
    assert not Thresholds(low=0.9, high=0.9).accepts(probable(0.6))


async def test_a_cascade_that_is_sure_costs_nothing_more() -> None:
    strong = SparseStrongJudge()
    cascade = CascadeJudge(FixedJudge(), strong, thresholds=THRESHOLDS)

    await cascade.check(claims_of("0.1", "0.9"), ["a"])

    assert strong.cells == set()


async def test_a_cascade_evaluates_a_record() -> None:
    cascade = CascadeJudge(LexicalJudge(), LexicalJudge())

    evaluation = await aevaluate(RECORD, judge=cascade)

    assert isinstance(cascade, SparseJudge)
    assert evaluation.judge_name == "cascade(lexical,lexical)"
    alone = await aevaluate(RECORD, judge=LexicalJudge())
    # Its probabilities depend on the texts of a call, which are fewer in the second stage.
    by_label = [name for name in alone.metrics if name != "soft_alignment"]
    assert [evaluation.metrics[name] for name in by_label] == [alone.metrics[n] for n in by_label]
    assert evaluation.metrics.keys() == alone.metrics.keys()


def test_thresholds_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match="low is above high"):
        Thresholds(low=0.8, high=0.2)


# --- the default judge ---


@pytest.fixture
def no_choice(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("CLAIMSPAN_JUDGE", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_a_key_of_the_application_is_not_spent_unasked(no_choice: pytest.MonkeyPatch) -> None:
    no_choice.setenv("OPENAI_API_KEY", "sk-of-the-application")

    assert default_judge().name == "local"


def test_the_environment_opts_in(no_choice: pytest.MonkeyPatch) -> None:
    no_choice.setenv("OPENAI_API_KEY", "sk-of-the-application")
    no_choice.setenv("CLAIMSPAN_JUDGE", "openai:gpt-4o-mini")

    judge = default_judge()

    assert isinstance(judge, OpenAIJudge)
    assert isinstance(judge, Judge)
    assert judge.version.startswith("gpt-4o-mini/")


def test_an_explicit_choice_comes_before_the_environment(no_choice: pytest.MonkeyPatch) -> None:
    no_choice.setenv("CLAIMSPAN_JUDGE", "openai:gpt-4o-mini")

    assert default_judge("lexical").name == "lexical"


@pytest.mark.parametrize("choice", ["openai", "gpt-4o-mini", "lexical:x", ":"])
def test_a_choice_that_names_no_judge_is_refused(
    no_choice: pytest.MonkeyPatch, choice: str
) -> None:
    no_choice.setenv("CLAIMSPAN_JUDGE", choice)

    with pytest.raises(ConfigError, match=r"CLAIMSPAN_JUDGE=.* names no judge"):
        default_judge()


def test_opting_in_without_a_key_says_so(no_choice: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="needs a key: set OPENAI_API_KEY"):
        default_judge("openai:gpt-4o-mini")


def test_opting_in_takes_the_address_too(no_choice: pytest.MonkeyPatch) -> None:
    no_choice.setenv("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1")

    assert default_judge("openai:llama3.2").name == "openai"
