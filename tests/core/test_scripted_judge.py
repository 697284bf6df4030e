"""The judge that is shipped for the tests of users."""

from __future__ import annotations

import time

import pytest

from claimspan import Chunk, Label, RagRecord, Verdict, evaluate
from claimspan.errors import JudgeError, LabelError
from claimspan.judges import Judge
from claimspan.testing import Check, Extraction, ScriptedJudge, entailed_if_contained

PARIS = "The tower is in Paris. It opened in 1889."
RECORD = RagRecord(
    query="Where is the tower?",
    chunks=(Chunk(id="a", text=PARIS),),
    response="The tower is in Paris. It is made of glass.",
)


def test_it_is_a_judge() -> None:
    assert isinstance(ScriptedJudge(), Judge)


def test_the_example_of_its_documentation_holds() -> None:
    assert evaluate(RECORD, judge=ScriptedJudge()).metrics["faithfulness"] == 0.5


async def test_the_claims_of_a_text_are_its_sentences() -> None:
    judge = ScriptedJudge()

    claims = await judge.extract_claims("It is 3.5 km away! Is it far?\nYes. No")

    assert [claim.text for claim in claims] == ["It is 3.5 km away", "Is it far", "Yes", "No"]
    assert await judge.extract_claims(" . \n") == []


@pytest.mark.parametrize(
    ("reference", "label"),
    [
        ("We know: it is open today.", Label.ENTAILED),
        ("We know not: it is open.", Label.CONTRADICTED),
        ("It is open.", Label.NEUTRAL),
    ],
)
def test_without_a_script_a_reference_entails_what_it_contains(
    reference: str, label: Label
) -> None:
    assert entailed_if_contained("it is open", reference) is label
    assert ScriptedJudge().verdict("it is open", reference) == Verdict(label=label)


def test_a_mapping_says_what_each_pair_is_and_the_rest_is_neutral() -> None:
    sure = Verdict(label=Label.ENTAILED, entailed=0.9, neutral=0.1, contradicted=0.0)
    judge = ScriptedJudge({("a", "r"): "Contradiction", ("b", "r"): None, ("c", "r"): sure})

    verdicts = [judge.verdict(claim, "r") for claim in "abcd"]

    contradicted, neutral = Verdict(label=Label.CONTRADICTED), Verdict(label=Label.NEUTRAL)
    assert verdicts == [contradicted, None, sure, neutral]


def test_a_callable_is_asked_for_each_pair() -> None:
    judge = ScriptedJudge(lambda claim, reference: "entailed" if "glass" in claim else None)

    evaluation = evaluate(RECORD, judge=judge)

    assert evaluation.response_vs_chunks is not None
    assert evaluation.response_vs_chunks.labels == [[None], [Label.ENTAILED]]


def test_every_call_is_recorded() -> None:
    judge = ScriptedJudge()

    evaluate(RECORD, judge=judge)

    claims = ("The tower is in Paris", "It is made of glass")
    assert judge.extractions == [Extraction(RECORD.response, RECORD.query)]
    assert judge.checks == [Check(claims, (PARIS,), RECORD.query)]


def test_it_fails_with_the_error_that_it_was_given() -> None:
    with pytest.raises(JudgeError, match="the endpoint is down"):
        evaluate(RECORD, judge=ScriptedJudge(error=JudgeError("the endpoint is down")))


def test_it_takes_as_long_as_it_was_told() -> None:
    started = time.perf_counter()

    evaluate(RECORD, judge=ScriptedJudge(delay_seconds=0.05))

    assert time.perf_counter() - started >= 0.1  # one extraction, one check


def test_a_slow_judge_is_stopped_at_the_deadline() -> None:
    with pytest.raises(JudgeError, match=r"no verdicts within 0\.05 s"):
        evaluate(RECORD, judge=ScriptedJudge(delay_seconds=60), deadline_seconds=0.05)


async def test_a_label_in_no_known_spelling_is_refused() -> None:
    judge = ScriptedJudge({("a", "r"): "maybe"})

    with pytest.raises(LabelError, match="'maybe' is not a label"):
        await judge.check(await judge.extract_claims("a"), ["r"])
