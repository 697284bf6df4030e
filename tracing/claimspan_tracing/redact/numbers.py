"""Numbers of a known kind: cards, bank accounts, telephone numbers.

A number counts only if its check digits or its country's numbering plan bear it out, so that order
numbers, dates, sums and versions stay as they are. Texts are read folded, and the time is linear in
them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Final

import phonenumbers
from stdnum import iban, luhn, numdb

from claimspan_tracing.redact.folding import Place

__all__ = ["find_cards", "find_ibans", "find_phones"]

# --- cards --------------------------------------------------------------------------------------

# In one piece, digit by digit, in groups of four or eight, or as American Express and Diners print
# them. Looked for at every number that begins there, since the one before may have been no card.
_BETWEEN: Final = r"(?:[\s./_|•-]{1,3}|,)"
_CARD: Final = re.compile(
    rf"\d(?<![\d.]\d)(?=(?P<rest>\d{{12,18}}|(?:{_BETWEEN}\d){{12,18}}|\d{{7}}{_BETWEEN}\d{{8}}"
    rf"|\d{{3}}(?:{_BETWEEN}\d{{4}}){{3}}(?:{_BETWEEN}\d{{1,3}})?"
    rf"|\d{{3}}{_BETWEEN}\d{{6}}{_BETWEEN}\d{{4,5}})(?!\d))"
)
# Visa; Mastercard; American Express; Diners; Discover, UnionPay, JCB; Maestro. Without them, one
# order number in ten would pass the check digit.
_ISSUER: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})"
    r"|(?:5[1-5]\d{2}|222[1-9]|22[3-9]\d|2[3-6]\d{2}|27[01]\d|2720)\d{12}"
    r"|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11}"
    r"|(?:6011|64[4-9]\d|65\d{2}|62\d{2}|35\d{2})\d{12,15}"
    r"|(?:50|5[6-9]|6[37])\d{11,17}"
)


def find_cards(text: str) -> Iterator[Place]:
    """Yield payment cards: the prefix of an issuer, its length, and a right check digit."""
    for found in _CARD.finditer(text):
        digits = _NO_DIGIT.sub("", found[0] + found["rest"])
        if _ISSUER.fullmatch(digits) and luhn.is_valid(digits):
            yield found.start(), found.end("rest")


_NO_DIGIT: Final = re.compile(r"\D+")


# --- bank accounts ------------------------------------------------------------------------------

_IBAN: Final = re.compile(
    r"(?<![A-Za-z0-9])(?=([A-Za-z]{2}\s?\d\s?\d(?:[\s./-]{0,3}[A-Za-z0-9]){10,30}))"
)
_PART: Final = re.compile("[A-Za-z0-9]")


def find_ibans(text: str) -> Iterator[Place]:
    """Yield bank accounts: a country's length and form, and right check digits."""
    for found in _IBAN.finditer(text):
        start = found.start()
        # What follows may look like a part of the number; its country says how long it is.
        length = _iban_length(text[start : start + 2].upper())
        ends = [start + part.end() for part in _PART.finditer(found[1])] if length else []
        if len(ends) >= length > 0:
            end = ends[length - 1]
            number = "".join(_PART.findall(text[start:end])).upper()
            if not text[end : end + 1].isalnum() and iban.is_valid(number, check_country=False):
                yield start, end


@cache
def _iban_length(country: str) -> int:
    """Characters of an account of a country; 0 if it has none. Cached: 676 at most."""
    _, properties = numdb.get("iban").info(country)[0]
    parts = re.findall(r"\d+", properties.get("bban", ""))
    return 4 + sum(map(int, parts)) if parts else 0


# --- telephone numbers --------------------------------------------------------------------------

_SEPARATORS: Final = r"(?:[ \t()./-]|\n(?!\n))"
# What follows may be the next line or cell, with a number of its own.
_BREAK: Final = re.compile(r"[\n\t]")
# A digit in a word belongs to the word, but for scripts that put no space before a number.
_WORD: Final = r"[0-9A-Za-z_\u00c0-\u052f]"
_RUN: Final = re.compile(rf"(?<!{_WORD})(?:\+|\(\+?)?\d(?:{_SEPARATORS}{{0,4}}+\+?\d)*+")
_AFTER: Final = re.compile(_WORD)
_GROUP: Final = re.compile(r"\+?\d+")

# Words that come before a telephone number, and before numbers of other kinds.
_PHONE_WORD: Final = re.compile(
    r"(?:\b(?:phone|tel|fax|call|ring|dial|mobile?|cell|whatsapp|signal|sms|text|gsm|handy|ruf"
    r"|t[ée]l[ée]phone|telefon\w*|tel[ée]fono\w*|m[óo]vil|cellulare|portable|klic\w*|пишите|звон\w*"
    r"|тел\w*)\b|电话|電話|手机|手機|携帯|전화|هاتف|फ़ोन|फोन)\W{0,3}(?:\w{1,12}\W{1,3}){0,4}$",
    re.IGNORECASE,
)
_OTHER_WORD: Final = re.compile(
    r"(?:\b(?:isbn|issn|doi|order|invoice|ticket|case|ref|reference|id|sku|ean|upc|serial|version"
    r"|v|no|nr|art|rfc|page|pages|pp|lot|part|patent|commande|facture|pedido|factura|rechnung"
    r"|bestell(?:ung|nummer)|ra[čc]un|naro[čc]il[oa]|заказ)|订单|編號|编号)"
    r"(?:\s(?:no|nr|number|id))?[\s.:#-]{0,3}$|[$€£¥#=]\s?$|\w[-_]$|\d:$",
    re.IGNORECASE,
)
_UNIT: Final = re.compile(
    r"\s?(?:[$€£¥%°]|(?:EUR|USD|GBP|CHF|Euro|Dollar|kg|km|m|MB|GB|kB|ms)\b)|,\d"
)
_DATE: Final = re.compile(
    r"(?:\d{4}([-./])\d{1,2}\1\d{1,2}|\d{1,2}([-./] ?)\d{1,2}\2\d{2,4})(?: \d{1,2})?"
)
_DAY: Final = re.compile(r"(?<!\d)(?:19|20)\d\d-[01]\d-[0-3]\d(?!\d)")
_THOUSANDS: Final = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+|[1-9]\d?(?: \d{3})+")
# Versions and columns: who writes a telephone number with dots writes it with dots alone.
_DECIMALS: Final = re.compile(r"\d[\d.]*\.\d+[ (][\d. (]+|\d+ [\d. ]*\d\.\d+")
_ADDRESS: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")

BEFORE: Final = 40
"""Characters before a number in which a word may name its kind."""

MAX_GROUPS: Final = 8
"""Groups of digits in one number; the French write five, some write more."""

MIN_DIGITS: Final = 7
MAX_DIGITS: Final = 17
"""With an international prefix of two digits; the numbering plan of the world allows 15."""

MAX_CHECKS: Final = 4_000
"""Candidates of one text that are looked up: about 0.1 ms each. A text with more is no prose; what
is left of it counts as telephone numbers, unseen."""


def find_phones(text: str, regions: Sequence[str]) -> Iterator[Place]:
    """Yield telephone numbers that a numbering plan allows.

    Args:
        text: Any text.
        regions: Countries whose national spellings count; ``+`` and ``00`` count anywhere.
    """
    checks = _Checks(regions)
    for run in _RUN.finditer(text):
        groups = [found.span() for found in _GROUP.finditer(text, run.start(), run.end())]
        if _AFTER.match(text, run.end()):
            groups.pop()  # a part of a word, such as a hash
        if not groups or groups[-1][1] - groups[0][0] < MIN_DIGITS:
            continue
        lines = list(_lines(text, groups))
        found = [place for line in lines for place in _phones_in(text, line, checks)]
        yield from found or (_phones_in(text, groups, checks) if len(lines) > 1 else ())


def _lines(text: str, groups: Sequence[Place]) -> Iterator[Sequence[Place]]:
    """Split groups where a line or a cell ends between two of them."""
    first = 0
    for last, ((_, end), (start, _)) in enumerate(pairwise(groups), start=1):
        if _BREAK.search(text, end, start):
            yield groups[first:last]
            first = last
    yield groups[first:]


class _Checks:
    """Looks numbers up in the numbering plans, each spelling once."""

    def __init__(self, regions: Sequence[str]) -> None:
        self._regions = regions
        self._known: dict[str, bool] = {}

    def is_phone(self, number: str) -> bool:
        if number not in self._known:
            if len(self._known) >= MAX_CHECKS:
                return True
            regions = [None] if number.startswith("+") else self._regions
            self._known[number] = any(_is_valid(number, region) for region in regions)
        return self._known[number]


def _is_valid(spelling: str, region: str | None) -> bool:
    try:
        return phonenumbers.is_valid_number(phonenumbers.parse(spelling, region))
    except phonenumbers.NumberParseException:
        return False


def _phones_in(text: str, groups: Sequence[Place], checks: _Checks) -> Iterator[Place]:
    """The numbers in a row of groups; the longest that begins at a group counts."""
    start = groups[0][0]
    introduced = _PHONE_WORD.search(text[max(0, start - BEFORE) : start]) is not None
    first = 0
    while first < len(groups):
        is_marked = introduced if first == 0 else False
        ends = _ends(text, groups, first, is_marked or _has_area_code(text, groups[first]))
        last = next((last for last, number in ends if checks.is_phone(number)), None)
        if last is not None:
            start = groups[first][0]
            yield start - (text[start - 1 : start] == "("), groups[last][1]
        first = first + 1 if last is None else last + 1


def _has_area_code(text: str, group: Place) -> bool:
    """Whether a group is in parentheses, or begins with the trunk prefix."""
    start, end = group
    has_trunk_prefix = text[start] == "0" and end - start > 1
    return has_trunk_prefix or (text[start - 1 : start], text[end : end + 1]) == ("(", ")")


def _ends(
    text: str, groups: Sequence[Place], first: int, is_marked: bool
) -> Iterator[tuple[int, str]]:
    """The groups at which a number may end, the farthest first, each with that number."""
    start = groups[first][0]
    is_international = text[start] == "+" or text.startswith("00", start)
    is_bare = not (is_international or is_marked)
    # Without any mark the whole row has to be the number, in three groups or more of one line.
    is_row = first == 0 and 3 <= len(groups) <= MAX_GROUPS
    if is_bare and (not is_row or _BREAK.search(text, start, groups[-1][1])):
        return
    shortest = len(groups) - 1 if is_bare else first
    stop = min(first + MAX_GROUPS, len(groups))
    sizes = list(accumulate(end - start for start, end in groups[first:stop]))
    for last in reversed(range(shortest, stop)):
        if not MIN_DIGITS <= sizes[last - first] <= MAX_DIGITS:
            continue
        spelling = text[start : groups[last][1]]
        if is_international:
            yield last, "+" + _NO_DIGIT.sub("", spelling).removeprefix("00")
        elif not _is_other_number(text, start, groups[last][1]):
            yield last, _BREAK.sub(" ", spelling)


def _is_other_number(text: str, start: int, end: int) -> bool:
    """Whether digits are spelled, or introduced, as a number of another kind."""
    before, spelling = text[max(0, start - BEFORE) : start], text[start:end]
    if _DAY.search(spelling):
        return True
    if _PHONE_WORD.search(before):
        return False
    if any(form.fullmatch(spelling) for form in (_DATE, _THOUSANDS, _ADDRESS, _DECIMALS)):
        return True
    return bool(_OTHER_WORD.search(before) or _UNIT.match(text, end))
