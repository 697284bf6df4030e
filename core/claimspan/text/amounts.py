"""Finds the amounts of a text: numbers with sign, scale word, currency or unit, as written.

An amount keeps what was written apart, since a bare ``1,577`` is a thousandth of a million of what
it means where the question says "in millions".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final, Literal, NamedTuple

from claimspan.text.units import CELSIUS, CURRENCIES, FAHRENHEIT, PERCENT, PERCENTS, SCALES, UNITS
from claimspan.text.value_signs import DIGIT, MONTHS, signs_of
from claimspan.text.value_words import with_digits
from claimspan.text.words import CARDINALS, FUNCTION_WORDS, stem

__all__ = [
    "BOUND_WORDS",
    "HEDGE_WORDS",
    "LEADING_WORDS",
    "PERCENT",
    "SCALES",
    "Amount",
    "AmountKind",
    "WrittenNumber",
    "amounts",
    "amounts_in_digits",
    "is_continental",
    "is_hedged",
    "read_number",
]


# --- the forms of numbers -------------------------------------------------------------------------

# Numbers are decimals, not floats, so that a comparison at the edge of a rounding is exact.

# Thin, narrow and no-break spaces. A plain space also separates the columns of a table.
_SPACES: Final = "\u00a0\u2009\u202f"
_DIGITS: Final = (
    rf"(?:\d{{1,3}}(?:[.,'’{_SPACES}]\d{{3}})+(?!\d)(?:[.,]\d+)?|\d+(?:[.,]\d+)?|[.,]\d+)"
)
"""A pattern for one number in digits, without its sign."""
_NUMBER: Final = re.compile(_DIGITS)
_DIGIT: Final = re.compile(r"\d")

_CONTINENTAL: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})*,\d{1,2}(?!\d|[.,]\d)")
# Most texts have no such place, and it is found ten times as fast.
_DECIMAL_COMMA: Final = re.compile(r"\d,\d")
_ENGLISH: Final = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})*\.\d{1,2}(?!\d|[.,]\d)|\d,\d{3}\.\d")
_OPEN: Final = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_GROUPS: Final = re.compile(r"\d{1,3}(?:([.,])\d{3})(?:\1\d{3})*")


class WrittenNumber(NamedTuple):
    """A number with the precision that it is written to."""

    value: Decimal
    """The number."""

    step: Decimal
    """The value of its last digit: 0.01 for ``8.70``, 1 for ``1,577``."""


def _find_numbers(text: str) -> Iterator[re.Match[str]]:
    """Yields the numbers in digits of a text, in order, each as ``_DIGITS`` matches it."""
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
        yield number


def is_continental(text: str) -> bool:
    """Tells whether a text writes decimals with a comma, and groups of thousands with a point.

    Only numbers that can be read in one way count: ``8,7`` and ``1.577,00`` against ``8.7``.

    Args:
        text: Any text; in doubt it is taken for English.
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


def _other_reading(written: str, text: str) -> Decimal | None:
    """Returns what a number is in the other convention, where its text does not tell which it has.

    Returns:
        12500 for ``12.500``; None for a number that can be read in one way only.
    """
    is_open = "." in written and bool(_OPEN.fullmatch(written)) and not _ENGLISH.search(text)
    return Decimal(written.replace(".", "")) if is_open else None


def _decimal_sign(digits: str, *, continental: bool) -> str:
    """Returns the sign before the fraction of a number; empty where it has none."""
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


# --- what stands beside a number ------------------------------------------------------------------

_Bound = Literal["", "<", "<=", ">", ">="]
"""On which side of a number the value is, and whether the number itself may be it."""

HEDGE_WORDS: Final = frozenset(
    "about approximately approx around roughly nearly almost some circa c ca etwa ungefähr rund "
    "knapp približno okoli okrog skoraj environ presque autour près".split()
)
"""Words in lower case by which a number is a rough figure."""
_HEDGES: Final = re.compile(
    rf"(?:~|≈|\b(?:{'|'.join(sorted(HEDGE_WORDS, key=len, reverse=True))})\.?(?:\sde)?)\s*$",
    re.IGNORECASE,
)
_BEFORE: Final[tuple[tuple[_Bound, str], ...]] = (
    (">=", r"(?:no|not) (?:less|fewer) than|nicht weniger als|pas moins de|ne manj kot"),
    ("<=", r"(?:no|not) more than|nicht mehr als|pas plus de|ne več kot"),
    (
        ">",
        r">|over|above|more than|greater than|exceed(?:s|ed|ing)?|beyond|über|mehr als|več kot|nad|"
        r"plus de|au-delà de",
    ),
    (
        ">=",
        r"≥|>=|at least|(?:a )?minimum(?: of)?|from at least|mindestens|wenigstens|vsaj|najmanj|"
        r"au moins",
    ),
    (
        "<",
        r"<|under|below|less than|fewer than|weniger als|unter|manj kot|pod|moins de",
    ),
    (
        "<=",
        r"≤|<=|up to|at most|(?:a )?maximum(?: of)?|within|bis zu|höchstens|maximal|do|največ|"
        r"jusqu['’]à|au plus|au maximum",
    ),
)
_AFTER: Final[tuple[tuple[_Bound, str], ...]] = (
    (
        ">=",
        r"\s?\+|\sor (?:more|older|over|above)|\sand (?:over|above)|\soder mehr"
        r"|\sali več|\sou plus",
    ),
    ("<=", r"\sor (?:less|fewer|under)|\soder weniger|\sali manj|\sou moins"),
)
_BEFORE_PATTERNS: Final[tuple[tuple[_Bound, re.Pattern[str]], ...]] = tuple(
    (bound, re.compile(rf"(?<!\w)(?:{words})\s*$", re.IGNORECASE)) for bound, words in _BEFORE
)
_AFTER_PATTERNS: Final[tuple[tuple[_Bound, re.Pattern[str]], ...]] = tuple(
    (bound, re.compile(rf"(?:{words})(?!\w)", re.IGNORECASE)) for bound, words in _AFTER
)
BOUND_WORDS: Final = frozenset(
    word.casefold()
    for _, pattern in (*_BEFORE, *_AFTER)
    for word in re.findall(r"[^\W\d_]+", re.sub(r"\\s", " ", pattern))
)
"""Words in lower case that bounds are made of."""
LEADING_WORDS: Final = HEDGE_WORDS | BOUND_WORDS | {"de"}
"""Words in lower case, one of which is the last before a bound or a rough figure."""


_BELOW_ZERO: Final = re.compile(
    r"\s(?:below|unter|pod|sous)\s(?:0|zero|null|ničlo|zéro)\b", re.IGNORECASE
)
_SPACED: Final = re.compile(r"[-–]\s")
_THOUSANDS: Final = re.compile(r"(?!401)\d{1,3}[kK]\s(?:people|[a-z]{3,}s)\b")
# Blanks before the sign of a list item.
_INDENT: Final = 8

# The words that one of the patterns ends with, and what stands before two that are common.
_LAST_WORDS: Final = HEDGE_WORDS | set(
    "than als de kot over above exceed exceeds exceeded exceeding beyond nad least minimum of "
    "mindestens wenigstens vsaj najmanj moins under below unter pod to most maximum within zu "
    "maximal do plus".split()
)
_BEFORE_LAST: Final = {"of": ("minimum", "maximum"), "to": ("up",)}
# What else than a word a bound or a rough figure may end with.
_LAST_SIGNS: Final = frozenset("~≈<>≥≤=.")
_AFTER_SIGNS: Final = frozenset("+oOaA")


def _below_zero(text: str, end: int) -> int:
    """Returns where the words end that make a temperature negative: ``5 °C below zero``."""
    words = _BELOW_ZERO.match(text, end)
    return words.end() if words else end


def _counts_thousands(text: str, at: int) -> bool:
    """Tells whether the letter behind a number stands for a thousand: ``10k users``.

    A ``10K run`` is one of kilometres, ``10-K`` and ``401k`` are names.
    """
    return _THOUSANDS.match(text, at) is not None


def _is_dash(text: str, at: int, end: int) -> bool:
    """Tells whether a sign before a number is no minus: in ``5 - 7 days``, and of a list item."""
    if not _SPACED.match(text, at):
        return False
    joins = 0 < end <= at and text[end:at].isspace()
    line = text.rfind("\n", max(at - _INDENT, 0), at)
    opens = (line >= 0 or at <= _INDENT) and not text[line + 1 : at].strip()
    return joins or opens


def _may_be_marked(before: str) -> bool:
    """Tells whether what stands before a number may make it a bound or a rough figure.

    Patterns that are tried from the end of a text take long, and few numbers are either.
    """
    pieces = before.rsplit(None, 2)
    if not pieces:
        return False
    last = pieces[-1].lower()
    if not (last.isascii() and last.isalpha()):
        return last[-1].isalpha() or last[-1] in _LAST_SIGNS
    if last not in _BEFORE_LAST:
        return last in _LAST_WORDS
    return len(pieces) > 1 and pieces[-2].lower().endswith(_BEFORE_LAST[last])


def is_hedged(before: str) -> bool:
    """Tells whether what stands before a number makes it a rough figure.

    Args:
        before: The end of the text before the number and its currency.
    """
    return _may_be_marked(before) and bool(_HEDGES.search(before))


def _bound_of(before: str, after: str) -> _Bound:
    """Returns what kind of bound a number is."""
    if _may_be_marked(before):
        for bound, pattern in _BEFORE_PATTERNS:
            if pattern.search(before):
                return bound
    if _AFTER_SIGNS.isdisjoint(after[:2]):
        return ""
    for bound, pattern in _AFTER_PATTERNS:
        if pattern.match(after):
            return bound
    return ""


# --- amounts --------------------------------------------------------------------------------------

AmountKind = Literal["value", "year", "day", "ordinal", "label"]
"""A ``label`` numbers a list item, a note or an exhibit, and measures nothing."""

_Sign = Literal["", "-", "()"]
"""Whether a number is negative, and how: accounts write losses and payments in parentheses."""

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
# The words before a number that tell what kind it is.
_TELLING_WORDS: Final = frozenset(
    (*_LABELS, *(f"{each}s" for each in _LABELS), *MONTHS, *"number no nr rank ranked".split())
)
# Longer ones are keys or dumps, and take quadratic time to convert.
_MAX_DIGITS: Final = 40
# Characters before a number that tell what it is.
_LOOK_AROUND: Final = 24
# Stands for a word that tells nothing.
_NOTHING: Final = "-"
# Four digits below 1200 or above 2100 are more often a count than a year.
_YEARS: Final = range(1200, 2101)


def _either(spellings: dict[str, str] | dict[str, Decimal]) -> str:
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
# Most numbers stand before a plain word or a mark, and have no tail.
_PLAIN_NEXT: Final = re.compile(r" ([A-Za-z]+)(?![^\W\d_])|[.,;:](?=\s|$)|[\]}]|$")
_TAIL_WORDS: Final = frozenset(
    word for each in (*SCALES, *PERCENTS, *CURRENCIES) for word in each.split()
) | frozenset("d of de u us".split())
# What every number has that has nothing behind it: no group matched.
_NO_TAIL: Final = re.match(
    "".join(f"(?P<{name}>(?!))?" for name in re.findall(r"\?P<(\w+)>", _TAIL.pattern)), ""
)
# A number may stand behind a letter only where that ends a currency: "USD5", but not "B5".
_NAMED: Final = re.compile(r"[\w.,]$")
_NAMED_BY_HYPHEN: Final = re.compile(r"[^\W\d_]-$")
# "10-K" is a name, "two-disc" and "5-round" count discs and rounds.
_GLUED: Final = re.compile(r"(?!-[a-z]{3})-?(?!x\b)[^\W\d_]")
# "3M" is a company, "3 m" and "3m" are metres.
# Most numbers stand behind a plain word, and need none of the patterns for what leads them.
_PLAIN_LEAD: Final = re.compile(r"([^\W\d_]+)\s$")
_LEADS: Final = frozenset(CURRENCIES) | {"minus", "negative"}
_LEADING_WORDS: Final = LEADING_WORDS | _LEADS
_NO_LEAD: Final = re.match(
    r"(?P<minus>-)?(?P<open>\()?(?P<before>\$)?(?P<open_inside>\()?(?P<minus_inside>-)?$", ""
)
# None of these ends a sign or a currency.
_NO_LEAD_ENDS: Final = frozenset(".,;:!?)[]{}\"'”%/^+=<0123456789") - {
    each[-1] for each in CURRENCIES
}
_ITEM_END: Final = re.compile(r"[.)]\s")
_NEXT_WORD: Final = re.compile(r"(?![A-Z]\b)[\s-]?([^\W\d_]+)")
_NOUN: Final = re.compile(r"[\s-]([^\W\d_]{3,})")


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

    sign: _Sign
    """How it is marked as negative."""

    is_hedged: bool
    """Whether a word such as "about" stands before it."""

    start: int
    """Where it begins in the text."""

    end: int
    """Where it ends in the text, with scale word and unit."""

    noun: str = ""
    """The stem of the word behind it, where that may be what is counted."""

    is_plural: bool = False
    """Whether that word looks like an English plural."""

    bound: _Bound = ""
    """Whether it is a bound, as in "at least 18", and which."""

    alternate: Decimal | None = None
    """What else its digits may mean: ``12.500`` is twelve and a half, or thousands."""

    until: Decimal | None = None
    """The other end of a range that it begins, in the same scale and unit."""

    @property
    def is_money(self) -> bool:
        """Whether it is in a currency."""
        return self.unit in CURRENCIES.values()


def amounts(text: str) -> Iterator[Amount]:
    """Yields every amount of a text, in order.

    Args:
        text: Any text; words for units, scales and numbers are read in English, German, Slovenian
            and French.
    """
    written = with_digits(text)
    for each in amounts_in_digits(written.text):
        yield each._replace(start=written.start(each.start), end=written.end(each.end))


def amounts_in_digits(text: str, signs: int | None = None) -> Iterator[Amount]:
    """Yields every amount of a text whose number words are digits already.

    Args:
        text: What ``value_words.with_digits`` gives.
        signs: What ``signs_of`` gives for it; None to look.
    """
    if not (signs_of(text) if signs is None else signs) & DIGIT:
        return
    continental = is_continental(text)
    done = 0
    for number in _find_numbers(text):
        if number.start() < done or len(number.group()) > _MAX_DIGITS:
            continue
        if found := _Found.around(text, number, done):
            amount = _amount(found, continental=continental)
            if amount:
                done = amount.end
                yield amount


class _Found(NamedTuple):
    """A number with what stands around it."""

    text: str
    number: re.Match[str]
    lead: re.Match[str]
    tail: re.Match[str]
    before: str
    word: str | None
    is_plain: bool

    @classmethod
    def around(cls, text: str, number: re.Match[str], done: int) -> _Found | None:
        """Looks around a number behind what was read before; None where it is part of a name."""
        start = number.start()
        before = text[max(start - _LOOK_AROUND, 0) : start]
        near = before[-_LEAD_WIDTH:]
        word = _word_before(near)
        is_plain = _is_plain(near) if word is None else word not in _LEADING_WORDS
        has_lead = not is_plain and (_may_have_lead(near) if word is None else word in _LEADS)
        lead = _LEAD.search(near) if has_lead else _NO_LEAD
        if lead and lead["minus"] and _is_dash(text, start - len(lead.group()), done):
            lead = _LEAD.search(near, lead.end("minus"))
        tail = _tail(text, number.end())
        if lead is None or tail is None:
            return None
        if near[-1:] not in ("", " ") and _is_named(before, lead):
            return None
        return cls(text, number, lead, tail, before, word, is_plain)

    @property
    def start(self) -> int:
        """Where the amount begins, with sign and currency."""
        return self.number.start() - len(self.lead.group())


def _word_before(near: str) -> str | None:
    """The word and the blank that a number stands behind, in lower case; None for anything else.

    A word of plain letters tells without patterns what the number is.
    """
    if near[-1:] != " ":
        return None
    word = near[:-1].rpartition(" ")[2]
    return word.lower() if word.isascii() and word.isalpha() else None


def _may_have_lead(near: str) -> bool:
    last = near.rstrip()[-1:]
    return last != "" and last not in _NO_LEAD_ENDS


def _tail(text: str, end: int) -> re.Match[str] | None:
    """What follows a number and belongs to it."""
    following = _PLAIN_NEXT.match(text, end)
    has_none = following is not None and (following[1] or "").lower() not in _TAIL_WORDS
    return _NO_TAIL if has_none else _TAIL.match(text, end)


def _is_plain(near: str) -> bool:
    word = _PLAIN_LEAD.search(near) if near[-1:].isspace() else None
    return word is not None and word[1].casefold() not in _LEADING_WORDS


def _is_named(before: str, lead: re.Match[str]) -> bool:
    """Tells whether a number is a part of a name, by what stands directly before it."""
    if _NAMED_BY_HYPHEN.search(before):
        return True
    return _NAMED.search(before) is not None and not lead["before"]


def _amount(found: _Found, *, continental: bool) -> Amount | None:
    text, written = found.text, found.number.group()
    number = read_number(written, continental=continental)
    scale, end = _scale(found)
    unit, factor, end = _unit(found, end)
    # "10-K", "737X" and "3D" are names.
    is_name = _GLUED.match(text, end) is not None and end == found.number.end()
    if is_name and not unit:
        return None
    below = _below_zero(text, end) if unit in (CELSIUS, FAHRENHEIT) else end
    sign, end = (_sign(found), end) if below == end else ("-", below)
    is_plain = scale is None and not unit and sign != "-"
    kind = _kind(found) if is_plain else "value"
    if kind in ("year", "label"):  # "(2018)" and "(1)" are no negative numbers
        sign = ""
    noun = _noun(text, end)
    lead = text[max(found.start - _LOOK_AROUND, 0) : found.start]
    amount = Amount(
        value=-number.value if sign else number.value,
        step=number.step,
        scale=scale,
        unit=unit,
        factor=factor,
        kind=kind,
        sign=sign,
        is_hedged=not found.is_plain and is_hedged(lead),
        start=found.start,
        end=max(end, found.number.end()),
        noun=stem(noun),
        is_plural=noun.endswith("s") and not noun.endswith("ss"),
        bound=_bound_of("" if found.is_plain else lead, text[end : end + _LOOK_AROUND]),
        alternate=None if continental else _other_reading(written, text),
    )
    return _in_celsius(amount) if unit == FAHRENHEIT else amount


def _scale(found: _Found) -> tuple[Decimal | None, int]:
    """The factor of the scale word, and where the number ends with it."""
    tail, end = found.tail, found.number.end()
    written = tail["scale"]
    if written is None:
        return None, tail.end("ordinal") if tail["ordinal"] else end
    # "5 m" is five metres, and "3M" a company, but "$5m" and "8.7B" are money.
    is_letter = len(written) == 1
    is_money = bool(found.lead["before"] or tail["after"])
    has_point = "." in found.number.group() or "," in found.number.group()
    is_counted = is_letter and _counts_thousands(found.text, found.number.start())
    if is_letter and not (is_money or is_counted) and (tail["glue"] or not has_point):
        return None, end
    return SCALES[written.casefold()], tail.end("scale")


def _unit(found: _Found, end: int) -> tuple[str, Decimal, int]:
    """The unit of a number, its factor, and where the number ends with it."""
    tail = found.tail
    if tail["ordinal"]:  # "the 19th century" is no time that passes
        return "", Decimal(1), end
    if tail["percent"]:
        return PERCENT, PERCENTS[tail["percent"].casefold()], tail.end("percent")
    if currency := found.lead["before"] or tail["after"]:
        at = tail.end("after") if tail["after"] else end
        return CURRENCIES[currency.strip().casefold()], Decimal(1), at
    word = _NEXT_WORD.match(found.text, end)
    if word and (known := UNITS.get(stem(word[1]))):
        return known.dimension, known.factor, word.end()
    return "", Decimal(1), end


def _sign(found: _Found) -> _Sign:
    lead, tail = found.lead, found.tail
    if lead["minus"] or lead["minus_inside"]:
        return "-"
    # A parenthesis that stays open begins a remark, as in "(370 in 2017)".
    opened = lead["open"] or lead["open_inside"]
    closed = tail["close_early"] or tail["close"]
    return "()" if opened and closed else ""


def _kind(found: _Found) -> AmountKind:
    """What a number without scale, unit and minus is."""
    written, end = found.number.group(), found.number.end()
    # Most words before a number tell nothing.
    tells = found.word is None or found.word in _TELLING_WORDS
    before = found.before if tells else _NOTHING
    last = before.rstrip()[-1:]
    names = last.isalpha() or last in (".", "#")
    if found.tail["ordinal"] or (names and _RANKED.search(before)):
        return "ordinal"
    if not written.isdigit():
        return "value"
    if int(written) <= 31 and (
        (names and _MONTH_BEFORE.search(before)) or _MONTH_AFTER.match(found.text, end)
    ):
        return "day"
    if len(written) == 4 and int(written) in _YEARS:
        return "year"
    opens = last in ("", "[", "(") or "\n" in before
    return "label" if (names or opens) and _is_label(found, before) else "value"


def _is_label(found: _Found, before: str) -> bool:
    if not _LABELLED.search(before):
        return False
    if found.before.strip(" \n("):
        return True
    end = found.number.end()
    return end - found.number.start() <= 2 and bool(_ITEM_END.match(found.text, end))


def _noun(text: str, end: int) -> str:
    """The word behind a number; empty for a function word."""
    word = _NOUN.match(text, end)
    if word is None or word[1].casefold() in FUNCTION_WORDS:
        return ""
    return word[1]


def _in_celsius(amount: Amount) -> Amount:
    ratio = Decimal("1.8")
    return amount._replace(
        value=(amount.value - 32) / ratio, step=amount.step / ratio, unit=CELSIUS
    )
