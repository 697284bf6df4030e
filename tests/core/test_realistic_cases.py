"""Short answers as RAG apps give them: the judges keep to what was measured on them.

``aside.jsonl`` was written without a look at the judges, and measured once before anybody read it;
``development.jsonl`` was read while they were built. The bounds lie some cases below the figures of
that day (lexical 98 of 130 and 86 of 120, local 113 and 103): a change of one word in a rule does
not break the build, and the loss of a whole kind of answer does.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from claimspan import Evaluation, evaluate_many
from claimspan.judges import LexicalJudge, LocalJudge

from realistic_answers import Case, is_right, read_cases

# Hundreds of answers cover no line that the tests of single rules do not.
pytestmark = pytest.mark.no_cover

CASES: Final = Path(__file__).parents[1] / "benchmarks" / "realistic"


JUDGES: Final[Mapping[str, type[LexicalJudge | LocalJudge]]] = {
    "LexicalJudge": LexicalJudge,
    "LocalJudge": LocalJudge,
}


@cache
def judged(judge: str, name: str) -> tuple[tuple[Case, Evaluation], ...]:
    """The cases of a set, with what a judge says of each that leaves nothing undecided."""
    cases = read_cases(CASES / f"{name}.jsonl")
    found = evaluate_many([case.record for case in cases], judge=JUDGES[judge](sure_from=0.5))
    return tuple(zip(cases, found, strict=True))


@pytest.mark.parametrize(
    ("judge", "name", "least"),
    [
        ("LexicalJudge", "development", 93),
        ("LexicalJudge", "aside", 81),
        ("LocalJudge", "development", 108),
        ("LocalJudge", "aside", 98),
    ],
)
def test_a_judge_is_right_on_as_many_realistic_answers_as_when_it_was_measured(
    judge: str, name: str, least: int
) -> None:
    found = judged(judge, name)

    right = sum(is_right(case, each) for case, each in found)
    assert len({case.id for case, _ in found}) == len(found) >= 120
    assert right >= least


@pytest.mark.parametrize(
    ("judge", "least_decided", "least_right"),
    [("LexicalJudge", 0.5, 0.94), ("LocalJudge", 0.75, 0.92)],
)
def test_what_a_judge_leaves_undecided_makes_what_it_decides_more_often_right(
    judge: str, least_decided: float, least_right: float
) -> None:
    every = judged(judge, "development") + judged(judge, "aside")
    cases = [case for case, _ in every]
    sure = evaluate_many([case.record for case in cases], judge=JUDGES[judge]())

    right = [is_right(case, each) for case, each in every]
    decided = [
        is_right(case, each)
        for case, each in zip(cases, sure, strict=True)
        if not each.undecided_claims
    ]
    assert sum(decided) / len(decided) > sum(right) / len(right)
    assert len(decided) > least_decided * len(cases)
    assert sum(decided) > least_right * len(decided)


def test_a_careful_reader_expects_each_of_the_outcomes_in_both_sets() -> None:
    for name in ("development", "aside"):
        cases = read_cases(CASES / f"{name}.jsonl")
        expected = {case.expect for case in cases}
        assert expected == {
            "supported", "unsupported", "contradicted", "no_claim", "right", "wrong",
        }  # fmt: skip
        assert all((case.chunk is None) != (case.ground_truth is None) for case in cases)
