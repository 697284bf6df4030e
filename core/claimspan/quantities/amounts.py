"""Finds the amounts of a text: numbers with sign, scale word, currency or unit, as written.

An amount keeps what was written apart, since a bare ``1,577`` is a thousandth of a million of what
it means if the question says "in millions".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final, Literal, NamedTuple, cast

from claimspan.quantities.vocabulary import BOUNDS, HEDGES, MONTHS
from claimspan.text.units import CELSIUS, CURRENCIES, FAHRENHEIT, PERCENT, PERCENTS, SCALES, UNITS
from claimspan.text.words import CARDINALS, FUNCTION_WORDS, stem

__all__ = [
    "BOUND_WORDS",
    "HEDGE_WORDS",
    "Amount",
    "AmountKind",
    "Bound",
    "amounts",
    "is_continental",
    "read_number",
]


# --- the forms of numbers -------------------------------------------------------------------------

# Numbers are decimals, not floats, so that a comparison at the edge of a rounding is exact.

# Thin, narrow and no-break spaces. A plain space also separates the columns of a table.
_SPACES: Final = "\u00a0\u2009\u202f"
_NUMBER: Final = re.compile(
    rf"\d{{1,3}}(?:[.,'’{_SPACES}]\d{{3}})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?|[.,]\d+"
)
_DIGIT: Final = re.compile(r"\d")
_CONTINENTAL: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})*,\d{1,2}(?!\d|[.,]\d)")
# Most texts have no such place, and it is found ten times as fast.
_DECIMAL_COMMA: Final = re.compile(r"\d,\d")
_ENGLISH: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})*\.\d{1,2}(?!\d|[.,]\d)|\d,\d{3}\.\d")
_OPEN: Final = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_GROUPS: Final = re.compile(r"\d{1,3}(?:([.,])\d{3})(?:\1\d{3})*")
# Longer ones are keys or dumps, and take quadratic time to convert.
_MAX_DIGITS: Final = 40


class WrittenNumber(NamedTuple):
    """A number with the precision that it is written to."""

    value: Decimal
    """The number."""

    step: Decimal
    """The value of its last digit: 0.01 for ``8.70``, 1 for ``1,577``."""


def _numbers(text: str) -> Iterator[re.Match[str]]:
    """Yields the numbers in digits of a text, in order."""
    end = 0
    # Looking for digits first takes a tenth of the time.
    while digit := _DIGIT.search(text, end):
        start = digit.start()
        if start > end and text[start - 1] in ".,":  # the point of ".5"
            start -= 1
        number = _NUMBER.match(text, start)
        if number is None:
            return
        end = number.end()
        if end - start <= _MAX_DIGITS:
            yield number


def is_continental(text: str) -> bool:
    """Tells whether a text writes decimals with a comma, and groups of thousands with a point.

    Only numbers that can be read in one way count: ``8,7`` and ``1.577,00`` against ``8.7``.
    """
    if not _DECIMAL_COMMA.search(text):
        return False
    return bool(_CONTINENTAL.search(text)) and not _ENGLISH.search(text)


def read_number(written: str, *, continental: bool = False) -> WrittenNumber:
    """Reads one number.

    Args:
        written: What ``_DIGITS`` matches, or an English number word up to ninety.
        continental: How to read ``1.577`` and ``1,577``, which alone could be either.

    Returns:
        The number with its precision.
    """
    if written.casefold() in CARDINALS:
        return WrittenNumber(Decimal(CARDINALS[written.casefold()]), Decimal(1))
    if written.isdecimal():
        return WrittenNumber(Decimal(written), Decimal(1))
    digits = re.sub(rf"['’{_SPACES}]", "", written)
    decimal = _decimal_sign(digits, continental=continental)
    whole, _, fraction = digits.rpartition(decimal) if decimal else (digits, "", "")
    # ".5" has nothing before its point.
    plain = re.sub(r"[.,]", "", whole) or "0"
    return WrittenNumber(
        Decimal(f"{plain}.{fraction}" if fraction else plain), Decimal(1).scaleb(-len(fraction))
    )


def _decimal_sign(digits: str, *, continental: bool) -> str:
    """Returns the sign before the fraction of a number; empty if it has none."""
    signs = [sign for sign in digits if sign in ".,"]
    if not signs:
        return ""
    if len(set(signs)) == 2:  # "1,577.00" and "1.577,00": the last one
        return signs[-1]
    if len(signs) > 1:  # "1.577.000": groups
        return ""
    # No group of thousands follows a 0: "0,577" and "0.577" are fractions in any language.
    if not _GROUPS.fullmatch(digits) or digits.startswith("0"):
        return signs[0]
    thousands = "." if continental else ","
    return "" if signs[0] == thousands else signs[0]


# --- what stands before a number ------------------------------------------------------------------

Bound = Literal["", "<", "<=", ">", ">="]
"""On which side of a number the value is, and whether the number itself may be it."""

HEDGE_WORDS: Final = frozenset(HEDGES)
"""Words in lower case by which a number is a rough figure."""

_BEFORE: Final[Mapping[str, Bound]] = {
    phrase: cast("Bound", bound) for bound, phrases in BOUNDS.items() for phrase in phrases
}
"""The bound that a phrase before a number makes of it; the longest phrase counts."""
_LAST_WORDS: Final = frozenset(phrase.rpartition(" ")[2] for phrase in _BEFORE)
_OPENING: Final = "([\"“„'’*"
_MOST_WORDS: Final = max(phrase.count(" ") for phrase in _BEFORE) + 1
_AFTER: Final = re.compile(
    r"(?:(?P<least>\s?\+|\sor (?:more|older|over|above)|\sand (?:over|above)|\soder mehr|\sali več"
    r"|\sou plus)|\sor (?:less|fewer|under)|\soder weniger|\sali manj|\sou moins)(?!\w)",
    re.IGNORECASE,
)
BOUND_WORDS: Final = frozenset(
    "ali and oder or ou fewer less manj mehr moins more older plus več weniger".split()
) | frozenset(word for phrase in _BEFORE for word in re.findall(r"[^\W\d_]+", phrase))
"""Words in lower case that bounds are made of."""


def _bound_before(words: list[str]) -> Bound:
    """Returns what kind of bound some words, the last before a number, make of it."""
    last = words[-1].casefold()
    if last.lstrip(_OPENING) in _LAST_WORDS:
        for count in range(min(_MOST_WORDS, len(words)), 0, -1):
            phrase = " ".join(words[-count:]).casefold().lstrip(_OPENING)
            if bound := _BEFORE.get(phrase):
                return bound
    # "x>=5"
    return _BEFORE.get(last[-2:], "") or _BEFORE.get(last[-1:], "") if last[-1] in "<>=≤≥" else ""


# --- amounts --------------------------------------------------------------------------------------

AmountKind = Literal["value", "year", "day", "ordinal", "label"]
"""A ``label`` numbers a list item, a note or an exhibit, and measures nothing."""

_Sign = Literal["", "-", "()"]
"""Whether a number is negative, and how: accounts write losses and payments in parentheses."""

_BELOW_ZERO: Final = re.compile(
    r"\s(?:below|unter|pod|sous)\s(?:0|zero|null|ničlo|zéro)\b", re.IGNORECASE
)
_SPACED: Final = re.compile(r"[-–]\s")
# A "10K run" is one of kilometres, "10-K" and "401k" are names.
_THOUSANDS: Final = re.compile(r"(?!401)\d{1,3}[kK]\s(?:people|[a-z]{3,}s)\b")
# Blanks before the sign of a list item.
_INDENT: Final = 8
_LABELS: Final = (
    "note exhibit item page section table step form part chapter article figure top passage source "
    "document chunk context reference paragraph para line footnote appendix seite stran str pp p"
).split()
_LABELLED: Final = re.compile(
    rf"(?:\b(?:{'|'.join(_LABELS)})s?\.?\s*|\[|(?:^|\n)\s*\(?)$", re.IGNORECASE
)
_RANKED: Final = re.compile(r"(?:\b(?:number|no\.?|nr\.?|rank(?:ed)?)\s*|#)$", re.IGNORECASE)
# With a capital: "may" is a verb.
_MONTH: Final = "|".join(each.capitalize() for each in sorted(MONTHS, key=len, reverse=True))
_MONTH_BEFORE: Final = re.compile(rf"\b(?:{_MONTH})\.?\s*$")
_MONTH_AFTER: Final = re.compile(rf"\s*(?:of\s+)?(?:{_MONTH})\b")
# Characters before a number that tell what it is.
_LOOK_AROUND: Final = 24
# Four digits below 1200 or above 2100 are more often a count than a year.
_YEARS: Final = range(1200, 2101)


def _either(spellings: Mapping[str, object]) -> str:
    """A pattern for any of some spellings; no letter follows one of letters."""
    # The longest first, since a pattern takes the first that fits: "us$" before "us".
    ordered = sorted(spellings, key=len, reverse=True)
    # A word would not end before a digit, but "USD1,577" is money all the same.
    end = r"(?![^\W\d_])"
    return "|".join(re.escape(each) + (end if each[-1].isalpha() else "") for each in ordered)


# Numbers are found first and then looked around: a pattern for both would be tried at every place.
_LEAD: Final = re.compile(
    r"(?P<minus>(?<![\w)%.])(?:[-−–]\s?(?=[$€£¥₹(]|$)|\b(?:minus|negative)\s+))?"
    r"(?P<open>\()?"
    rf"(?P<before>(?<!\w)(?:{_either(CURRENCIES)})\s?)?"
    r"(?P<open_inside>\()?(?P<minus_inside>(?<![\w)])[-−–])?$",
    re.IGNORECASE,
)
_LEAD_WIDTH: Final = 16
_TAIL: Final = re.compile(
    r"(?P<ordinal>(?:st|nd|rd|th)\b)?"
    r"(?P<close_early>\))?"
    rf"(?:(?P<glue>[\s-]?)(?P<scale>{_either(SCALES)})\.?(?!\w))?"
    rf"(?:\s?-?(?P<percent>{_either(PERCENTS)}))?"
    rf"(?:\s?(?:d['’]|of\s|de\s)?(?:U\.?S\.?\s)?(?P<after>{_either(CURRENCIES)}))?"
    r"(?P<close>\))?",
    re.IGNORECASE,
)
# "10-K" is a name, "two-disc" and "5-round" count discs and rounds.
_GLUED: Final = re.compile(r"(?!-[a-z]{3})-?(?!x\b)[^\W\d_]")
_ITEM_END: Final = re.compile(r"[.)]\s")
# "3M" is a company, "3 m" and "3m" are metres.
_NEXT_WORD: Final = re.compile(r"(?![A-Z]\b)[\s-]?([^\W\d_]+)")
_NOUN: Final = re.compile(r"[\s-]([^\W\d_]{3,})")
_MONEY: Final = frozenset(CURRENCIES.values())


class Amount(NamedTuple):
    """A number as it stands in a text."""

    value: Decimal
    """The number with its sign, without scale word and unit."""

    step: Decimal
    """The value of its last digit, likewise."""

    scale: Decimal | None
    """The factor of its scale word; None if none is written."""

    unit: str
    """``percent``, a currency, a dimension such as ``length``, or empty."""

    factor: Decimal
    """The factor of its unit to the base unit of the dimension; 1 for percent and money."""

    kind: AmountKind
    """The kind of number; most are values."""

    sign: _Sign
    """The minus sign or the parenthesis that makes it negative; empty if it is positive."""

    start: int
    """Its start in the text."""

    end: int
    """Its end in the text, with scale word and unit."""

    noun: str = ""
    """The stem of the word behind it, if that may be what is counted."""

    is_plural: bool = False
    """Whether that word looks like an English plural."""

    bound: Bound = ""
    """Whether it is a bound, as in "at least 18", and which."""

    alternate: Decimal | None = None
    """What else its digits may mean: ``12.500`` is twelve and a half, or thousands."""

    until: Decimal | None = None
    """The other end of a range that it begins, in the same scale and unit."""

    @property
    def is_money(self) -> bool:
        """Whether it is in a currency."""
        return self.unit in _MONEY


def amounts(text: str) -> Iterator[Amount]:
    """Yields every amount of a text, in order.

    Args:
        text: A text whose numbers are digits; see ``words.with_digits``.
    """
    continental = is_continental(text)
    # Whether "12.500" is a fraction, the other numbers of the text tell: they are looked at once.
    is_open = not continental and _ENGLISH.search(text) is None
    done = 0
    for number in _numbers(text):
        if number.start() >= done and (found := _Found.around(text, number, done)):
            amount = found.amount(continental=continental, is_open=is_open)
            if amount:
                done = amount.end
                yield amount


class _Found(NamedTuple):
    """A number with the text around it."""

    text: str
    number: re.Match[str]
    lead: re.Match[str]
    tail: re.Match[str]
    before: str
    words: list[str]

    @classmethod
    def around(cls, text: str, number: re.Match[str], done: int) -> _Found | None:
        """Looks around a number behind the earlier ones; None if it is part of a name."""
        start = number.start()
        before = text[max(start - _LOOK_AROUND, 0) : start]
        words = before.split()
        near = before[-_LEAD_WIDTH:]
        lead, tail = _LEAD.search(near), _TAIL.match(text, number.end())
        if lead and lead["minus"] and _is_dash(text, start - len(lead.group()), done):
            lead = _LEAD.search(near, lead.end("minus"))
        if lead is None or tail is None:
            return None
        # A number may stand behind a letter only if that ends a currency: "USD5", but not "B5".
        at = before[-1:]
        if (at == "-" and before[-2:-1].isalpha()) or (
            (at.isalnum() or at in ("_", ".", ",")) and at and not lead["before"]
        ):
            return None
        return cls(text, number, lead, tail, before, words)

    def amount(self, *, continental: bool, is_open: bool) -> Amount | None:
        """Reads the number with the text around it; None if it is part of a name.

        Args:
            continental: How its text writes decimals.
            is_open: Whether its text does not tell that.
        """
        text, written = self.text, self.number.group()
        number = read_number(written, continental=continental)
        scale, end = self._scale()
        unit, factor, end = self._unit(end)
        # "10-K", "737X" and "3D" are names.
        if not unit and end == self.number.end() and _GLUED.match(text, end):
            return None
        sign = self._sign()
        if unit in (CELSIUS, FAHRENHEIT) and (below := _BELOW_ZERO.match(text, end)):
            sign, end = "-", below.end()
        kind = self._kind() if scale is None and not unit and sign != "-" else "value"
        if kind in ("year", "label"):  # "(2018)" and "(1)" are no negative numbers
            sign = ""
        start = self.number.start() - len(self.lead.group())
        words = (
            text[max(start - _LOOK_AROUND, 0) : start].split() if self.lead.group() else self.words
        )
        word = _NOUN.match(text, end)
        noun = word[1] if word and word[1].casefold() not in FUNCTION_WORDS else ""
        amount = Amount(
            value=-number.value if sign else number.value,
            step=number.step,
            scale=scale,
            unit=unit,
            factor=factor,
            kind=kind,
            sign=sign,
            start=start,
            end=max(end, self.number.end()),
            noun=stem(noun),
            is_plural=noun.endswith("s") and not noun.endswith("ss"),
            bound=(_bound_before(words) if words else "") or _bound_behind(text, end),
            alternate=Decimal(written.replace(".", ""))
            if is_open and "." in written and _OPEN.fullmatch(written)
            else None,
        )
        return _in_celsius(amount) if unit == FAHRENHEIT else amount

    def _scale(self) -> tuple[Decimal | None, int]:
        """The factor of the scale word, and where the number ends with it."""
        tail, end = self.tail, self.number.end()
        written = tail["scale"]
        if written is None:
            return None, tail.end("ordinal") if tail["ordinal"] else end
        # "5 m" is five metres, and "3M" a company, but "$5m", "8.7B" and "10k users" are numbers.
        number = self.number.group()
        is_told = (
            len(written) > 1
            or self.lead["before"]
            or tail["after"]
            or (not tail["glue"] and ("." in number or "," in number))
            or _THOUSANDS.match(self.text, self.number.start())
        )
        return (SCALES[written.casefold()], tail.end("scale")) if is_told else (None, end)

    def _unit(self, end: int) -> tuple[str, Decimal, int]:
        """The unit of a number, its factor, and where the number ends with it."""
        tail = self.tail
        if tail["ordinal"]:  # "the 19th century" is no time that passes
            return "", Decimal(1), end
        if tail["percent"]:
            return PERCENT, PERCENTS[tail["percent"].casefold()], tail.end("percent")
        if currency := self.lead["before"]:  # in "$5 $6" the second sign is the next number's
            return CURRENCIES[currency.strip().casefold()], Decimal(1), end
        if currency := tail["after"]:
            return CURRENCIES[currency.casefold()], Decimal(1), tail.end("after")
        word = _NEXT_WORD.match(self.text, end)
        if word and (known := UNITS.get(stem(word[1]))):
            return known.dimension, known.factor, word.end()
        return "", Decimal(1), end

    def _sign(self) -> _Sign:
        lead, tail = self.lead, self.tail
        if lead["minus"] or lead["minus_inside"]:
            return "-"
        # A parenthesis that stays open begins a remark, as in "(370 in 2017)".
        opened = lead["open"] or lead["open_inside"]
        return "()" if opened and (tail["close_early"] or tail["close"]) else ""

    def _kind(self) -> AmountKind:
        """What a number without scale, unit and minus is."""
        written, end, before = self.number.group(), self.number.end(), self.before
        if self.tail["ordinal"] or _RANKED.search(before):
            return "ordinal"
        if not written.isdigit():
            return "value"
        if int(written) <= 31 and (
            _MONTH_BEFORE.search(before) or _MONTH_AFTER.match(self.text, end)
        ):
            return "day"
        if len(written) == 4 and int(written) in _YEARS:
            return "year"
        if not _LABELLED.search(before):
            return "value"
        is_item = len(written) <= 2 and _ITEM_END.match(self.text, end)
        return "label" if before.strip(" \n(") or is_item else "value"


def _bound_behind(text: str, end: int) -> Bound:
    words = _AFTER.match(text, end)
    return "" if words is None else ">=" if words["least"] else "<="


def _is_dash(text: str, at: int, end: int) -> bool:
    """Tells whether a sign before a number is no minus: in ``5 - 7 days``, and of a list item."""
    if not _SPACED.match(text, at):
        return False
    joins = 0 < end <= at and text[end:at].isspace()
    line = text.rfind("\n", max(at - _INDENT, 0), at)
    opens = (line >= 0 or at <= _INDENT) and not text[line + 1 : at].strip()
    return joins or opens


def _in_celsius(amount: Amount) -> Amount:
    ratio = Decimal("1.8")
    return amount._replace(
        value=(amount.value - 32) / ratio, step=amount.step / ratio, unit=CELSIUS
    )
