"""What counts as a sentence, a clause, and an assertion."""

from __future__ import annotations

import pytest

from claimspan.text.clauses import assertions, asserts_something, split_clauses
from claimspan.text.markdown import content_sentences, every_sentence
from claimspan.text.sentences import split_prose


def _sentences(text: str, language: str = "en") -> list[str]:
    return [sentence.written for sentence in content_sentences(text, language)]


def _texts(text: str) -> list[str]:
    return [sentence.standalone for sentence in content_sentences(text, "en")]


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith lives in the U.S. with his wife.",
        "Some metals, e.g. copper, conduct well.",
        "It grew by 3.5 percent, i.e. more than in 2019.",
        "Mr. J. R. Brown paid $1,250.50 to Acme Inc. in May.",
    ],
)
def test_abbreviations_and_decimals_do_not_end_a_sentence(sentence: str) -> None:
    assert split_prose(sentence + " It ended.", "en") == [sentence, "It ended."]


def test_an_ordinal_before_a_lower_case_month_does_not_end_a_slovene_sentence() -> None:
    text = "Ana Novak je bila rojena 3. maja 1950 v Kranju. Živi v Ljubljani, npr. poleti."
    assert split_prose(text, "sl") == [
        "Ana Novak je bila rojena 3. maja 1950 v Kranju.",
        "Živi v Ljubljani, npr. poleti.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("北京是中国的首都。它很大！", ["北京是中国的首都。", "它很大！"]),
        ("東京は日本の首都です。大きいです。", ["東京は日本の首都です。", "大きいです。"]),
        ("القاهرة عاصمة مصر. هي كبيرة.", ["القاهرة عاصمة مصر.", "هي كبيرة."]),
        ("दिल्ली भारत की राजधानी है। यह बड़ा है।", ["दिल्ली भारत की राजधानी है।", "यह बड़ा है।"]),
    ],
)
def test_other_scripts_end_sentences_their_own_way(text: str, expected: list[str]) -> None:
    assert split_prose(text, "en") == expected


def test_every_item_of_a_list_is_a_sentence_without_its_marker() -> None:
    text = "1. Gold is a metal.\n2. Salt dissolves in water.\n- Iron rusts.\n* Lead is heavy."
    assert _sentences(text) == [
        "Gold is a metal.",
        "Salt dissolves in water.",
        "Iron rusts.",
        "Lead is heavy.",
    ]


def test_a_fragment_in_a_list_reads_with_the_line_that_introduces_it() -> None:
    text = "Side effects include:\n- nausea\n- dry mouth"
    assert _texts(text)[1:] == ["Side effects include nausea", "Side effects include dry mouth"]


def test_a_list_after_a_pleasantry_does_not_borrow_it() -> None:
    assert _texts("Here are the facts:\n- Iron rusts") == ["Here are the facts:", "Iron rusts"]


def test_a_wrapped_item_keeps_its_second_line() -> None:
    assert _texts("- Iron rusts\n  in wet air.\n- Gold does not.") == [
        "Iron rusts in wet air.",
        "Gold does not.",
    ]


def test_code_stays_in_one_piece() -> None:
    text = "Run this.\n\n```python\nx = 1. + 2\nprint('Hi. There.')\n```\nIt prints."
    assert _sentences(text) == ["Run this.", "x = 1. + 2\nprint('Hi. There.')", "It prints."]


def test_code_that_never_ends_stays_in_one_piece() -> None:
    assert _sentences("```\na. b\n\nC. d") == ["a. b\n\nC. d"]


def test_rows_of_a_table_read_with_their_headers() -> None:
    text = "| City | People |\n|---|---|\n| Rome | 2.8 million |\n| Bonn | 330,000 |"
    assert _texts(text) == ["City: Rome; People: 2.8 million", "City: Bonn; People: 330,000"]
    assert _sentences(text)[0] == "| Rome | 2.8 million |"


def test_headings_are_no_sentences() -> None:
    assert _sentences("# Metals\n\n**Overview**\nIron rusts.") == ["Iron rusts."]


def test_a_wrapped_paragraph_is_not_cut_at_its_line_breaks() -> None:
    text = "The committee that was founded in the spring of that year met\nagain in June. It ended."
    assert _sentences(text) == [text[:-10].strip(), "It ended."]
    assert "\n" not in _texts(text)[0]


def test_markup_and_citations_are_not_part_of_what_is_said() -> None:
    assert _texts("**Iron** rusts in `air` [1], says *Brown* [2, 3].") == [
        "Iron rusts in air, says Brown."
    ]


@pytest.mark.parametrize(
    "sentence",
    [
        "The second one becomes the __cause__ attribute.",
        "A name such as _private is not imported by *args or **kwargs.",
        "It computes 2 * 3 * 4 at most.",
    ],
)
def test_names_and_products_are_not_taken_for_markup(sentence: str) -> None:
    assert _texts(sentence) == [sentence]


def test_a_reference_keeps_its_headings_tables_and_code() -> None:
    text = "# Metals\nIron rusts.\n| a | b |\n|---|---|\n```\ncode\n```"
    kept = " ".join(every_sentence(text, "en"))
    assert all(word in kept for word in ("Metals", "Iron", "| a | b |", "code"))


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


def test_no_clause_of_a_question_is_an_assertion() -> None:
    assert assertions("Was Ada born in Rome and did she move to Paris in 1970?") == []
