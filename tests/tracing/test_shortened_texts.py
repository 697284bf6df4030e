"""Of a text that was shortened with a sign, what the prompt has of it was read, and no more."""

from __future__ import annotations

import pytest

from claimspan_tracing.read.prompts import Prompts

from buildings import FACTS, TOWER
from linear_time import grows_linearly

TEXT = " ".join(FACTS)
OTHER = "Visitors may enter the museum from nine in the morning until six in the evening, daily."


SIGNS = ["...", " ... ", "\u2026", "[...]", " [\u2026] ", "(...)", "\n---\n"]
NOTES = ["[cut]", "<truncated>", "[120 characters were left out]"]
SIZES = [(100, 60), (60, 100), (45, 10)]


@pytest.mark.parametrize(
    ("sign", "head", "tail"),
    [
        *((sign, *sizes) for sign in (*SIGNS, *NOTES) for sizes in SIZES),
        *((sign, 30, 50) for sign in SIGNS),
    ],
)
def test_beginning_and_end_were_read_and_the_middle_was_not(
    sign: str, head: int, tail: int
) -> None:
    start, end = TEXT[:head].rstrip(), TEXT[-tail:].lstrip()
    left = f"{start}{sign}{end}"
    (found,) = Prompts([f"Context:\n{left}\n\nQuestion: {TOWER}"]).read([TEXT])

    assert found == " ".join(left.split())


@pytest.mark.parametrize("length", [18, 25, 39])
@pytest.mark.parametrize("sign", ["...", "\u2026", " ..."])
def test_a_few_words_count_where_a_sign_says_that_more_was_left_out(sign: str, length: int) -> None:
    start = TEXT[:length].rstrip()

    assert Prompts([f"Context: {start}{sign}\n{TOWER}"]).read([TEXT]) == [start]


@pytest.mark.parametrize(
    "prompt",
    [
        f"The tower in Paris is what I ask about. {TOWER}",
        f"XThe tower in Paris is... {TOWER}",
        f"The tower... {TOWER}",
        f"The tower in Paris is [what] {TOWER}",
    ],
)
def test_a_few_words_by_themselves_are_no_part_of_a_text(prompt: str) -> None:
    assert Prompts([prompt]).read([TEXT]) == [None]


def test_texts_that_were_all_shortened_are_told_apart() -> None:
    other = f"{OTHER} {TEXT}"
    prompt = f"{TEXT[:50]}...{TEXT[-50:]}\n\n{other[:50]}...{other[-60:]}\n{TOWER}"
    found = Prompts([prompt]).read([TEXT, other])

    assert [str(each)[:20] for each in found] == [TEXT[:20], other[:20]]


def test_a_prompt_that_ends_with_a_shortened_text_was_not_cut_itself() -> None:
    prompt = f"{TOWER}\n{FACTS[0]}\n{TEXT[:60]}[...]{TEXT[-60:]}"

    assert None not in Prompts([prompt]).read([FACTS[0] + OTHER, TEXT])[1:]


def test_a_note_between_the_halves_of_a_whole_text_leaves_it_whole() -> None:
    assert Prompts([f"{FACTS[0]}\n[page 2]\n{FACTS[1]}\nQ"]).read([" ".join(FACTS[:2])]) == [
        " ".join(FACTS[:2])
    ]


@pytest.mark.parametrize("piece", ["The tower in Pari", "The tower in Paris...", "... ", "[", "a"])
def test_a_hostile_prompt_takes_no_longer_than_its_length(piece: str) -> None:
    def find(prompt: str) -> None:
        Prompts([prompt]).read([f"{TEXT} {n}" for n in range(20)])
        Prompts([prompt]).read([piece * 3_000 + str(n) for n in range(3)])

    assert grows_linearly(find, piece, 200_000)
