"""What is denied, and what is not, where a text says ``no`` or ``not``."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from claimspan.judges import LexicalJudge
from claimspan.verdicts import Claim, Label

JUDGE: Final = LexicalJudge(sure_from=0.5)


def _label(claim: str, reference: str) -> Label:
    verdict = asyncio.run(JUDGE.check([Claim(text=claim)], [reference]))[0][0]
    assert verdict is not None
    return verdict.label


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("The shop offers refunds on shoes.", "The shop no longer offers refunds on shoes."),
        ("The shop no longer offers refunds on shoes.", "The shop offers refunds on shoes."),
        ("Late entries are taken by the jury.", "No more late entries are taken by the jury."),
    ],
)
def test_what_is_no_longer_so_is_denied(claim: str, reference: str) -> None:
    assert _label(claim, reference) is Label.CONTRADICTED


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("The stay is no longer than five days.", "By law, the stay is no longer than five days."),
        ("The stay is five days or shorter.", "The stay is no longer than five days or shorter."),
        ("No more than 5 guests may enter.", "Up to 5 guests may enter."),
        ("The film is good and cheap.", "The film is not only good but cheap."),
    ],
)
def test_a_bound_and_not_only_deny_nothing(claim: str, reference: str) -> None:
    assert _label(claim, reference) is not Label.CONTRADICTED


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("The shop is closed on Sundays.", "The shop is not open on Sundays."),
        ("The road was open in winter.", "The road was never closed in winter."),
    ],
)
def test_a_denied_opposite_is_no_contradiction(claim: str, reference: str) -> None:
    assert _label(claim, reference) is not Label.CONTRADICTED


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("Smoking is not allowed in all rooms.", "Smoking is forbidden in all rooms."),
        ("The museum is not open on Mondays.", "The museum is closed on Mondays."),
        ("The fee is not refundable.", "The fee is non-refundable."),
    ],
)
def test_an_opposite_that_is_denied_says_the_same(claim: str, reference: str) -> None:
    assert _label(claim, reference) is Label.ENTAILED


@pytest.mark.parametrize(
    ("claim", "reference"),
    [
        ("Smoking is forbidden in all rooms.", "Smoking is allowed in all rooms."),
        ("Smoking is not allowed in all rooms.", "Smoking is allowed in all rooms."),
        ("The fee is non-refundable.", "The fee is refundable."),
    ],
)
def test_an_opposite_or_a_denial_alone_is_a_contradiction(claim: str, reference: str) -> None:
    assert _label(claim, reference) is Label.CONTRADICTED
