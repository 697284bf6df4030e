"""Splits a text into words and numbers, each with the stem that it is compared by.

An English stem is a word in lower case without common endings, cut to its first letters. Other
languages have stemmers of their own (Snowball's; ``slovenian``), and words of the rest are cut
alone. Runs of Chinese, Japanese or Korean characters become pairs of characters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Final, NamedTuple

from claimspan.text import grammar_words
from claimspan.text.grammar_words import NUMBER_WORDS, without_carons
from claimspan.text.memo import MemoByLanguage
from claimspan.text.prefixes import denied_bases
from claimspan.text.slovenian import slovenian_stem
from claimspan.text.snowball import stemmer

__all__ = [
    "CARDINALS",
    "FUNCTION_WORDS",
    "Token",
    "stem",
    "tokenize",
]

FUNCTION_WORDS: Final = grammar_words.FUNCTION_WORDS["en"]
"""English words in lower case that carry grammar rather than content."""

_STEMMERS: Final = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "es": "spanish", "et": "estonian", "fi": "finnish", "fr": "french", "hi": "hindi",
    "hr": "serbian", "hu": "hungarian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "nb": "norwegian", "nl": "dutch", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish",
}  # fmt: skip
"""Snowball's names of languages. Its Serbian stemmer serves Croatian as well."""
# People write these languages without carons as well.
_CARONS_OPTIONAL: Final = frozenset({"hr", "sl", "sr"})
# "L'eau" and "dell'acqua" are two words each; "aujourd'hui" is one.
_ELIDING: Final = frozenset({"ca", "fr", "it"})
_LONGEST_ELIDED: Final = 5

# Truncation is the one stemmer that serves most languages. The length was chosen on whole
# development sets; on the tune halves alone the mean AUROC of coverage is .7299, .7300 with 5
# letters and .7275 with whole words.
_STEM_LENGTH: Final = 6

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f"
_TOKEN: Final = re.compile(
    rf"(?P<cjk>[{_CJK}]+)"
    r"|(?P<label>(?<=[^\W\d_]-)\d{1,2}(?!\d))"
    r"|(?P<ordinal>\d{1,9}(?i:st|nd|rd|th)\b)"
    r"|(?P<number>(?<!\w)\.\d+|\d+(?:[.,]\d+)*)"
    r"|(?P<currency>[$€£])"
    r"|(?P<acronym>(?:[^\W\d_]\.){2,})"
    r"|(?P<percent>%|\b(?i:per\s?cent)\b)"
    rf"|(?P<word>[^\W_{_CJK}]+(?:['’][^\W\d_{_CJK}]+)*)"
)
_SPLIT_PERCENT: Final = re.compile(r"\bper\scent\b", re.IGNORECASE)
# Marks around a word that are no token and part of none; none of them is a letter or a digit.
_MARKS: Final = "\"'()[]{}<>.,;:!?*_#|/\\-–—“”‘’„«»…"
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")

# A longer run of letters is a key, a sequence or a dump: a stemmer takes seconds for a page of it.
_LONGEST_WORD: Final = 100

_SUFFIXES: Final = ("ing", "edly", "ed", "es", "ly", "s")
_POSSESSIVE: Final = re.compile(r"'s?$")

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
_NUMBERS: Final = CARDINALS | {
    word: f"{value}th"
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),
        1,
    )
}


_NONE: Final = frozenset[str]()


class Token(NamedTuple):
    """One word, number, currency sign or pair of CJK characters."""

    text: str
    """The token as written."""

    stem: str
    """The form it is compared by: lower case, without inflection, numbers in digits."""

    language: str
    """Code of the language by whose rules it was read."""

    folded: str
    """The token in lower case."""

    is_content: bool
    """Whether it is neither a function word nor a negation."""

    is_function: bool
    """Whether it carries grammar rather than content in its language."""

    is_negation: bool
    """Whether it denies what is beside it: ``not``, ``never``, ``isn't``, ``kein``."""

    bases: tuple[str, ...]
    """What is left of it without a prefix that may deny: ``enforceable``."""


def tokenize(text: str, language: str = "en") -> list[Token]:
    """Splits a text into tokens, in order; punctuation is dropped.

    Args:
        text: Any text in any language.
        language: Code of the language whose stems are wanted. Tokens are compared with tokens of
            the same language.

    Returns:
        One token for each word, number, currency or percent sign; a run of CJK characters gives one
        token for each pair of neighbours in it, a single CJK character gives one token.
    """
    # A caron may be a character of its own, which is no part of a word.
    composed = text if text.isascii() else unicodedata.normalize("NFC", text)
    if _has_split_percent(composed):
        return list(_tokens(composed, language))
    # No other token has a blank in it, and none depends on what stands beyond one.
    return list(chain.from_iterable(map(_PIECES[language].__getitem__, composed.split())))


def stem(word: str, language: str = "en") -> str:
    """Reduces a word to the form it is compared by.

    Numbers in words become digits: ``seven`` gives ``7``, ``third`` gives ``3th``.

    Args:
        word: One word, in any case; ``Cities`` and ``city`` both give ``citi``.
        language: Code of the language of the word.

    Returns:
        At most six characters for a word in English or in a language without a stemmer; the digits
        for a number word.
    """
    return _WORDS[language][word].stem


# --- tokens ---


def _has_split_percent(text: str) -> bool:
    """Tells whether a text has ``per cent`` in two words, which are one token."""
    # The search for a part of it is ten times faster than the one by pattern.
    return "cent" in text.lower() and _SPLIT_PERCENT.search(text) is not None


def _tokens(text: str, language: str) -> Iterator[Token]:
    """Yields the tokens of a text in composed form."""
    for match in _TOKEN.finditer(text):
        kind, written = match.lastgroup, match.group()
        if kind == "cjk":
            pairs = [written[i : i + 2] for i in range(len(written) - 1)] or [written]
            yield from (_token(language, pair, pair.casefold(), pair) for pair in pairs)
        elif kind == "word":
            parts = _elided(written) if language in _ELIDING else (written,)
            yield from map(_WORDS[language].__getitem__, parts)
        else:
            stemmed = _token_stem(written, kind, language)
            yield _token(language, written, written.casefold(), stemmed)


def _piece_tokens(language: str, piece: str) -> Sequence[Token]:
    """Returns the tokens of what stands between two blanks."""
    word = piece.strip(_MARKS)
    # Most pieces are one word and a comma.
    if word.isalpha() and word.isascii() and word.lower() != "percent":
        return (_WORDS[language][word],)
    return tuple(_tokens(piece, language))


def _token_stem(written: str, kind: str | None, language: str) -> str:
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
            return stem(written, language)


def _elided(written: str) -> list[str]:
    """Returns the article of ``l'eau`` and its noun; any other word alone."""
    article, apostrophe, rest = written.replace("’", "'").partition("'")
    return [article, rest] if apostrophe and len(article) <= _LONGEST_ELIDED else [written]


def _parse_number(written: str) -> float | None:
    """Reads ``"1,250.5"`` as 1250.5 and ``"3,5"`` as 3.5; None where the text is not a number."""
    digits = unicodedata.normalize("NFKC", written)
    digits = digits.replace(",", "") if _THOUSANDS.fullmatch(digits) else digits.replace(",", ".")
    try:
        return float(digits)
    except ValueError:
        return None


# --- stems ---


def _compatible(word: str) -> str:
    """Returns a word in lower case, without ligatures, and with a straight apostrophe."""
    if word.isascii():
        return word.lower()
    return unicodedata.normalize("NFKC", word).casefold().replace("’", "'")


def _word(language: str, word: str) -> Token:
    """Returns the token of a word or of a part of one."""
    if language == "en" and word.isascii() and word.isalpha():  # as most are
        folded = word.lower()
        return _token(language, word, folded, _NUMBERS.get(folded) or _strip_inflection(folded))
    return _token(language, word, word.casefold(), _stem(language, word))


def _token(language: str, written: str, folded: str, stemmed: str) -> Token:
    # Equal strings are one in memory.
    folded = written if folded == written else folded
    stemmed = folded if stemmed == folded else stemmed
    plain = folded if folded.isascii() else folded.replace("’", "'")
    is_function = plain in grammar_words.FUNCTION_WORDS.get(language, _NONE)
    is_negation = plain in grammar_words.NEGATORS.get(language, _NONE) or (
        language == "en" and plain.endswith("n't")
    )
    is_content = not (is_function or is_negation)
    bases = denied_bases(folded)
    return Token(written, stemmed, language, folded, is_content, is_function, is_negation, bases)


def _stem(language: str, word: str) -> str:
    folded = _compatible(word)
    if language != "en":
        return _stem_abroad(folded, language)
    if "'" in folded:
        folded = _POSSESSIVE.sub("", folded)
    return _NUMBERS.get(folded) or _strip_inflection(folded)


def _stem_abroad(folded: str, language: str) -> str:
    numbers = NUMBER_WORDS.get(language, {})
    if folded in numbers:
        return numbers[folded]
    if language == "sl":
        return slovenian_stem(folded)
    is_word = folded.isalpha() and len(folded) <= _LONGEST_WORD
    stemmed = _stemmer(language)(folded) if is_word else folded
    return without_carons(stemmed) if language in _CARONS_OPTIONAL else stemmed


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Callable[[str], str]:
    name = _STEMMERS.get(language)
    found = None if name is None else stemmer(name)
    return found or (lambda word: word[:_STEM_LENGTH])


def _strip_inflection(word: str) -> str:
    if len(word) > 3 and word.isascii():
        if word.endswith(_SUFFIXES) and not word.endswith("ss"):
            for suffix in _SUFFIXES:
                if word.endswith(suffix) and len(word) - len(suffix) >= 3:
                    word = word.removesuffix(suffix)
                    break
        if word[-1] in "ey":
            word = word[:-1] + ("i" if word[-1] == "y" else "")
        # "stopped" and "stop" meet, but "fall" and "pass" keep their double letter.
        if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz":
            word = word[:-1]
    return word[:_STEM_LENGTH]


# --- what is known of words already ---

# As many different words as a hundred pages have. A word with its token takes some 300 bytes, a
# piece that has it 150; both at most a kilobyte, in whatever languages they are.
_MAX_WORDS: Final = 3_500
_MAX_PIECES: Final = 3_500

_WORDS: Final = MemoByLanguage(_word, _MAX_WORDS)
_PIECES: Final = MemoByLanguage(_piece_tokens, _MAX_PIECES)
