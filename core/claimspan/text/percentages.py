"""Shares as people write and read them: numbers from 0 to 1, and the percentages they stand for."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["from_percent", "in_percent", "percent_hint"]

_PERCENTAGE: Final = re.compile(r"\s*(\d{1,3}(?:[.,]\d{1,9})?)\s*+%?\s*+")

_MOST_DECIMALS: Final = 15
"""Decimals of a percentage; a double near 100 has no more."""


def in_percent(share: float, *, in_table: bool = False) -> str:
    """Write a share in percent, so that only nothing reads as 0 % and only all of it as 100 %.

    Args:
        share: From 0 to 1.
        in_table: Whether other shares stand below it, so that whole ones have a decimal too.

    Returns:
        With one decimal if there is one, and with more if it would read as 0 or 100: ``5%``
        (``5.0%`` in a table), ``2.5%``, ``0.04%``, ``99.96%``.
    """
    decimals = 1
    while 0.0 < share < 1.0 and _at_an_end(share, decimals) and decimals < _MOST_DECIMALS:
        decimals += 1
    if share and not round(100 * share, decimals):
        return f"{100 * share:g}%"  # by its power of ten
    text = f"{100 * share:.{decimals}f}"
    return f"{text if in_table else text.removesuffix('.0')}%"


def from_percent(value: object) -> float | None:
    """Return the share that a percentage stands for; None if a value reads as none.

    Args:
        value: A value given in place of a share, such as ``80`` or ``"80%"``.
    """
    if isinstance(value, str):
        found = _PERCENTAGE.fullmatch(value)
        percentage = 0.0 if found is None else float(found[1].replace(",", "."))
        has_sign = "%" in value  # without it, "0.8" is a share that was given as a text
    elif isinstance(value, int | float):
        percentage, has_sign = value, False
    else:
        return None
    is_one = (0 if has_sign else 1) < percentage <= 100
    return round(percentage / 100, 12) if is_one else None


def percent_hint(value: object) -> str:
    """Return the correct form of a percentage, such as ``", such as 0.8 for 80 %"``.

    Args:
        value: A value given in place of a share.

    Returns:
        The end of a message that asks for a share; empty if the value reads as no percentage.
    """
    share = from_percent(value)
    return "" if share is None else f", such as {share:g} for {in_percent(share)[:-1]} %"


def _at_an_end(share: float, decimals: int) -> bool:
    return round(100 * share, decimals) in (0.0, 100.0)
