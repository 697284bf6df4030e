"""What ``LexicalJudge`` says of a sentence after one change, or said otherwise."""

from __future__ import annotations

import asyncio
import tomllib
from importlib.resources import files
from typing import Final, get_args

import pytest

from claimspan.judges import LexicalJudge
from claimspan.judges.lexical.edits import EDITS
from claimspan.quantities import ConflictKind
from claimspan.verdicts import Claim, Label

JUDGE: Final = LexicalJudge(sure_from=0.5)


def _label(claim: str, reference: str) -> Label | None:
    matrix = asyncio.run(JUDGE.check([Claim(text=claim)], [reference]))
    return matrix[0][0].label if matrix[0][0] else None


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("The singer signed with Apple Music.", "The singer signed with Decca Records."),
        ("Romeo meets Rosaline at the ball.", "Juliet waits. Romeo meets Juliet at the ball."),
        ("Hamlet was written by Marlowe.", "Hamlet was written by Shakespeare."),
        ("The Belgian army left the old town.", "The Rwandan army left the old town."),
    ],
)
def test_another_name_in_the_same_place_is_a_contradiction(claim: str, reference: str) -> None:
    assert _label(claim, reference) is Label.CONTRADICTED


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("The EU complained again in Geneva.", "The European Union complained again in Geneva."),
        ("The plan is not possible.", "The plan is impossible."),
        ("The battle was lost in World War II.", "The battle was lost in WWII."),
        ("The French company bought the plant.", "The France company bought the plant."),
        ("Der Wagen steht vor der Tür und ist rot.", "Das Auto steht vor der Tür und ist rot."),
    ],
)  # fmt: skip
def test_another_spelling_of_the_same_is_no_contradiction(claim: str, reference: str) -> None:
    assert _label(claim, reference) is not Label.CONTRADICTED


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("Microsoft was acquired by GitHub in 2018.", "GitHub was acquired by Microsoft in 2018."),
        ("GitHub acquired Microsoft in 2018.", "In short: Microsoft acquired GitHub in 2018."),
        ("Microsoft was acquired by GitHub in 2018.", "Microsoft acquired GitHub in 2018."),
        ("Canada is larger than Russia.", "Russia is larger than Canada."),
        ("The road was closed because it rained.", "It rained because the road was closed."),
        ("Smoking causes stress in adults.", "Stress causes smoking in adults."),
        ("Rebecca urges Jack to come home.", "Jack urges Rebecca to come home."),
    ],
)
def test_roles_a_comparison_or_a_cause_turned_round_contradict(claim: str, reference: str) -> None:
    assert _label(claim, reference) is Label.CONTRADICTED


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("GitHub was acquired by Microsoft in 2018.", "Microsoft acquired GitHub in 2018."),
        ("Microsoft acquired GitHub in 2018.", "GitHub was acquired by Microsoft in 2018."),
        ("In 2018 Microsoft acquired GitHub.", "Microsoft acquired GitHub in 2018."),
        ("Paris is the capital of France.", "The capital of France is Paris."),
        ("Red Hat, Debian and SuSE use it.", "SuSE, Debian and Red Hat use it."),
        ("The rules are in RFC 6125, RFC 5280 and RFC 2818.",
         "The rules are in RFC 2818, RFC 5280 and RFC 6125."),
        ("Anna and Boris met in Rome.", "Boris and Anna met in Rome."),
        ("Because it rained, the road was closed.", "The road was closed because it rained."),
        ("Users shouldn't call this function.", "Users should not call this function."),
    ],
)  # fmt: skip
def test_the_same_words_in_another_form_are_entailed(claim: str, reference: str) -> None:
    assert _label(claim, reference) is Label.ENTAILED


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("The guide lists reliable sources for it.", "The guide lists unreliable sources for it."),
        (
            "Shared memory is slower than a queue here.",
            "Shared memory is faster than a queue here.",
        ),
        ("The longer path leads to the old castle.", "The shorter path leads to the old castle."),
        ("The court acquitted the two brothers.", "The court convicted the two brothers."),
        ("He was unkind to the other children.", "He was kind to the other children."),
        ("The file is not deleted after a day.", "The file is deleted after a day."),
        ("The file is deleted after a day.", "The file is never deleted after a day."),
        ("The header has 4 bits in all files.", "The header has 4 bytes in all files."),
        ("Each visit lasts 30 minutes at most.", "Each visit lasts 30 hours at most."),
        ("The tuple holds 1 or 1 items.", "The tuple holds 0 or 1 items."),
    ],
)
def test_another_word_that_changes_the_sentence_contradicts(claim: str, reference: str) -> None:
    assert _label(claim, reference) is Label.CONTRADICTED


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("All patients recover within a week.", "Most patients recover within a week."),
        ("The module is always built as a library.", "The module is often built as a library."),
    ],
)
def test_all_in_the_place_of_some_is_not_entailed(claim: str, reference: str) -> None:
    assert _label(claim, reference) is not Label.ENTAILED
    assert _label(reference, claim) is not Label.CONTRADICTED


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("Finch sued Delmar over a patent in 2020.", "Delmar sued Finch in 2020 over a patent."),
        ("Marek defeated Brandt in the final.", "In the final, Brandt defeated Marek 6-4."),
        ("The head reports to the officer.",
         "The officer reports to the head, who reports to the chief officer."),
        ("The drama was directed by Jonas Weil.",
         "The drama, a 2016 film directed by Amina Farouk, has music by Jonas Weil."),
    ],
)  # fmt: skip
def test_roles_are_compared_in_sentences_of_another_form_too(claim: str, reference: str) -> None:
    assert _label(claim, reference) is Label.CONTRADICTED


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("All rooms of the hotel are accessible.", Label.NEUTRAL),
        ("Ground-floor rooms of the hotel are accessible all the time.", Label.ENTAILED),
    ],
)
def test_what_is_said_of_some_is_not_said_of_all(claim: str, label: Label) -> None:
    reference = "The hotel has 64 rooms. Ground-floor rooms of the hotel are accessible."

    assert _label(claim, reference) is label


def test_a_very_long_copy_is_judged_in_reasonable_time() -> None:
    words = " ".join(f"word{n % 700}" for n in range(20_000))

    assert _label(f"{words} end.", f"Start {words}.") is Label.ENTAILED


def test_two_joined_sentences_are_entailed_where_one_of_them_denies() -> None:
    reference = "If there is no source, return None. This could happen if it is defined in C."
    claim = "If there is no source, return None, and this could happen if it is defined in C."

    assert _label(claim, reference) is Label.ENTAILED


def test_no_word_is_its_own_opposite() -> None:
    table = files("claimspan.judges.lexical").joinpath("edits.toml").read_text(encoding="utf-8")
    for lines in tomllib.loads(table)["opposites"].values():
        for line in lines.strip().splitlines():
            left, right = (set(side.split()) for side in line.split("/"))
            assert left
            assert right
            assert not left & right, line


def test_every_kind_of_another_value_has_its_row() -> None:
    of_values = {kind for kind, row in EDITS.items() if row.find is None}
    assert of_values == set(get_args(ConflictKind))


@pytest.mark.parametrize("other", ["Ukraine", "Uganda"])
def test_initials_are_those_of_all_words_of_a_name(other: str) -> None:
    assert _label("The long battle was lost in UK.", f"The long battle was lost in {other}.") is (
        Label.CONTRADICTED
    )
    assert _label(
        "The battle was lost in the EU.", "The battle was lost in the European Union."
    ) is not (Label.CONTRADICTED)
