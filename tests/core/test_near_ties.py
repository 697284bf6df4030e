"""The bundled model reads near ties again in 32 bits, and nothing else."""

from __future__ import annotations

import random
from functools import cache
from pydoc_data.topics import topics
from typing import Final

import pytest

from claimspan.judges.local.cross_encoder import CrossEncoder, TextPair
from claimspan.judges.local.models import bundled_files

from near_ties import IN_8_BITS, IN_32_BITS, BoundedEncoder

NEAR: Final = 0.1
"""The bound of the bundled model."""

_N_PAIRS: Final = 60


@cache
def _pairs() -> list[TextPair]:
    """Sentences beside others: half entailed, half about something else."""
    chance = random.Random(3)
    words = " ".join(topics[name] for name in sorted(topics)[:6]).split()
    starts = [chance.randrange(len(words) - 60) for _ in range(_N_PAIRS)]
    return [
        (" ".join(words[at + shift : at + shift + 7]), " ".join(words[at : at + 20]))
        for at, shift in zip(starts, [0, 16] * (_N_PAIRS // 2), strict=True)
    ]


@cache
def _logits(near: float | None) -> list[list[float]]:
    if near is None:
        return CrossEncoder(bundled_files(), known_bytes=0).logits(_pairs())
    return BoundedEncoder(near).logits(_pairs())


def _gap(logits: list[float]) -> float:
    *_, second, first = sorted(logits[:3])
    return first - second


def _near_ties() -> list[int]:
    return [at for at, each in enumerate(_logits(IN_8_BITS)) if _gap(each) < NEAR]


def test_a_near_tie_has_the_logits_of_the_weights_in_32_bits() -> None:
    near = _near_ties()

    assert near
    assert [_logits(None)[at] for at in near] == [_logits(IN_32_BITS)[at] for at in near]


def test_any_other_pair_is_read_once_in_8_bits() -> None:
    others = sorted(set(range(_N_PAIRS)) - {*_near_ties()})

    assert others
    assert [_logits(None)[at] for at in others] == [_logits(IN_8_BITS)[at] for at in others]


def test_8_bits_move_no_logit_far_from_those_in_32_bits() -> None:
    rows = zip(_logits(IN_8_BITS), _logits(IN_32_BITS), strict=True)
    gaps = [abs(one - other) for row, exact in rows for one, other in zip(row, exact, strict=True)]

    assert 0 < max(gaps) < 0.5


@pytest.mark.parametrize("near", [NEAR, IN_32_BITS])
def test_what_is_read_again_does_not_depend_on_the_pairs_beside_it(near: float) -> None:
    encoder, chosen = BoundedEncoder(near), [*_near_ties(), 0, 1, 2]
    pairs = [_pairs()[at] for at in chosen]

    alone = [encoder.logits([pair])[0] for pair in pairs]

    assert encoder.logits(pairs) == alone
    assert encoder.logits(pairs[::-1]) == alone[::-1]
