"""Signs of values: those of a text are the signs of its pieces, however they are looked for."""

from __future__ import annotations

from functools import reduce

from hypothesis import given, settings
from hypothesis import strategies as st

from claimspan.text.value_signs import QUARTER, SLASH, signs_of, signs_of_piece
from claimspan.text.value_words import with_digits

_WORDS = st.sampled_from(
    "one two half quarter Quarterly first 3/4 12:30 1990s 0's 5. 1- a/b km h am UHR ob March noon "
    "stopinjah third-party twenty-five (q) _half_ x1half don't of the".split()
)
_NOISE = st.text(alphabet="aqhmsS059-/.:'_(\t\x1c", max_size=6)
_BETWEEN = st.sampled_from([" ", "\n", ", ", ". ", "  ", "\x1c", "-", ""])
_TEXTS = st.lists(st.tuples(st.one_of(_WORDS, _NOISE), _BETWEEN), max_size=8).map(
    lambda parts: "".join(word + between for word, between in parts)
)


@settings(max_examples=400)
@given(_TEXTS)
def test_the_signs_of_a_text_are_those_of_its_pieces_between_blanks(text: str) -> None:
    assert signs_of(text) == reduce(int.__or__, map(signs_of_piece, text.split()), 0)


@settings(max_examples=400)
@given(_TEXTS)
def test_a_letter_beyond_ascii_in_another_sentence_rewrites_no_other_word(text: str) -> None:
    alone, beside = with_digits(text).text, with_digits(f"{text} žž").text
    assert beside == f"{alone} žž"


def test_a_word_that_goes_on_behind_a_quarter_is_one_too() -> None:
    assert signs_of("a quarterly report") & QUARTER
    assert not signs_of("a headquarters report") & QUARTER
    assert signs_of("input/output") & SLASH
