"""Splits a text into words and numbers, each with the stem that it is compared by.

Works without a dictionary, so that it serves most languages: a stem is a word in lower case without
common English endings, cut to its first letters; runs of Chinese, Japanese or Korean characters
become pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, NamedTuple

__all__ = ["CARDINALS", "FUNCTION_WORDS", "Token", "stem", "tokenize"]

FUNCTION_WORDS: Final = frozenset(
    "a an the this that these those of in on at by for from to with as and or but nor if then than "
    "is are was were be been being am do does did done has have had having it its he she they them "
    "his her their him i you we our your my me who whom whose which what when where there here "
    "will would shall should can could may might must also so such very just about into over under "
    "out up down s t".split()
)
"""English words in lower case that carry grammar rather than content."""

# Truncation is the one stemmer that serves most languages. The length was chosen on whole
# development sets; on the tune halves alone the mean AUROC of coverage is .7299, .7300 with 5
# letters and .7275 with whole words.
_STEM_LENGTH: Final = 6

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f"
_TOKEN: Final = re.compile(
    rf"(?P<cjk>[{_CJK}]+)"
    r"|(?P<label>(?<=[^\W\d_]-)\d{1,2}(?!\d))"
    r"|(?P<ordinal>\d{1,9}(?:st|nd|rd|th)\b)"
    r"|(?P<number>(?<!\w)\.\d+|\d+(?:[.,]\d+)*)"
    r"|(?P<currency>[$€£])"
    r"|(?P<acronym>(?:[^\W\d_]\.){2,})"
    r"|(?P<percent>%|\bper\s?cent\b)"
    rf"|(?P<word>(?:(?![{_CJK}])[^\W_])+(?:['’](?:(?![{_CJK}])[^\W\d_])+)*)",
    re.IGNORECASE,
)
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")

CARDINALS: Final = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
} | {
    word: str(10 * value)
    for value, word in enumerate("thirty forty fifty sixty seventy eighty ninety".split(), 3)
}
"""The digits of an English number word in lower case."""
_ORDINALS: Final = {
    word: f"{value}th"
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),
        1,
    )
}


class Token(NamedTuple):
    """One word, number, currency sign or pair of CJK characters."""

    text: str
    """The token as written."""

    stem: str
    """The form it is compared by: lower case, without inflection, numbers in digits."""


def tokenize(text: str) -> list[Token]:
    """Splits a text into tokens, in order; punctuation is dropped.

    Args:
        text: Any text in any language.

    Returns:
        One token for each word, number, currency or percent sign; a run of CJK characters gives one
        token for each pair of neighbours in it, a single CJK character gives one token.
    """
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        written = match.group()
        if match.lastgroup == "cjk":
            pairs = [written[i : i + 2] for i in range(len(written) - 1)] or [written]
            tokens.extend(Token(pair, pair) for pair in pairs)
        else:
            tokens.append(Token(written, _token_stem(written, match.lastgroup)))
    return tokens


def stem(word: str) -> str:
    """Reduces a word to the form it is compared by.

    Numbers in words become digits: ``seven`` gives ``7``, ``third`` gives ``3th``.

    Args:
        word: One word, in any case; ``Cities`` and ``city`` both give ``citi``.

    Returns:
        At most six characters for a word; the digits for a number word.
    """
    folded = unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    folded = re.sub(r"'s?$", "", folded)
    if folded in CARDINALS:
        return CARDINALS[folded]
    return _ORDINALS.get(folded) or _strip_inflection(folded)


def _strip_inflection(word: str) -> str:
    if len(word) > 3 and word.isascii():
        for suffix in ("ing", "edly", "ed", "es", "ly", "s"):
            if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
                word = word.removesuffix(suffix)
                break
        if word[-1] in "ey":
            word = word[:-1] + ("i" if word[-1] == "y" else "")
        # "stopped" and "stop" meet, but "fall" and "pass" keep their double letter.
        if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz":
            word = word[:-1]
    return word[:_STEM_LENGTH]


def _token_stem(written: str, kind: str | None) -> str:
    """Returns the stem of a token by the name of the ``_TOKEN`` group that matched it."""
    match kind:
        case "number":
            value = _parse_number(written)
            return written if value is None else f"{value:.12g}"
        case "ordinal":
            return f"{int(written[:-2])}th"
        case "label":  # the 19 of COVID-19 is part of a name, not a quantity
            return f"-{written}"
        case "percent":
            return stem("percent")
        case "acronym":
            return written.replace(".", "").casefold()
        case _:
            return stem(written)


def _parse_number(written: str) -> float | None:
    """Reads ``"1,250.5"`` as 1250.5 and ``"3,5"`` as 3.5; None where the text is not a number."""
    digits = unicodedata.normalize("NFKC", written)
    digits = digits.replace(",", "") if _THOUSANDS.fullmatch(digits) else digits.replace(",", ".")
    try:
        return float(digits)
    except ValueError:
        return None
