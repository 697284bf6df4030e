"""What ``LocalJudge`` takes from words, where its small model would not notice the change."""

from __future__ import annotations

import asyncio

import pytest

from claimspan.judges import LexicalJudge
from claimspan.judges.local.judge import LocalJudge
from claimspan.verdicts import Claim, Label

JUDGES = (LexicalJudge(sure_from=0.5), LocalJudge())
PASSAGE = (
    "In the 2021 club final, Lena Brandt defeated Sofia Marek. The hall holds some 400 people. "
    "Each white tablet contains 500 mg of paracetamol. The guarantee runs for 24 months. "
    "Tickets are valid for one day. They are non-refundable. "
    "The court held that the clause was unenforceable. The concert begins at 3 pm."
)


def label(claim: str, judge: LexicalJudge | LocalJudge) -> Label:
    matrix = asyncio.run(judge.check([Claim(text=claim)], [PASSAGE]))
    verdict = matrix[0][0]
    assert verdict is not None
    return verdict.label


@pytest.mark.parametrize("judge", JUDGES, ids=["lexical", "local"])
@pytest.mark.parametrize(
    "claim",
    [
        "In the 2021 club final, Sofia Marek defeated Lena Brandt.",
        "Tickets are refundable.",
        "The court held that the clause was enforceable.",
        "Each white tablet contains 50 mg of paracetamol.",
        "The concert begins at 5 pm.",
    ],
)
def test_one_change_in_a_copied_sentence_is_never_entailed(
    claim: str, judge: LexicalJudge | LocalJudge
) -> None:
    assert label(claim, judge) is not Label.ENTAILED


@pytest.mark.parametrize("judge", JUDGES, ids=["lexical", "local"])
@pytest.mark.parametrize(
    "claim",
    [
        "In the 2021 club final, Lena Brandt defeated Sofia Marek.",
        "In the 2021 club final, Sofia Marek was defeated by Lena Brandt.",
        "Tickets are not refundable.",
        "Each white tablet contains 0.5 g of paracetamol.",
        "The guarantee runs for two years.",
        "The concert begins at 15:00.",
    ],
)
def test_the_same_in_another_form_is_entailed(claim: str, judge: LexicalJudge | LocalJudge) -> None:
    assert label(claim, judge) is Label.ENTAILED


def test_a_name_that_the_passage_lacks_is_not_entailed_by_the_words_beside_it() -> None:
    passage = "The old mill on the river was restored by the architect Jana Kovac in 1998."

    claims = [
        Claim(text="The old mill on the river was restored by Peter Holm."),
        Claim(text="The old mill on the river was restored by Jana Kovac."),
    ]
    matrix = asyncio.run(LexicalJudge().check(claims, [passage]))

    assert matrix.labels[0][0] is not Label.ENTAILED
    assert matrix.labels[1][0] is Label.ENTAILED
