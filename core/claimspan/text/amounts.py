"""Finds the amounts of a text: numbers with sign, scale word, currency or unit, as written.

``quantities`` looks at words and converts at once. An amount keeps what was written apart, since a
bare ``1,577`` is a thousandth of a million of what it means where the question says "in millions".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from claimspan.text.number_forms import NUMBER, is_continental, read_number
from claimspan.text.quantities import MONTHS, UNITS
from claimspan.text.words import stem

__all__ = ["PERCENT", "SCALES", "Amount", "AmountKind", "Sign", "amounts"]

AmountKind = Literal["value", "year", "day", "ordinal", "label"]
"""A ``label`` numbers a list item, a note or an exhibit, and measures nothing."""

Sign = Literal["", "-", "()"]
"""Whether a number is negative, and how: accounts write losses and payments in parentheses."""

PERCENT: Final = "percent"
"""The unit of shares in hundred: percent, percentage points, basis points."""

SCALES: Final = {
    spelling: Decimal(f"1e{power}")
    for power, spellings in (
        (2, "hundred hundreds"),
        (3, "k thousand thousands"),
        (6, "m mm mn mln mio million millions"),
        (9, "b bn bln mrd billion billions"),
        (12, "tn trn trillion trillions"),
    )
    for spelling in spellings.split()
}
"""The factor of a scale word in lower case: ``million`` and ``mn`` are 1e6."""

_CURRENCIES: Final = {
    spelling: unit
    for unit, spellings in (
        ("dollars", "$ us$ usd dollar dollars"),
        ("euros", "€ eur euro euros"),
        ("sterling", "£ gbp"),
        ("yen", "¥ jpy yen"),
        ("rupees", "₹ inr rupee rupees"),
        ("francs", "chf"),
    )
    for spelling in spellings.split()
}
_PERCENTS: Final = {
    **dict.fromkeys(
        ("%", "percent", "per cent", "pct", "percentage point", "percentage points", "pp"),
        Decimal(1),
    ),
    **dict.fromkeys(("bps", "basis point", "basis points"), Decimal("0.01")),
}
_HEDGES: Final = re.compile(
    r"(?:~|≈|\b(?:about|approximately|approx\.?|around|roughly|nearly|almost|some|circa|c\.))\s*$",
    re.IGNORECASE,
)
_LABELLED: Final = re.compile(
    r"(?:\b(?:note|exhibit|item|page|section|table|step|form|part|chapter|article|figure)s?\s*|"
    r"(?:^|\n)\s*\(?)$",
    re.IGNORECASE,
)
_RANKED: Final = re.compile(r"(?:\b(?:number|no\.?|nr\.?|rank(?:ed)?)\s*|#)$", re.IGNORECASE)
# With a capital: "may" is a verb.
_MONTH: Final = "|".join(each.capitalize() for each in sorted(MONTHS, key=len, reverse=True))
_MONTH_BEFORE: Final = re.compile(rf"\b(?:{_MONTH})\.?\s*$")
_MONTH_AFTER: Final = re.compile(rf"\s*(?:of\s+)?(?:{_MONTH})\b")
# Longer ones are keys or dumps, and take quadratic time to convert.
_MAX_DIGITS: Final = 40
# Characters before a number that tell what it is.
_BEFORE: Final = 24
# Four digits below 1200 or above 2100 are more often a count than a year.
_YEARS: Final = range(1200, 2101)


def _either(spellings: dict[str, str] | dict[str, Decimal]) -> str:
    """A pattern for any of some spellings; no letter follows one of letters."""
    # The longest first, since a pattern takes the first that fits: "us$" before "us".
    ordered = sorted(spellings, key=len, reverse=True)
    # A word would not end before a digit, but "USD1,577" is money all the same.
    end = r"(?![^\W\d_])"
    return "|".join(re.escape(each) + (end if each[-1].isalpha() else "") for each in ordered)


# A number may stand behind a letter only where that ends a currency: "USD5", but not "B5".
_AMOUNT: Final = re.compile(
    r"(?P<minus>(?<![\w)%.])(?:[-−–]\s?(?=[$€£¥₹(\d.])|\b(?:minus|negative)\s+))?"
    r"(?P<open>\()?"
    rf"(?P<before>(?<!\w)(?:{_either(_CURRENCIES)})\s?)?"
    r"(?P<open_inside>\()?(?P<minus_inside>(?<![\w)])[-−–])?"
    rf"(?:(?<![\w.,])|(?<=[a-z])(?(before)|(?!)))(?<![^\W\d_]-)"
    rf"(?P<number>{NUMBER})"
    r"(?P<ordinal>(?:st|nd|rd|th)\b)?"
    r"(?P<close_early>\))?"
    rf"(?:(?P<glue>[\s-]?)(?P<scale>{_either(SCALES)})\.?(?!\w))?"
    rf"(?:\s?-?(?P<percent>{_either(_PERCENTS)}))?"
    rf"(?:\s(?:U\.?S\.?\s)?(?P<after>{_either(_CURRENCIES)}))?"
    r"(?P<close>\))?",
    re.IGNORECASE,
)
_GLUED: Final = re.compile(r"-?(?!x\b)[^\W\d_]")
# "3M" is a company, "3 m" and "3m" are metres.
_NEXT_WORD: Final = re.compile(r"(?![A-Z]\b)[\s-]?([^\W\d_]+)")


class Amount(NamedTuple):
    """A number as it stands in a text."""

    value: Decimal
    """The number with its sign, without scale word and unit."""

    step: Decimal
    """The value of its last digit, likewise."""

    scale: Decimal | None
    """The factor of its scale word; None where none is written."""

    unit: str
    """``percent``, a currency, a dimension such as ``length``, or empty."""

    factor: Decimal
    """The factor of its unit to the base unit of the dimension; 1 for percent and money."""

    kind: AmountKind
    """What the number is; most are values."""

    sign: Sign
    """How it is marked as negative."""

    is_hedged: bool
    """Whether a word such as "about" stands before it."""

    start: int
    """Where it begins in the text."""

    end: int
    """Where it ends in the text, with scale word and unit."""

    @property
    def is_money(self) -> bool:
        """Whether it is in a currency."""
        return self.unit in _CURRENCIES.values()


def amounts(text: str) -> Iterator[Amount]:
    """Yields every amount of a text, in order.

    Args:
        text: Any text; words for units, scales and small numbers are English.
    """
    continental = is_continental(text)
    for match in _AMOUNT.finditer(text):
        if amount := _amount(text, match, continental=continental):
            yield amount


def _amount(text: str, match: re.Match[str], *, continental: bool) -> Amount | None:
    if len(match["number"]) > _MAX_DIGITS:
        return None
    number = read_number(match["number"], continental=continental)
    scale, end = _scale(match)
    unit, factor, end = _unit(text, match, end)
    before = text[max(match.start("number") - _BEFORE, 0) : match.start("number")]
    # "10-K", "737X" and "3D" are names.
    is_name = _GLUED.match(text, end) is not None and end == match.end("number")
    if is_name and not unit:
        return None
    sign = _sign(match)
    is_plain = scale is None and not unit and sign != "-"
    kind = _kind(text, match, before) if is_plain else "value"
    if kind in ("year", "label"):  # "(2018)" and "(1)" are no negative numbers
        sign = ""
    return Amount(
        value=-number.value if sign else number.value,
        step=number.step,
        scale=scale,
        unit=unit,
        factor=factor,
        kind=kind,
        sign=sign,
        is_hedged=bool(_HEDGES.search(text[max(match.start() - _BEFORE, 0) : match.start()])),
        start=match.start(),
        end=max(end, match.end("number")),
    )


def _scale(match: re.Match[str]) -> tuple[Decimal | None, int]:
    """The factor of the scale word, and where the number ends with it."""
    written = match["scale"]
    if written is None:
        return None, match.end("ordinal") if match["ordinal"] else match.end("number")
    # "5 m" is five metres, and "3M" a company, but "$5m" and "8.7B" are money.
    is_letter = len(written) == 1
    is_money = bool(match["before"] or match["after"])
    if is_letter and not is_money and (match["glue"] or not re.search(r"[.,]", match["number"])):
        return None, match.end("number")
    return SCALES[written.casefold()], match.end("scale")


def _unit(text: str, match: re.Match[str], end: int) -> tuple[str, Decimal, int]:
    """The unit of a number, its factor, and where the number ends with it."""
    if match["percent"]:
        return PERCENT, _PERCENTS[match["percent"].casefold()], match.end("percent")
    if currency := match["before"] or match["after"]:
        at = match.end("after") if match["after"] else end
        return _CURRENCIES[currency.strip().casefold()], Decimal(1), at
    word = _NEXT_WORD.match(text, end)
    if word and (known := UNITS.get(stem(word[1]))):
        dimension, factor = known
        return dimension, Decimal(str(factor)), word.end()
    return "", Decimal(1), end


def _sign(match: re.Match[str]) -> Sign:
    if match["minus"] or match["minus_inside"]:
        return "-"
    # A parenthesis that stays open begins a remark, as in "(370 in 2017)".
    opened = match["open"] or match["open_inside"]
    closed = match["close_early"] or match["close"]
    return "()" if opened and closed else ""


def _kind(text: str, match: re.Match[str], before: str) -> AmountKind:
    """What a number without scale, unit and minus is."""
    written = match["number"]
    if match["ordinal"] or _RANKED.search(before):
        return "ordinal"
    if not written.isdigit():
        return "value"
    if int(written) <= 31 and (
        _MONTH_BEFORE.search(before) or _MONTH_AFTER.match(text, match.end("number"))
    ):
        return "day"
    if len(written) == 4 and int(written) in _YEARS:
        return "year"
    follows = text[match.end("number") : match.end("number") + 2]
    is_item = len(written) <= 2 and re.match(r"[.)]\s", follows)
    return "label" if _LABELLED.search(before) and (is_item or before.strip(" \n(")) else "value"
