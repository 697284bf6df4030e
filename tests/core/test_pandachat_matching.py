"""Which document a retrieved chunk comes from: splitting, spelling and prefixes do not hide it."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Final

import pytest

from claimspan import Chunk
from claimspan_bench.pandachat.runner import UNMATCHED, ChunkMatcher

from panda_files import sample

MATCHER: Final = ChunkMatcher(
    (question.document, text) for question in sample().questions for text in question.texts
)
PASSAGE: Final = "Šampinjonov ne peremo. Za shranjevanje je primerna papirnata vrečka v hladilniku"
"""From the document sl.9."""


def chunk(text: str, id_: str = "c1", **metadata: str) -> Chunk:
    return Chunk(id=id_, text=text, metadata=dict(metadata))


@pytest.mark.parametrize(
    "found",
    [
        chunk("", "sl.9"),
        chunk("", "sl.9#4"),
        chunk("", document="sl.9"),
        chunk("", source="corpus/sl.9"),
        chunk("", file_path="corpus/sl.9.txt"),
        chunk("", ref_doc_id="sl.9", next_document="sl.1"),
        chunk("", next_document="sl.1", document="sl.9"),
        chunk("Kruh z drožmi", "sl.9"),
    ],
)
def test_an_id_or_metadata_that_names_a_document_counts_first(found: Chunk) -> None:
    assert MATCHER.match(found) == ("sl.9", "id")


def test_the_text_of_a_chunk_counts_before_metadata_that_may_name_a_neighbour() -> None:
    assert MATCHER.match(chunk(PASSAGE, next_document="sl.1")) == ("sl.9", "text")


SPELLINGS: Final[list[Callable[[str], str]]] = [
    lambda text: text,
    lambda text: unicodedata.normalize("NFD", text),
    str.upper,
    lambda text: text.replace("Š", "S").replace("č", "c"),
    lambda text: text.replace(" ", "\n  "),
    lambda text: text[7:-5],
    lambda text: text.replace(". ", ".<p>"),
    lambda text: text.replace(". ", ".</p>\n<p>"),
]


@pytest.mark.parametrize("changed", SPELLINGS)
def test_a_text_is_found_however_it_is_split_and_written(changed: Callable[[str], str]) -> None:
    assert MATCHER.match(chunk(changed(PASSAGE))) == ("sl.9", "text")


def test_a_chunk_across_the_place_of_the_question_is_found() -> None:
    with_question = "Gobe v kuhinji<p>Kako shranjujemo šampinjone?<p>Šampinjonov"
    without = "Gobe v kuhinji<p><p>Šampinjonov"

    assert MATCHER.match(chunk(with_question)).document == "sl.9"
    assert MATCHER.match(chunk(without)).document == "sl.9"


def test_a_title_before_a_chunk_does_not_hide_its_document() -> None:
    found = MATCHER.match(chunk(f"Spletna stran o kuhanju: {PASSAGE}"))

    assert found == ("sl.9", "overlap")


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("", "nothing"),
        (" ...!", "nothing"),
        ("Besedilo, ki ga ni v nobenem od teh dokumentov, je dolgo in nima para.", "nothing"),
        ("Na", "several"),
    ],
)
def test_a_text_of_no_document_or_of_several_matches_none(text: str, by: str) -> None:
    assert MATCHER.match(chunk(text)) == (UNMATCHED, by)


def test_two_documents_with_the_same_text_are_not_told_apart() -> None:
    text = "Isto besedilo stoji v dveh dokumentih, ki se razlikujeta le po imenu."
    twins = ChunkMatcher([("one", text), ("two", text)])

    assert twins.match(chunk("besedilo stoji")) == (UNMATCHED, "several")
    assert twins.match(chunk(f"Uvod. {text}")) == (UNMATCHED, "several")
    assert twins.match(chunk("", document="two")) == ("two", "id")
