"""Which parts of a long reference the cross-encoder reads for a claim."""

from __future__ import annotations

from claimspan.judges.local.reading import WINDOW_WORDS, Passage, gather_sentences

FILLING = "Nothing much happened in the valley on that long and quiet afternoon."


def test_a_text_of_one_window_is_whole_for_a_model_that_reads_all() -> None:
    text = " ".join([FILLING] * 12)
    assert Passage(text, "en").windows == [text]


def test_a_claim_is_read_beside_the_sentences_that_have_its_words() -> None:
    said = "The Zois prize went to Ana Kos."
    text = " ".join([*[FILLING] * 8, said, *[FILLING] * 8])
    assert Passage(text, "en").windows_for("Ana Kos won the Zois prize.") == [
        " ".join([FILLING, said, FILLING])
    ]


def test_a_text_that_shares_no_word_with_a_claim_is_read_from_its_beginning() -> None:
    passage = Passage("The river is long. It is wide as well.", "en")
    assert passage.windows_for("Quick foxes jump") == ["The river is long."]


def test_a_text_without_words_is_not_read() -> None:
    assert Passage(" \n", "en").windows_for("A claim.") == []


def test_a_long_text_is_read_in_one_part_of_bounded_length() -> None:
    text = " ".join([FILLING] * 200)
    (shown,) = Passage(text, "en").windows_for("What happened in the valley?")
    assert len(shown.split()) <= 80
    assert max(len(window.split()) for window in Passage(text, "en").windows) <= WINDOW_WORDS


def test_a_sentence_without_an_end_is_read_in_part() -> None:
    text = "and so on " * 500 + "Ana Kos won the Zois prize " + "and so on " * 500
    (shown,) = Passage(text, "en").windows_for("Ana Kos won the Zois prize.")
    assert "Zois prize" in shown
    assert len(shown.split()) <= 80


def test_what_supports_a_claim_from_far_apart_is_read_together() -> None:
    first, second = "Ana Kos was born in Celje.", "In 1986 she won the Zois prize."
    text = " ".join([first, *[FILLING] * 40, second, *[FILLING] * 40])
    shown = Passage(text, "en").windows_for(
        "Ana Kos, who was born in Celje, won the Zois prize in 1986"
    )
    assert any(first in window and second in window for window in shown)


def test_gathered_sentences_keep_the_order_of_the_text_and_bring_their_neighbours() -> None:
    sentences = [f"Sentence {at} says nothing." for at in range(60)]
    sentences[10], sentences[40] = "The Zois prize is old.", "Ana Kos comes from Celje."
    together = gather_sentences(sentences, "Ana Kos of Celje won the Zois prize")
    assert together.index(sentences[10]) < together.index(sentences[40])
    assert sentences[9] in together
    assert sentences[41] in together


def test_a_text_that_shares_no_word_with_a_claim_gathers_nothing() -> None:
    assert gather_sentences(["The river is long."], "Quick foxes jump") == ""
