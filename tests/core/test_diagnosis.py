"""The diagnosis of an answer blames a part only for what decided verdicts show."""

from __future__ import annotations

from itertools import product
from typing import Any, Final

import pytest

from claimspan import Claim, Evaluation, Label, Verdict, VerdictMatrix
from claimspan.evaluation.diagnosis import (
    Diagnosis,
    Fact,
    Findings,
    Part,
    Statement,
    diagnose,
    findings_of,
)
from claimspan.metrics.compute import matrices_of_labels
from claimspan.metrics.truths import Truth, Truths
from claimspan.verdicts import VerdictMatrices

TRUTHS: Final = (True, False, None)
LABELS: Final = (*Label, None)
CORRECT: Final = ((True, False), (False, False), (False, True), (None, False))
"""Whether the ground truth entails a claim, and whether it contradicts it."""
FOUND: Final = Fact(retrieved=True, answered=True)
MISSED: Final = Fact(retrieved=False, answered=False)
UNUSED: Final = Fact(retrieved=True, answered=False)
SUPPORTED: Final = Statement(Label.ENTAILED, correct=True)


def told(findings: Findings) -> str:
    return " ".join(diagnose(findings).sentences)


# --- over all combinations ---


def may_blame_retriever(statement: Statement, fact: Fact, *, abstained: bool) -> bool:
    known = statement.label is Label.NEUTRAL and statement.correct is True
    return known or fact.retrieved is False


def may_blame_generator(statement: Statement, fact: Fact, *, abstained: bool) -> bool:
    unsupported = statement.label is Label.NEUTRAL and statement.correct is not True
    noise = statement.label is Label.ENTAILED and statement.is_denied
    unused = fact.retrieved is True and (fact.answered is False or abstained)
    return unsupported or noise or unused or statement.label is Label.CONTRADICTED


@pytest.mark.parametrize("abstained", [False, True])
def test_a_part_is_blamed_where_and_only_where_a_decided_verdict_shows_it(abstained: bool) -> None:
    for label, (correct, denied), relevant, retrieved, answered in product(
        LABELS, CORRECT, TRUTHS, TRUTHS, TRUTHS
    ):
        statement = Statement(label, correct, denied, in_relevant=relevant)
        fact = Fact(retrieved, answered)
        found = diagnose(Findings([statement], [fact], abstained=abstained))
        blamed = (
            may_blame_retriever(statement, fact, abstained=abstained),
            may_blame_generator(statement, fact, abstained=abstained),
        )
        wanted = {(True, True): Part.BOTH, (True, False): Part.RETRIEVER}
        wanted[False, True] = Part.GENERATOR
        may_be_wrong = label is Label.ENTAILED and correct is None
        undecided = None in (label, retrieved, answered) or may_be_wrong or abstained
        neither = Part.UNKNOWN if undecided else Part.NONE
        assert found.part is wanted.get(blamed, neither), (statement, fact)
        assert found.sentences


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("abstained", [False, True])
def test_without_a_ground_truth_the_retriever_is_never_blamed(
    label: Label | None, abstained: bool
) -> None:
    found = diagnose(Findings([Statement(label)], abstained=abstained))

    bad = label in (Label.NEUTRAL, Label.CONTRADICTED)
    unknown = abstained or label is None
    assert found.part is (Part.GENERATOR if bad else Part.UNKNOWN if unknown else Part.NONE)
    assert "look at the retriever" not in " ".join(found.sentences)


def test_without_anything_nothing_is_said() -> None:
    assert diagnose(Findings()) == Diagnosis(Part.UNKNOWN)


# --- in words ---


def test_facts_that_were_not_retrieved_are_the_retrievers() -> None:
    findings = Findings([SUPPORTED], [FOUND, FOUND, FOUND, MISSED, MISSED])

    assert diagnose(findings).part is Part.RETRIEVER
    assert told(findings) == (
        "The judge finds 2 of 5 facts of the ground truth in no chunk, so the generator could not "
        "read them: look at the retriever."
    )


@pytest.mark.parametrize(
    ("findings", "part"),
    [
        (Findings([Statement(Label.NEUTRAL, is_close=True)]), Part.GENERATOR),
        (
            Findings([SUPPORTED], [Fact(False, False, is_close=True, is_retrieval_close=True)]),
            Part.RETRIEVER,
        ),
    ],
)
def test_a_part_that_only_close_calls_blame_is_not_asserted(findings: Findings, part: Part) -> None:
    found = diagnose(findings)

    assert (found.part, found.is_sure) == (part, False)
    assert "Only close calls of the judge show this: read the claims first." in found.sentences


def test_one_firm_verdict_is_enough_to_blame_a_part() -> None:
    statements = [Statement(Label.NEUTRAL, is_close=True), Statement(Label.NEUTRAL)]

    assert diagnose(Findings(statements)).is_sure


def test_where_close_calls_blame_one_part_more_the_firm_one_is_named() -> None:
    found = diagnose(Findings([Statement(Label.NEUTRAL, is_close=True)], [MISSED]))

    assert (found.part, found.is_sure) == (Part.BOTH, False)
    assert "Without the judge's close calls it is the retriever alone" in " ".join(found.sentences)


def test_verdicts_that_contradict_each_other_are_told_and_nothing_is_asserted() -> None:
    in_no_chunk = Statement(Label.NEUTRAL, correct=True)
    found = diagnose(Findings([in_no_chunk], [FOUND, UNUSED]))

    assert not found.is_sure
    assert "The verdicts on 1 claim contradict each other" in " ".join(found.sentences)
    # Where a fact is in no chunk, the claim may follow from that one.
    assert diagnose(Findings([in_no_chunk], [UNUSED, MISSED])).is_sure


def test_a_missed_fact_is_the_retrievers_although_the_answer_states_it() -> None:
    findings = Findings([SUPPORTED], [FOUND, Fact(retrieved=False, answered=True)])

    assert diagnose(findings).part is Part.RETRIEVER
    assert "finds 1 of 2 facts of the ground truth in no chunk, but the answer states it" in told(
        findings
    )


def test_retrieved_facts_that_are_not_used_are_the_generators() -> None:
    findings = Findings([SUPPORTED], [FOUND, *[UNUSED] * 4])

    assert diagnose(findings).part is Part.GENERATOR
    assert told(findings) == "All facts were retrieved; the generator used 1 of 5."


def test_both_parts_are_blamed_where_both_fall_short() -> None:
    findings = Findings([SUPPORTED], [MISSED, UNUSED, FOUND])

    assert diagnose(findings).part is Part.BOTH
    assert "finds 1 of 3 facts" in told(findings)
    assert "The generator left out 1 of 2 retrieved facts." in told(findings)


def test_unsupported_and_contradicted_claims_are_counted_apart() -> None:
    denied = Statement(Label.CONTRADICTED, contradicted_by=[2])
    findings = Findings([Statement(Label.NEUTRAL)] * 3 + [denied])

    assert diagnose(findings).sentences == (
        "1 claim is contradicted by chunk 2.",
        "3 claims stand in no chunk.",
    )


def test_chunks_that_contradict_several_claims_are_named_once_and_in_order() -> None:
    found = [Statement(Label.CONTRADICTED, contradicted_by=each) for each in ([3, 1], [2, 3])]

    assert told(Findings(found)) == "2 claims are contradicted by chunks 1, 2 and 3."


def test_an_answer_that_declines_although_the_chunks_hold_the_facts_is_the_generators() -> None:
    findings = Findings([], [UNUSED, UNUSED, MISSED], abstained=True)

    assert diagnose(findings).part is Part.BOTH
    assert "The answer declines although the chunks hold 2 of 3 facts" in told(findings)


def test_an_answer_that_declines_without_any_fact_is_the_retrievers() -> None:
    findings = Findings([], [MISSED, MISSED], abstained=True)

    assert diagnose(findings).part is Part.RETRIEVER
    assert "declines, and the chunks hold no fact" in told(findings)


def test_noise_says_where_it_comes_from() -> None:
    wrong = [
        Statement(Label.ENTAILED, correct=False, is_denied=True, in_relevant=relevant)
        for relevant in (False, False, True)
    ]

    assert diagnose(Findings(wrong, [FOUND])).sentences == (
        "Noise: 2 claims that the ground truth contradicts come from irrelevant chunks.",
        "Noise: 1 claim that the ground truth contradicts comes from relevant chunks.",
    )


def test_what_a_short_ground_truth_does_not_mention_blames_nobody() -> None:
    more = Statement(Label.ENTAILED, correct=False)
    found = diagnose(Findings([SUPPORTED, more], [FOUND]))

    assert found == Diagnosis(
        Part.NONE,
        (
            "1 claim stands in the chunks, and the ground truth does not mention it.",
            "The answer states the only fact of the ground truth.",
        ),
    )


def test_used_facts_are_counted_only_where_all_are_decided() -> None:
    findings = Findings([SUPPORTED], [FOUND, UNUSED, Fact(retrieved=True, answered=None)])

    assert told(findings) == "The generator left out 1 of 3 retrieved facts."


def test_missed_facts_that_the_answer_may_state_are_told_with_those_that_it_does() -> None:
    stated, unknown = Fact(retrieved=False, answered=True), Fact(retrieved=False, answered=None)

    assert (
        "finds 2 of 2 facts of the ground truth in no chunk; the answer states 1 of them, and "
        "whether it states the rest is undecided." in told(Findings([SUPPORTED], [stated, unknown]))
    )
    assert "whether the answer states it is undecided." in told(Findings([SUPPORTED], [unknown]))


def test_a_contradicted_claim_that_is_right_is_told_to_be() -> None:
    denied = Statement(Label.CONTRADICTED, correct=True, contradicted_by=[1])

    assert told(Findings([denied])) == (
        "1 claim is contradicted by chunk 1, but the ground truth says the same."
    )


def test_chunks_are_not_named_where_those_of_another_claim_are_unknown() -> None:
    known = Statement(Label.CONTRADICTED, contradicted_by=[1])

    assert told(Findings([known, Statement(Label.CONTRADICTED)])) == (
        "2 claims are contradicted by chunks."
    )


@pytest.mark.parametrize(
    ("findings", "part"),
    [
        (Findings([Statement(Label.NEUTRAL, correct=True)]), Part.RETRIEVER),
        (Findings([], [Fact(retrieved=False, answered=True)], abstained=True), Part.RETRIEVER),
    ],
)
def test_where_every_verdict_is_decided_none_is_called_undecided(
    findings: Findings, part: Part
) -> None:
    assert diagnose(findings).part is part
    assert "undecided" not in told(findings)


def test_a_supported_claim_that_may_be_wrong_leaves_the_question_open() -> None:
    found = diagnose(Findings([Statement(Label.ENTAILED, correct=None)], [FOUND]))

    assert found.part is Part.UNKNOWN
    assert found.sentences == ("Some verdicts are undecided, and the others show no shortcoming.",)


# --- of the verdicts of an evaluation ---


def of_labels(**labels: Any) -> Findings:
    matrices = matrices_of_labels(**labels)
    claim = (Claim(text="c"),)
    evaluation = Evaluation(
        matrices=matrices,
        response_claims=claim * len(matrices.response_vs_chunks or ()),
        ground_truth_claims=claim * len(matrices.ground_truth_vs_response or ()),
    )
    return findings_of(evaluation, Truths(matrices))


def test_the_judges_probabilities_decide_what_is_a_close_call() -> None:
    def told(confidence: float) -> Diagnosis:
        rest = 1 - confidence
        unsure = Verdict(
            label=Label.NEUTRAL, neutral=confidence, entailed=rest / 2, contradicted=rest / 2
        )
        matrices = VerdictMatrices(response_vs_chunks=VerdictMatrix.of([[unsure]]))
        return diagnose(findings_of(Evaluation(matrices=matrices), Truths(matrices)))

    assert [told(each).is_sure for each in (0.59, 0.6)] == [False, True]


def test_a_contradicting_chunk_is_named_by_its_place() -> None:
    found = of_labels(response_vs_chunks=[[Label.NEUTRAL, Label.CONTRADICTED]])

    assert told(found) == "1 claim is contradicted by chunk 2."


def test_noise_is_traced_to_the_chunks_that_hold_no_fact() -> None:
    found = of_labels(
        response_vs_chunks=[[Label.NEUTRAL, Label.ENTAILED]],
        response_vs_ground_truth=[Label.CONTRADICTED],
        ground_truth_vs_response=[Label.ENTAILED],
        ground_truth_vs_chunks=[[Label.ENTAILED, Label.NEUTRAL]],
    )

    assert told(found) == (
        "Noise: 1 claim that the ground truth contradicts comes from irrelevant chunks."
    )


def test_verdicts_that_were_not_asked_for_are_open() -> None:
    found = of_labels(ground_truth_vs_response=[Label.NEUTRAL])

    assert found.facts == [Fact(retrieved=None, answered=False)]
    assert found.statements == []


def test_a_statement_without_a_known_ground_truth_is_no_noise() -> None:
    unknown: Truth = None

    assert diagnose(Findings([Statement(Label.ENTAILED, unknown)])).part is Part.NONE
