"""A judge leaves undecided what it cannot see, which is a result and no failure."""

from __future__ import annotations

import asyncio

import pytest

from claimspan import Chunk, RagRecord, evaluate
from claimspan.errors import ConfigError
from claimspan.judges import CascadeJudge, LexicalJudge
from claimspan.judges.local.judge import LocalJudge
from claimspan.verdicts import UNSURE, Claim, Label

from scripted import ScriptedJudge

CHUNK = "The Danube rises in the Black Forest and flows for 2,850 km through ten countries."
DOUBTFUL = "The Danube crosses ten countries on its way."
SURE = "The Danube flows for 2,850 km through ten countries."


def record(response: str) -> RagRecord:
    chunks = (Chunk(id="k", text=CHUNK),)
    return RagRecord(query="What is the Danube?", response=response, chunks=chunks)


def test_what_words_do_not_tell_is_undecided_and_counted() -> None:
    found = evaluate(record(f"{SURE} {DOUBTFUL}"), judge=LexicalJudge())

    assert found.undecided_claims == 1
    assert found.undecided.keys() == {UNSURE}
    assert found.metrics["faithfulness"] == 1.0  # of the claim that is decided


def test_a_judge_that_is_sure_of_nothing_has_not_failed() -> None:
    found = evaluate(record(DOUBTFUL), judge=LexicalJudge())

    assert found.error is None
    assert found.undecided_claims == 1
    assert "faithfulness" not in found.metrics


def test_at_one_half_every_verdict_is_decided() -> None:
    found = evaluate(record(f"{SURE} {DOUBTFUL}"), judge=LexicalJudge(sure_from=0.5))

    assert found.undecided_claims == 0
    assert not found.undecided


def test_a_refusal_may_have_to_be_surer_than_a_pass() -> None:
    response = record(f"{SURE} The Danube flows for 1,200 km through ten countries.")

    passes_alone = evaluate(response, judge=LexicalJudge(sure_from=(0.5, 1.0)))
    refuses_alone = evaluate(response, judge=LexicalJudge(sure_from=(1.0, 0.5)))

    assert passes_alone.metrics["faithfulness"] == 1.0
    assert refuses_alone.metrics["faithfulness"] == 0.0
    assert passes_alone.undecided_claims == refuses_alone.undecided_claims == 1


LABORATORY = (
    "The laboratory is in Leeds. It is led by Priya Raman. It is closed in the first week of "
    "August. Smoking is forbidden in all rooms. Staff get 10 % off and managers 15 %."
)


def verdict_by_words(claim: str, *, reference: str = LABORATORY) -> Label | None:
    (label,) = asyncio.run(LexicalJudge().check([Claim(text=claim)], [reference])).merged
    return label


@pytest.mark.parametrize(
    "claim",
    [
        "The laboratory is in Leeds.",
        "The laboratory is led by Priya Raman.",
        "The laboratory is closed in the first week of August.",
        "Smoking is not allowed in all rooms.",
        "It is led by Priya Raman. It is closed in the first week of August.",
    ],
)
def test_words_pass_what_a_sentence_says_whole_with_those_that_it_leans_on(claim: str) -> None:
    assert verdict_by_words(claim) is Label.ENTAILED


@pytest.mark.parametrize(
    "claim",
    [
        "Priya Raman is in charge of the laboratory.",
        "Managers get 10 % off.",
        "The laboratory is led from Leeds by two directors.",
        "The staff of the laboratory have a holiday in August.",
    ],
)
def test_words_leave_open_whose_value_it_is_and_what_may_be_said_in_others(claim: str) -> None:
    assert verdict_by_words(claim) is None


@pytest.mark.parametrize(
    "claim",
    ["Staff get 20 % off.", "Smoking is allowed in all rooms.", "Bananas are rich in potassium."],
)
def test_words_refuse_what_is_changed_or_shares_no_word(claim: str) -> None:
    assert verdict_by_words(claim) not in (None, Label.ENTAILED)


@pytest.mark.parametrize("judge", [LexicalJudge(), LocalJudge()], ids=["lexical", "local"])
def test_a_response_and_its_ground_truth_leave_nothing_of_each_other_open(
    judge: LexicalJudge | LocalJudge,
) -> None:
    truth = "Two sisters lead the institute, which shuts every summer."
    found = evaluate(
        RagRecord(query="What is the laboratory?", response=LABORATORY, ground_truth=truth),
        judge=judge,
    )

    assert found.undecided_claims == 0
    assert {"precision", "recall"} <= found.metrics.keys()


def test_a_score_needs_half_of_its_verdicts() -> None:
    sure = record(f"{SURE} {DOUBTFUL}")
    doubtful = record(f"{SURE} {DOUBTFUL} The river passes through many lands.")

    assert evaluate(sure, judge=LexicalJudge()).metrics["faithfulness"] == 1.0
    found = evaluate(doubtful, judge=LexicalJudge())
    assert found.undecided_claims == 2
    assert "faithfulness" not in found.metrics
    assert found.undefined["faithfulness"].startswith("2 of 3 verdicts are undecided")


GERMAN = "Die Bibliothek öffnet um neun Uhr. Der Eintritt ist für Schüler frei."
REWORDED = "Ab neun Uhr kann man in die Bibliothek, und Schüler zahlen dort gar nichts."


def test_a_text_that_the_model_cannot_read_is_as_sure_as_words_are() -> None:
    claims = [Claim(text="Die Bibliothek öffnet um neun Uhr."), Claim(text=REWORDED)]

    by_words, local, decisive = (
        asyncio.run(judge.check(claims, [GERMAN])).merged
        for judge in (LexicalJudge(), LocalJudge(), LocalJudge(sure_from=0.5))
    )

    assert local == by_words == [Label.ENTAILED, None]
    assert None not in decisive


KEYS = (
    "A live key allows 600 calls a minute, while a test key is limited to 60 calls a minute. Keys "
    "can be renewed once a day."
)


def test_whose_value_it_is_among_several_is_passed_only_if_the_model_is_sure() -> None:
    of_another = Claim(text="With a test key you may make 600 calls a minute.")
    its_own = Claim(text="With a live key you may make 600 calls a minute.")

    matrix = asyncio.run(LocalJudge().check([of_another, its_own], [KEYS]))

    assert matrix[0][0] is None
    assert matrix[1][0] is not None
    assert matrix[1][0].label is Label.ENTAILED


def test_a_cascade_asks_the_strong_judge_for_exactly_what_the_cheap_one_leaves_open() -> None:
    strong = ScriptedJudge()
    judge = CascadeJudge(LexicalJudge(sure_from=0.7), strong)
    claims = [Claim(text=SURE), Claim(text=DOUBTFUL)]

    matrix = asyncio.run(judge.check(claims, [CHUNK]))

    assert matrix[0][0] is not None
    assert matrix[0][0].label is Label.ENTAILED
    assert matrix[0][0].entailed is not None
    assert matrix[1][0] is not None
    assert matrix[1][0].entailed is None  # the scripted judge gives labels alone


@pytest.mark.parametrize("judge", [LexicalJudge, LocalJudge])
@pytest.mark.parametrize(
    "sure_from",
    [0.4, 55, 1.01, float("nan"), "0.6", None, True, (0.5, 0.4), (0.5, None), (0.5, 0.6, 0.7), ()],
)
def test_what_is_no_share_from_one_half_to_one_is_refused_at_set_up(
    judge: type[LexicalJudge | LocalJudge], sure_from: float
) -> None:
    with pytest.raises(ConfigError, match="sure_from"):
        judge(sure_from=sure_from)
