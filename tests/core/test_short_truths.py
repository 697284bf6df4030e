"""What both judges make of short ground truths and short answers."""

from __future__ import annotations

import pytest

from claimspan import Chunk, RagRecord, evaluate
from claimspan.judges import Judge, LexicalJudge
from claimspan.judges.local.judge import LocalJudge
from claimspan.judges.protocol import AnswerText
from claimspan.verdicts import Claim, Label

JUDGES = [LexicalJudge(), LocalJudge()]
CAPITAL = "What is the capital of France?"
PARKING = "Is it legal to park here overnight?"
TOWER = "When was the Eiffel Tower completed?"
SPENT = "What is the FY2018 capital expenditure amount (in USD millions) for 3M?"

# Question, response, ground truth.
RIGHT = [
    (CAPITAL, "The capital of France is Paris.", "Paris"),
    (CAPITAL, "The French capital city is Paris.", "Paris"),
    (CAPITAL, "Paris", "Paris"),
    (CAPITAL, "Paris", "The capital of France is Paris."),
    (PARKING, "Yes, it is legal.", "Yes"),
    (PARKING, "Parking here overnight is legal.", "Yes"),
    (PARKING, "Yes", "Yes"),
    (TOWER, "1889", "1889"),
    (TOWER, "The Eiffel Tower was completed in 1889.", "1889"),
    ("How long is the warranty?", "The warranty lasts two years.", "two years"),
    ("Who wrote Hamlet?", "Hamlet was written by William Shakespeare.", "Shakespeare"),
    ("How many employees does Apple have?", "Apple employs 164,000 people.", "164,000"),
    ("Ist Parken hier erlaubt?", "Ja", "Ja"),
    ("Ali je parkiranje dovoljeno?", "Da, parkiranje je dovoljeno.", "Da"),
    (SPENT, "The FY2018 capital expenditure of 3M was $1,577 million.", "1577"),
    (SPENT, "$1,577", "$1577.00"),
    ("Is the contract fixed-term or permanent?", "The contract is permanent.", "Permanent"),
    ("Where is the company headquartered?", "The headquarters are in Seattle.", "Seattle"),
    ("Can I return items?", "You can return items within 14 days.", "Yes, within 14 days"),
]
WRONG = [
    (CAPITAL, "The capital of France is Lyon.", "Paris"),
    (CAPITAL, "Lyon", "Paris"),
    (CAPITAL, "Lyon", "The capital of France is Paris."),
    (PARKING, "No", "It is legal to park here overnight."),
    (PARKING, "No", "It is legal."),
    (PARKING, "It is legal.", "No"),
    (PARKING, "No.", "Yes"),
    (PARKING, "Parking overnight is not legal here.", "Yes"),
    (TOWER, "The Eiffel Tower was completed in 1887.", "1889"),
    (TOWER, "1887", "1889"),
    ("How long is the warranty?", "The warranty lasts three years.", "two years"),
    ("How many employees does Apple have?", "Apple employs 120,000 people.", "164,000"),
    ("Ist Parken hier erlaubt?", "Nein", "Ja"),
    (SPENT, "3M's FY2018 capital expenditure amount was $1,373 million.", "1577"),
    ("Is the contract fixed-term or permanent?", "fixed-term", "Permanent"),
    ("Can I return items?", "Items cannot be returned.", "Yes, within 14 days"),
]


async def labels(judge: Judge, question: str, text: str, reference: str) -> list[Label | None]:
    claims = await judge.extract_claims(text, question=question)
    matrix = await judge.check(claims, [AnswerText(reference)], question=question)
    return [row[0] for row in matrix.labels]


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
@pytest.mark.parametrize(("question", "response", "truth"), RIGHT)
async def test_a_right_answer_and_its_truth_entail_each_other(
    judge: Judge, question: str, response: str, truth: str
) -> None:
    assert set(await labels(judge, question, response, truth)) == {Label.ENTAILED}
    assert Label.ENTAILED in await labels(judge, question, truth, response)


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
@pytest.mark.parametrize(("question", "response", "truth"), WRONG)
async def test_another_answer_contradicts_the_truth(
    judge: Judge, question: str, response: str, truth: str
) -> None:
    assert Label.CONTRADICTED in await labels(judge, question, response, truth)
    assert Label.ENTAILED not in await labels(judge, question, truth, response)


@pytest.mark.parametrize("judge", JUDGES, ids=lambda judge: judge.name)
def test_a_right_short_answer_has_the_scores_that_a_person_expects(judge: Judge) -> None:
    record = RagRecord(
        query=CAPITAL,
        response="Paris",
        ground_truth="The capital of France is Paris.",
        chunks=(Chunk(id="1", text="Paris is the capital of France."),),
    )
    scores = evaluate(record, judge=judge).metrics
    assert (scores["precision"], scores["recall"], scores["f1"]) == (1.0, 1.0, 1.0)
    assert scores["faithfulness"] == 1.0


def test_of_a_long_answer_only_what_answers_the_question_is_entailed() -> None:
    response = "The capital of France is Paris. Its metro carries 4 million passengers a day."
    found = evaluate(
        RagRecord(query=CAPITAL, response=response, ground_truth="Paris", chunks=()),
        judge=LexicalJudge(),
    )
    matrix = found.matrices.response_vs_ground_truth
    assert matrix is not None
    assert [row[0] for row in matrix.labels] == [Label.ENTAILED, Label.NEUTRAL]


async def test_a_claim_shows_the_statement_and_keeps_what_was_written() -> None:
    claims = await LexicalJudge().extract_claims("Paris", question=CAPITAL)
    assert claims == [Claim(text="The capital of France is Paris.", sentence="Paris")]


async def test_a_short_answer_before_its_reasons_is_a_claim_of_its_own() -> None:
    claims = await LexicalJudge().extract_claims(
        "No. The city forbids it from 10 pm on.", question=PARKING
    )
    assert [claim.text for claim in claims] == [
        "It is not legal to park here overnight.",
        "The city forbids it from 10 pm on.",
    ]


async def test_a_faq_entry_about_something_else_does_not_answer_by_its_yes() -> None:
    claims = [Claim(text="You can get a refund.")]
    matrix = await LexicalJudge().check(
        claims, ["Yes, subscriptions may be cancelled any time."], question="Can I get a refund?"
    )
    assert matrix.labels[0][0] is Label.NEUTRAL
