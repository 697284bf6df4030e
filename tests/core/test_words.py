"""How a text is tokenized, and which spellings of a word share a stem."""

from __future__ import annotations

from itertools import count, islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan.text.words import Token, stem, tokenize


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("city", "Cities"),
        ("stop", "stopped"),
        ("seven", "7"),
        ("Third", "3th"),
        ("father", "father’s"),
    ],
)
def test_spellings_of_one_word_share_a_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("1,250.50 or 1250.5", ["1250.5", "or", "1250.5"]),
        ("3,5 %", ["3.5", stem("percent")]),
        ("the 21st of May", ["the", "21th", "of", "may"]),
        ("COVID-19", ["covid", "-19"]),
        ("the U.S.", ["the", "us"]),
        ("$5", ["$", "5"]),
        ("中国的", ["中国", "国的"]),
        ("中", ["中"]),
        ("?! ...", []),
    ],
)
def test_a_token_is_a_word_a_number_a_sign_or_a_pair_of_characters(
    text: str, stems: list[str]
) -> None:
    assert [token.stem for token in tokenize(text)] == stems


def test_tokens_keep_the_text_as_written() -> None:
    assert [token.text for token in tokenize("Cities, 1,250!")] == ["Cities", "1,250"]


_PIECES = st.text(alphabet="abzAZ019.,'’-%$(*)_/é中文\u0301\u200b", min_size=1, max_size=8)


@given(st.lists(_PIECES, max_size=6), st.sampled_from(["en", "fr", "sl", "zh"]))
def test_the_tokens_of_a_text_are_those_of_its_pieces_between_blanks(
    pieces: list[str], language: str
) -> None:
    def tokens(text: str) -> list[Token]:
        return tokenize(text, language)

    assert tokens(" ".join(pieces)) == [token for piece in pieces for token in tokens(piece)]


def test_a_text_of_more_different_words_than_are_remembered_is_read_like_any() -> None:
    numbered = (f"w{i}x." for i in count())
    text = " ".join(islice(numbered, 25_000))

    assert [token.text for token in tokenize(text)] == [piece[:-1] for piece in text.split()]
