"""Which sentences a text in Markdown has, and how they read on their own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.text.markdown import content_sentences, every_sentence, most_sentences


def _sentences(text: str, language: str = "en") -> list[str]:
    return [sentence.written for sentence in content_sentences(text, language)]


def _texts(text: str) -> list[str]:
    return [sentence.standalone for sentence in content_sentences(text, "en")]


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


_ANY = st.text(max_size=80) | st.text(alphabet="aB1 ,.!?;:\n\t|-#`*()\"'", max_size=80)


@given(_ANY, st.sampled_from(["en", "de", "sl", "zh"]))
def test_a_text_has_no_more_sentences_than_it_can_have_at_most(text: str, language: str) -> None:
    found = [each for each in every_sentence(text, language) if each.strip()]

    assert len(found) <= most_sentences(text)


def test_prose_of_a_few_sentences_cannot_have_a_hundred() -> None:
    assert (
        most_sentences("The shop opens at 9, and closes at 17. It is shut on Sundays. " * 10) < 50
    )
