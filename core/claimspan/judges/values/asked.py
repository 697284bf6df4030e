"""Reads from a question what kind of value it asks for: scale, unit and precision."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache
from typing import Final, NamedTuple

from claimspan.text.amounts import SCALES
from claimspan.text.words import CARDINALS

__all__ = ["LOSS", "Asked", "asked_value", "stated_scale"]

_MONEY: Final = r"(?:us\s?\$|usd|\$|us dollars?|dollars?|€|eur|euros?|£|gbp)"
_SCALED: Final = re.compile(
    rf"\b(?:in|as)\s+(?:units of\s+)?(?:{_MONEY}\s*)?(?:the\s+)?(thousand|million|billion)s?\b"
    rf"|{_MONEY}\s*(?:in\s+)?(thousand|million|billion|mn|bn)s?\b"
    r"|\(\s*(?:in\s+)?(thousand|million|billion)s?\b",
    re.IGNORECASE,
)
_IN_PERCENT: Final = re.compile(r"%|\bper\s?cents?\b|\bpercentages?\b|\bpct\b", re.IGNORECASE)
_SHARE: Final = re.compile(
    r"\b(?:margin|rate|growth|cagr|yield|share|proportion|fraction|return on|ro[aei])\b",
    re.IGNORECASE,
)
_DECIMALS: Final = re.compile(
    rf"\b(\d|{'|'.join(CARDINALS)})\s+(?:decimals?|digits? after)\b", re.IGNORECASE
)
_COMPUTED: Final = re.compile(
    r"\bround\w* (?:\w+ ){0,3}to\b|\bcalculat\w*|\bcomput\w*|\bdefined? (?:\w+ ){0,6}as\b",
    re.IGNORECASE,
)
LOSS: Final = re.compile(
    r"\b(?:declin|decreas|fell|fall|drop|negativ|shrank|shrunk|shrink|deficit|lower|down|reduc|"
    r"loss|lost|los[et]|minus|contract)\w*",
    re.IGNORECASE,
)
"""Words by which a positive number stands for a negative one: a decline of 2 %."""


class Asked(NamedTuple):
    """What a question says about the value that answers it."""

    scale: Decimal | None = None
    """The factor of the answer's numbers, such as 1e6; None where the question names none."""

    in_percent: bool = False
    """Whether a number without a unit is a percentage, or the share that it stands for."""

    may_be_share: bool = False
    """Whether the answer is a ratio that is also written as a percentage, such as a margin."""

    decimals: int | None = None
    """Digits after the point that the answer is to have."""

    is_computed: bool = False
    """Whether the answer is to be calculated, so that its last digit depends on roundings before.
    """

    is_loss: bool = False
    """Whether the question asks how much something fell, so that a sign tells nothing."""

    is_known: bool = False
    """Whether there is a question at all."""

    text: str = ""
    """The question itself."""

    @property
    def is_scaled(self) -> bool:
        """Whether the question says what a number without scale and unit stands for."""
        return self.scale is not None or self.in_percent


# The same question comes with every cell of a matrix; records are evaluated a few at a time.
@lru_cache(maxsize=16)
def asked_value(question: str | None) -> Asked:
    """Reads a question.

    Args:
        question: The question that a claim answers; None where unknown.

    Returns:
        What it says about the value; the defaults where it says nothing.
    """
    if not question or not question.strip():
        return Asked()
    in_percent = bool(_IN_PERCENT.search(question))
    decimals = _DECIMALS.search(question)
    return Asked(
        # "in USD millions and as a percentage" asks for two things, and fixes no scale.
        scale=None if in_percent else stated_scale(question),
        in_percent=in_percent,
        may_be_share=in_percent or bool(_SHARE.search(question)),
        decimals=_digit(decimals[1]) if decimals else None,
        is_computed=bool(decimals or _COMPUTED.search(question)),
        is_loss=bool(LOSS.search(question)),
        is_known=True,
        text=question,
    )


def stated_scale(text: str) -> Decimal | None:
    """Returns the factor that a text states for its numbers: ``in USD millions``, ``(Thousands)``.

    Args:
        text: A question, or a text with tables.

    Returns:
        The factor; None where the text states none, or more than one.
    """
    found = {
        SCALES[next(filter(None, match.groups())).casefold()] for match in _SCALED.finditer(text)
    }
    return found.pop() if len(found) == 1 else None


def _digit(written: str) -> int:
    return int(CARDINALS.get(written.casefold(), written))
