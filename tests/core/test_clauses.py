"""Which clauses a sentence is split into, and which of them assert something."""

from __future__ import annotations

import pytest

from claimspan.text.clauses import assertions, asserts_something, split_clauses


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        (
            "Ada was born in 1950 and moved to Paris in 1970.",
            ["Ada was born in 1950", "Ada moved to Paris in 1970."],
        ),
        (
            "The tower opened in 1889, and it was closed in 1910.",
            ["The tower opened in 1889", "it was closed in 1910."],
        ),
        (
            "Paris is the capital of France and Rome is the capital of Italy.",
            ["Paris is the capital of France", "Rome is the capital of Italy."],
        ),
        (
            "He did not resign in May and the ministry was closed in June.",
            ["He did not resign in May", "the ministry was closed in June."],
        ),
        (
            "The bridge was closed; trains were sent over Bonn.",
            ["The bridge was closed", "trains were sent over Bonn."],
        ),
    ],
)
def test_coordinated_clauses_stand_on_their_own(sentence: str, expected: list[str]) -> None:
    assert split_clauses(sentence) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "She bought apples and pears.",
        "He was tried and acquitted in 1999.",
        "If it rains and the river rises, the road is closed and traffic stops.",
        "The report says that prices rose and wages fell in 2020.",
        "He did not resign in May and was dismissed in June.",
        "In 1950 she left Rome and moved to Bonn.",
        "Ana Novak je bila rojena v Kranju in živi v Ljubljani.",
        "x; y; z",
    ],
)
def test_a_clause_that_cannot_stand_alone_keeps_the_sentence_whole(sentence: str) -> None:
    assert split_clauses(sentence) == [sentence]


@pytest.mark.parametrize(
    "text",
    [
        "Is Paris in France?",
        "真的吗？",
        "هل هي كبيرة؟",
        "Here is the answer:",
        "Sure!",
        "Yes.",
        "I hope this helps!",
        "I don't know.",
        "I’m not sure about that.",
        "The context does not say when the tower was built.",
        "The provided documents do not mention the price.",
        "I'm sorry, but I cannot answer this question.",
        "There is no information about this.",
        "Based on the context, I cannot determine the year.",
        "***",
    ],
)
def test_what_asserts_nothing_is_recognised(text: str) -> None:
    assert not asserts_something(text)


@pytest.mark.parametrize(
    "text",
    [
        "Paris",
        "42",
        "Yes, Paris is the capital of France.",
        "Sure, the Eiffel Tower was opened in Paris in the year 1889.",
        "The document was signed in 1950.",
        "I know that iron rusts.",
        "Information is stored in bits.",
    ],
)
def test_what_asserts_something_is_kept(text: str) -> None:
    assert asserts_something(text)


def test_what_follows_an_abstention_in_its_sentence_is_kept() -> None:
    sentence = "The context does not say who built it, but the tower was opened in 1889."
    assert assertions(sentence) == ["the tower was opened in 1889."]


def test_what_an_abstention_lists_is_no_clause_of_its_own() -> None:
    assert assertions("The text does not give the growth in the US and sales abroad in 2022.") == []


def test_no_clause_of_a_question_is_an_assertion() -> None:
    assert assertions("Was Ada born in Rome and did she move to Paris in 1970?") == []
