"""Passages that sound like refusals say what they say; only answers decline."""

from __future__ import annotations

import pytest

from claimspan import Chunk, RagRecord, evaluate
from claimspan.judges import Judge, LexicalJudge
from claimspan.judges.local.judge import LocalJudge
from claimspan.verdicts import Claim, Label

JUDGES = [LexicalJudge(), LocalJudge()]
OPENERS = [
    "We cannot offer refunds after 14 days.",
    "The cause could not be determined.",
    "We do not provide legal advice.",
    "This document does not contain medical advice.",
    "The report does not include data from 2020.",
    "Unfortunately, we are unable to provide a replacement for opened items.",
    "We are sorry that your parcel is late.",
    "I'm sorry, we do not have a branch in Graz.",
    "It is not possible to determine the age of the painting.",
    "The data do not include part-time workers.",
    "Prices are not included in this document.",
    "The statements do not give the names of the donors.",
    "We could not find any defects in the bridge.",
    "One cannot know the hour of the eclipse from the table.",
    "Our support staff cannot access your password.",
    "The exact number of victims cannot be calculated.",
    "The source of the leak was not disclosed in the report.",
    "We don't give discounts on sale items.",
    "The filing does not disclose the salary of the director.",
    "Insurance details are not available from this source.",
]
REST = "Items must be sent back in their original box. Postage is paid by the customer."


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
@pytest.mark.parametrize("opener", OPENERS)
async def test_a_passage_entails_its_own_sentences_however_it_opens_or_ends(
    judge: Judge, opener: str
) -> None:
    claims = [Claim(text=opener), Claim(text="Items must be sent back in their original box.")]
    matrix = await judge.check(
        claims, [f"{opener} {REST}", f"{REST} {opener}"], question="What is the policy?"
    )
    assert {label for row in matrix.labels for label in row} == {Label.ENTAILED}


def test_an_evaluation_lets_the_response_decline_and_not_the_chunk() -> None:
    chunk = f"We cannot offer refunds after 14 days. {REST}"
    record = RagRecord(
        query="Can I get a refund?",
        response="I cannot find the answer. Please refer to the terms of the shop.",
        ground_truth="Items must be sent back in their original box.",
        chunks=(Chunk(id="1", text=chunk),),
    )
    scores = evaluate(record, judge=LexicalJudge()).metrics
    assert scores["claim_recall"] == 1.0
    assert scores["recall"] == 0.0
