"""The pairs that authors wrote are what their card says."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import pytest

from train_local_judge import written

CARD: Final = (written.FOLDER / "README.md").read_text(encoding="utf-8")
PASSAGES: Final = list(written.passages())
CLAIMS: Final = [(passage, claim) for passage in PASSAGES for claim in passage.claims]


def test_the_card_counts_passages_and_claims() -> None:
    assert f"{len(PASSAGES):,} passages with {len(CLAIMS):,} claims" in CARD
    assert len(CLAIMS) >= 8_000


@pytest.mark.parametrize("label", ["entailed", "contradicted", "left open"])
def test_the_card_counts_labels(label: str) -> None:
    short = {"entailed": "E", "contradicted": "C", "left open": "N"}[label]
    assert f"{label} {sum(claim.label == short for _, claim in CLAIMS):,}" in CARD


def test_the_card_counts_kinds() -> None:
    stated = {
        kind: int(number.replace(",", ""))
        for kind, number in re.findall(r"(\w+)\s+([\d,]+\d|\d)", CARD)
    }
    found = Counter(claim.kind for _, claim in CLAIMS)
    assert len(found) >= 45
    assert {kind: stated.get(kind) for kind in found} == dict(found)


def test_the_card_counts_parts_and_no_passage_is_in_two() -> None:
    parts = Counter[str](passage.part for passage, _ in CLAIMS)
    told = "training {training:,} claims, fitting {fitting:,}, test {test:,}".format(**parts)
    assert told in CARD
    assert len({passage.id for passage in PASSAGES}) == len(PASSAGES)


def test_no_two_claims_of_a_passage_are_the_same_and_labels_are_three() -> None:
    for passage in PASSAGES:
        texts = [claim.text for claim in passage.claims]
        assert len(set(texts)) == len(texts), passage.id
        assert {claim.label for claim in passage.claims} <= {"E", "N", "C"}


def test_other_languages_are_there() -> None:
    others = Counter(passage.language for passage, _ in CLAIMS if passage.language != "en")
    assert others.keys() >= {"de", "fr", "es", "it", "sl", "zh", "ja"}
    assert sum(others.values()) >= 1_500
