"""Which values among the words of a claim a reference gives, changes or lacks."""

from __future__ import annotations

import time
from typing import Final

import pytest

from claimspan.judges import Judge, LexicalJudge, LocalJudge
from claimspan.quantities import StatedValues, read_values, value_conflicts
from claimspan.verdicts import Claim, Label

PASSAGE: Final = (
    "The library was opened on 12 June 1987 and has 45 reading rooms. "
    "Loans are free for 28 days; a late book costs €0.50 per day. "
    "It is open until 3 pm on Saturdays. In 2019 about a quarter of its visitors were students. "
    "The archive next door has 60 rooms and was not rebuilt in 1999. "
    "The road to the library is 5 km long, and the building cost 12.5 million euros."
)


def kinds(claim: str, reference: str = PASSAGE) -> set[str]:
    return {
        conflict.kind for conflict in value_conflicts(StatedValues(claim), StatedValues(reference))
    }


@pytest.mark.parametrize(
    "claim",
    [
        "The library was opened on June 12, 1987 and has forty-five reading rooms.",
        "Loans are free for four weeks.",
        "It is open until 15:00 on Saturdays.",
        "In 2019 about 25 % of its visitors were students.",
        "The building cost €12,500,000.",
        "The road to the library is 5,000 m long.",
        "The library was opened in June 1987.",
        "The library has one archive next door.",
        "The archive was not rebuilt in 1999.",
        "The library has over 40 reading rooms.",
        "See page 12 of the guide.",
    ],
)
def test_a_value_in_another_form_and_what_may_be_counted_are_no_conflict(claim: str) -> None:
    assert kinds(claim) == set()


@pytest.mark.parametrize(
    ("claim", "kind"),
    [
        ("The library was opened on 12 May 1987 and has 45 reading rooms.", "date"),
        ("The library was opened on 12 June 1986 and has 45 reading rooms.", "date"),
        ("The library has 46 reading rooms.", "number"),
        ("Loans are free for 28 weeks.", "unit"),
        ("It is open until 5 pm on Saturdays.", "date"),
        ("The road to the library is 5 miles long.", "unit"),
        ("The building cost 12.5 billion euros.", "unit"),
        ("The library employs 731 people.", "missing"),
    ],
)
def test_another_value_is_found_by_its_kind(claim: str, kind: str) -> None:
    assert kind in kinds(claim)


def test_a_value_that_stands_elsewhere_does_not_hide_a_change_in_a_copied_sentence() -> None:
    assert kinds("The library was opened on 12 June 1987 and has 60 reading rooms.") == {"number"}
    assert kinds("The archive next door has 60 rooms and was not rebuilt in 1987.") == {"date"}


def test_a_sentence_of_the_reference_has_no_conflict_with_it() -> None:
    for sentence in PASSAGE.split(". "):
        assert kinds(f"Indeed, {sentence}.") == set()


@pytest.mark.parametrize("judge", [LexicalJudge(), LocalJudge()])
@pytest.mark.parametrize(
    "claim",
    [
        "The library was opened on 12 June 1978 and has 45 reading rooms.",
        "The library was opened on 12 March 1987 and has 45 reading rooms.",
        "The archive next door has 70 rooms and was not rebuilt in 1999.",
        "Loans are free for 28 weeks; a late book costs €0.50 per day.",
        "The road to the library is 5 km long, and the building cost 125 million euros.",
    ],
)
async def test_no_judge_calls_a_copied_sentence_with_another_value_entailed(
    judge: Judge, claim: str
) -> None:
    matrix = await judge.check([Claim(text=claim)], [PASSAGE])

    assert matrix.labels[0][0] is not Label.ENTAILED


def test_a_long_text_is_read_in_linear_time() -> None:
    def seconds(text: str) -> float:
        start = time.process_time()
        read_values(text)
        return time.process_time() - start

    seconds(PASSAGE)
    short, long = seconds(PASSAGE * 50), seconds(PASSAGE * 200)

    assert long < 12 * short + 0.05
