"""The sentence of a chunk that a claim is decided by is the one that the report marks."""

from __future__ import annotations

from typing import Final

import pytest

from claimspan import Chunk, Label
from claimspan.report import ReportClaim, ReportEntry, render_report
from claimspan.text.closest import MAX_SEARCHED

from linear_time import grows_linearly
from shown_records import parts_of_chunk

"""For a chunk of 100 kB, which takes 0.1 to 0.3 s; a time that grew with the square would be
minutes."""

RIVERS: Final = (
    "The Drava rises in South Tyrol. It is 725 km long. The Danube, which it joins near Osijek, "
    "is 2,850 km long."
)
CURIE: Final = (
    "Marie Curie was born in Warsaw in 1867. She won the Nobel Prize in Physics in 1903. In 1911 "
    "she won the Nobel Prize in Chemistry. She died in 1934."
)
CLINIC: Final = (
    "Dr. Smith founded the clinic in 1998. The clinic, e.g. its surgery, was rebuilt in 2010. "
    "Dr. Jones leads it today."
)
PLANS: Final = "| plan | price |\n|---|---|\n| Basic | $10 |\n| Team | $45 |\n"
POLICY: Final = (
    "# Returns\n\n- Shoes can be returned within 30 days.\n"
    "- Electronics can be returned within 14 days.\n- Gift cards cannot be returned.\n"
)
PEAKS: Final = "Everest is 8,849 m high. K2 is 8,611 m high. Kangchenjunga is 8,586 m high."
HOMES: Final = "Anna lives in Berlin. Boris lives in Paris. Clara lives in Rome."
WARRANTY: Final = (
    "The warranty covers parts. The warranty does not cover damage from water. Labour is covered "
    "for one year."
)
LENGTHS: Final = (
    "The river Drava has a length of 725 km. The Danube is 900 km longer. Both cross Croatia."
)
RELEASES: Final = (
    "Version 3.11 was released in October 2022. Version 3.12 was released in October 2023."
)


def marked(text: str, claim: str, *, denied: bool = False) -> list[tuple[str, Label | None]]:
    """The parts of a chunk that are marked for one claim, and their labels."""
    found = parts_of_chunk(text, **{"contradicts" if denied else "supports": [claim]})
    return [(part.text, part.label) for part in found if part.keys]


@pytest.mark.parametrize(
    ("text", "claim", "sentence"),
    [
        (RIVERS, "The Drava is 725 km long", "It is 725 km long."),
        (
            CURIE,
            "Marie Curie won the Nobel Prize in Chemistry in 1911",
            "In 1911 she won the Nobel Prize in Chemistry.",
        ),
        (CLINIC, "The clinic is led by Dr. Jones", "Dr. Jones leads it today."),
        (PLANS, "The Team plan costs $45", "| Team | $45 |"),
        (
            POLICY,
            "Electronics may be returned within 14 days",
            "- Electronics can be returned within 14 days.",
        ),
        (
            "Der Vertrag läuft zwei Jahre. Die Kündigungsfrist beträgt drei Monate. Danach "
            "verlängert sich der Vertrag um ein Jahr.",
            "Die Kündigungsfrist ist drei Monate",
            "Die Kündigungsfrist beträgt drei Monate.",
        ),
        (
            "東京は日本の首都です。人口は約1400万人です。大阪は西日本の都市です。",
            "東京の人口は約1400万人である",
            "人口は約1400万人です。",
        ),
        (
            "The office opens at\nnine on weekdays. On Saturdays it is\nclosed.",
            "The office is closed on Saturdays",
            "On Saturdays it is\nclosed.",
        ),
        (
            "The CEO left in March. Revenue fell by 12 % in the second quarter.",
            "Revenue declined 12% in the second quarter",
            "Revenue fell by 12 % in the second quarter.",
        ),
        (
            RELEASES,
            "Version 3.12 was released in 2023",
            "Version 3.12 was released in October 2023.",
        ),
    ],
)
def test_the_sentence_that_supports_a_claim_is_marked(text: str, claim: str, sentence: str) -> None:
    assert marked(text, claim) == [(sentence, Label.ENTAILED)]


@pytest.mark.parametrize(
    ("text", "claim", "sentence"),
    [
        # The value of the claim is that of another subject, which stands in the chunk as well.
        (PEAKS, "K2 is 8,849 m high", "K2 is 8,611 m high."),
        (HOMES, "Boris lives in Berlin", "Boris lives in Paris."),
        (LENGTHS, "The Drava is 900 km long", "The river Drava has a length of 725 km."),
        (PLANS, "The Basic plan costs $45", "| Basic | $10 |"),
        (
            RELEASES,
            "Version 3.12 was released in October 2022",
            "Version 3.12 was released in October 2023.",
        ),
        (
            CURIE,
            "Marie Curie won the Nobel Prize in Chemistry in 1903",
            "In 1911 she won the Nobel Prize in Chemistry.",
        ),
        (
            WARRANTY,
            "The warranty covers damage from water",
            "The warranty does not cover damage from water.",
        ),
        # Nothing but numbers: then they are all that there is to go by.
        ("Call 112. Or call 144 instead.", "112", "Call 112."),
    ],
)
def test_the_sentence_that_contradicts_a_claim_is_marked(
    text: str, claim: str, sentence: str
) -> None:
    assert marked(text, claim, denied=True) == [(sentence, Label.CONTRADICTED)]


def test_one_chunk_marks_the_sentence_of_each_of_its_claims() -> None:
    claims = (
        ReportClaim(text="Boris lives in Paris", label=Label.ENTAILED, supported_by=("k",)),
        ReportClaim(text="Clara lives in Berlin", contradicted_by=("k",)),
        ReportClaim(text="Anna is a nurse", label=Label.NEUTRAL),
    )
    chunk = Chunk(id="k", text=HOMES)
    entry = ReportEntry(
        query="q", response="r", status="evaluated", chunks=(chunk,), response_claims=claims
    )

    page = render_report([entry])

    assert page.count('class="closest ') == 2
    assert ">Boris lives in Paris.</mark>" in page
    assert ">Clara lives in Rome.</mark>" in page


@pytest.mark.parametrize("denied", [False, True])
def test_of_sentences_that_are_alike_the_first_is_marked(denied: bool) -> None:
    text = "Members pay nothing. The fee is 5 EUR. Ask for it. The fee is 5 EUR."

    side = "contradicts" if denied else "supports"
    found = parts_of_chunk(text, **{side: ["The fee is 5 EUR"]})

    assert [(part.text, bool(part.keys)) for part in found] == [
        ("Members pay nothing. ", False),
        ("The fee is 5 EUR.", True),
        (" Ask for it. The fee is 5 EUR.", False),
    ]


def test_the_last_sentence_of_a_chunk_of_100_kb_is_found() -> None:
    filler = "Some rivers are longer than others and nobody has measured each of them. "
    last = "The Drava is 725 km long."
    text = (filler * (MAX_SEARCHED // len(filler) - 1)) + last

    assert marked(text, "The Drava is 725 km long") == [(last, Label.ENTAILED)]
    # What lies behind the bound is shown, and not searched.
    beyond = parts_of_chunk(filler * 1_500 + last, supports=["Drava 725 km"])
    assert [part.keys for part in beyond] == [()]


@pytest.mark.parametrize(
    "piece",
    ["a", "a. ", "\n", "| a ", "- x\n", "`", "```\nx\n", "船", "[a](", "|a|\n|-|\n", "Dr. ", "<b>"],
)
def test_no_chunk_of_100_kb_holds_the_page_up(piece: str) -> None:
    def marked_passages(text: str) -> None:
        found = parts_of_chunk(text, contradicts=["a x Dr 船"])
        assert "".join(part.text for part in found) == text

    assert grows_linearly(marked_passages, piece, MAX_SEARCHED)
