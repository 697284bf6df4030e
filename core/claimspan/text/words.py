"""Splits a text into words and numbers, each with the stem that it is compared by.

An English stem is a word in lower case without common endings, cut to its first letters. Other
languages have stemmers of their own (Snowball's, and one for Slovenian); words of the rest are cut
alone. Runs of Chinese, Japanese or Korean characters become pairs of characters.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Final, NamedTuple, Protocol, TypedDict, cast

from claimspan.forks import kept_from_forks
from claimspan.text.tables import read_table

__all__ = [
    "CARDINALS",
    "DENYING_PREFIXES",
    "FUNCTION_WORDS",
    "MIN_PREFIXED",
    "ORDINALS",
    "PREPOSITIONS",
    "Token",
    "denied_bases",
    "slovenian_stem",
    "slovenian_words",
    "stem",
    "stemmer",
    "tokenize",
    "without_carons",
]


# --- words of grammar -----------------------------------------------------------------------------


class _Language(TypedDict, total=False):
    """A language of ``words.toml``, whose head says what each field holds."""

    grammar: str
    prepositions: str
    negators: str
    numbers: str
    snowball: str
    carons_optional: bool
    elides: bool


_LANGUAGES: Final = cast("Mapping[str, _Language]", read_table("text", "words.toml"))
_NEGATORS: Final = {
    language: frozenset(each.get("negators", "").split()) for language, each in _LANGUAGES.items()
}
_NUMBER_WORDS: Final = {
    language: {
        word: str(value)
        for value, words in enumerate(each.get("numbers", "").split(), 2)
        for word in words.split("/")
    }
    for language, each in _LANGUAGES.items()
}
PREPOSITIONS: Final = {
    language: frozenset(each.get("prepositions", "").split())
    for language, each in _LANGUAGES.items()
}
"""Words after which a name says where, when, by whom or for whom, by language."""
_GRAMMAR_WORDS: Final = {
    language: frozenset(each.get("grammar", "").split())
    # English has prepositions that tell who or what, such as "starring", and others that do not.
    | (frozenset[str]() if language == "en" else PREPOSITIONS[language])
    for language, each in _LANGUAGES.items()
}
FUNCTION_WORDS: Final = _GRAMMAR_WORDS["en"]
"""English words in lower case that carry grammar rather than content."""


def without_carons(word: str) -> str:
    """Returns a word as many people write it: ``ce`` for ``če``."""
    return word.translate(_PLAIN)


_PLAIN: Final = str.maketrans("čšžćđ", "cszcd")


# --- prefixes -------------------------------------------------------------------------------------

DENYING_PREFIXES: Final = ("un", "in", "im", "ir", "il", "dis", "non", "mis")
"""``Unsafe`` is the opposite of ``safe``."""

MIN_PREFIXED: Final = 5
"""Letters of a word that a prefix may deny; shorter ones mostly begin with these by chance."""

_SHORTEST: Final = MIN_PREFIXED + min(map(len, DENYING_PREFIXES))


def denied_bases(word: str) -> tuple[str, ...]:
    """Returns a word in lower case without a prefix that may deny."""
    if len(word) < _SHORTEST or not word.startswith(DENYING_PREFIXES):
        return ()
    found = (word.removeprefix(each) for each in DENYING_PREFIXES if word.startswith(each))
    return tuple(base for base in found if len(base) >= MIN_PREFIXED)


# --- Slovenian stems ------------------------------------------------------------------------------

# Slovenian has six cases in three numbers and three genders: a noun has up to eighteen endings. The
# stemmer takes the endings of nouns, adjectives and verbs off step by step for as long as one fits:
# the ``em`` of ``problem`` looks like one, and only so do ``problem`` and ``problema`` meet. It
# knows the ``e`` that comes and goes (``teden``, ``tedna``) and a handful of irregular words. The
# endings come from the tables of Slovenian grammar, and were fitted to no data set.

_WORD: Final = re.compile(r"[^\W_]+")

_SHORTEST_STEM: Final = 3
"""Letters that stay: with two, words that have nothing in common would meet."""

# One step of an ending: "ega" is "eg" and "a", "ami" is "am" and "i". A word is cut step by step,
# so that what is left of "alkohola" and "alkohol" is the same, whatever the word itself ends in.
_STEP: Final = re.compile(
    r"(?:[aeiou]|al|el|il|am|em|im|om|ah|ih|ov|ev|aj|ij|uj|ej|eg|eh|at|it|(?<=t)j)$"
)
_LONGEST_STEP: Final = 2

_FLEETING: Final = re.compile(r"(?<=[^aeiou])e(?=[cklnrv]$)")
"""The vowel of ``konec``, ``sestanek`` and ``center`` that ``konca`` does not have."""

_IRREGULAR: Final = {
    form: stem
    for stem, forms in {
        "dan": "dan dne dni dneh dnem dnevi dneva dnevu dnevom dnevov dnevih dnevoma dnema dnevna",
        "ura": "ur ura ure uri uro urah uram urama urami",
        "ima": "ima imam imas imamo imate imata imajo imel imela imelo imeli imele imeti",
        "otrok": "otroci otroke",
        "clovk": "ljudje ljudi ljudem ljudmi ljudeh",
        "pes": "psa psu psom psi psov psih pse",
        "oc": "oce oceta ocetu ocetom",
        "mat": "mati mater matere materi materjo",
        "hc": "hci hcer hcere hceri hcerjo hcerk hcerka hcerke hcerki hcerko",
    }.items()
    for form in forms.split()
}


def slovenian_words(text: str) -> list[str]:
    """Split a text into the stems of its words, in order; numbers stay as they are."""
    return [slovenian_stem(word) for word in _WORD.findall(unicodedata.normalize("NFC", text))]


def slovenian_stem(word: str) -> str:
    """Reduce a word to the form by which its inflected forms are compared.

    Args:
        word: One word. Case and carons do not count, since many write without them: ``Učiteljem``
            and ``ucitelj`` give the same stem.

    Returns:
        At least three letters, or the whole of a shorter word.
    """
    folded = _without_carons(word)
    # "2022" has no ending, and of "B12" nothing may be taken off.
    if not folded.isalpha():
        return folded
    if folded in _IRREGULAR:
        return _IRREGULAR[folded]
    end = len(folded)
    # Looked for at the end alone: a cry of a thousand letters is cut a thousand times.
    while (step := _STEP.search(folded, max(end - _LONGEST_STEP, 0), end)) and (
        step.start() >= _SHORTEST_STEM
    ):
        end = step.start()
    folded = folded[:end]
    fleeting = _FLEETING.sub("", folded)
    return fleeting if len(fleeting) >= _SHORTEST_STEM else folded


def _without_carons(word: str) -> str:
    # NFKD takes a caron off its letter; "č" would otherwise be no "c".
    decomposed = unicodedata.normalize("NFKD", word).casefold()
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


# --- stems of other languages ---------------------------------------------------------------------

# ``import snowballstemmer`` loads the tables of 36 languages, which take 2.8 MiB and ten to 40 ms.
# One language takes a fortieth of both. A judge needs them in the middle of an application's work,
# as soon as a text is in another language than English, or seems to be: a grammar or a listing.

# The package under a name of ours: its modules can be imported one by one, since the code of the
# package itself, which imports all of them, has not run under this name.
_PACKAGE: Final = "_claimspan_snowball"


class _Stemmer(Protocol):
    """What snowballstemmer makes for a language."""

    def stemWord(self, word: str) -> str: ...  # noqa: N802 - snowballstemmer's name


def stemmer(name: str) -> Callable[[str], str] | None:
    """Returns what stems a word in lower case; any number of threads may use it.

    Args:
        name: Snowball's name of a language: ``german``.

    Returns:
        None if Snowball, in the version that is installed, does not have the language.
    """
    with kept_from_forks():
        make = _alone(name) or _from_package(name)
    if make is None:
        return None
    # A stemmer keeps the word that it works on, so that each thread, and each word, has its own.
    return lambda word: make().stemWord(word)


def _alone(name: str) -> Callable[[], _Stemmer] | None:
    """Returns the class of one language; None if it is not at its known place."""
    try:
        _know_package()
        module = import_module(f"{_PACKAGE}.{name}_stemmer")
        return cast("Callable[[], _Stemmer]", getattr(module, f"{name.title()}Stemmer"))
    except (ImportError, AttributeError):
        return None


def _know_package() -> None:
    if _PACKAGE in sys.modules:
        return
    found = find_spec("snowballstemmer")
    places = None if found is None else found.submodule_search_locations
    package = ModuleType(_PACKAGE)
    package.__path__ = list(places or ())
    # Of two threads that come here at once, both get the first one.
    sys.modules.setdefault(_PACKAGE, package)


def _from_package(name: str) -> Callable[[], _Stemmer] | None:
    """Returns what makes the stemmer by the public functions, which load all languages."""
    import snowballstemmer  # type: ignore[import-untyped]  # pure Python, without annotations

    known = cast("Callable[[], Sequence[str]]", getattr(snowballstemmer, "algorithms"))  # noqa: B009 - untyped
    if name not in known():
        return None
    made = cast("Callable[[str], _Stemmer]", getattr(snowballstemmer, "stemmer"))  # noqa: B009 - untyped
    return lambda: made(name)


# --- words ----------------------------------------------------------------------------------------

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
_LONGEST_KNOWN: Final = 32

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
ORDINALS: Final = {
    word: place
    for place, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),
        1,
    )
}
"""A place in a list, by its English word in lower case."""
_NUMBERS: Final = CARDINALS | {word: f"{place}th" for word, place in ORDINALS.items()}


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
    """Whether it denies its neighbours: ``not``, ``never``, ``isn't``, ``kein``."""

    bases: tuple[str, ...]
    """The word without a prefix that may deny: ``enforceable``."""


def tokenize(text: str, language: str = "en") -> list[Token]:
    """Splits a text into tokens, in order; punctuation is dropped.

    Returns:
        One token for each word, number, currency or percent sign; a run of CJK characters gives one
        token for each pair of neighbours in it, a single CJK character gives one token.
    """
    # A caron may be a character of its own, which is no part of a word.
    composed = text if text.isascii() else unicodedata.normalize("NFC", text)
    if _has_split_percent(composed):
        return list(_tokens(composed, language))
    found: list[Token] = []
    # No other token has a blank in it, and none depends on what stands beyond one.
    for piece in composed.split():
        word = piece.strip(_MARKS)
        # Most pieces are one word and a comma.
        if word.isascii() and word.isalpha() and word.lower() != "percent":
            found.append(_word(language, word))
        else:
            found += _tokens(piece, language)
    return found


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
    return _word(language, word).stem


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
            parts = _elided(written) if _LANGUAGES.get(language, {}).get("elides") else (written,)
            yield from (_word(language, part) for part in parts)
        else:
            stemmed = _token_stem(written, kind, language)
            yield _token(language, written, written.casefold(), stemmed)


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
    """Reads ``"1,250.5"`` as 1250.5 and ``"3,5"`` as 3.5; None if the text is not a number."""
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
    # Longer ones are keys and addresses, which do not come again.
    return (_known if len(word) <= _LONGEST_KNOWN else _known.__wrapped__)(language, word)


# The words of texts repeat. A hundred pages have as many different ones, which take 300 bytes each;
# they are single words, so that no content of a record stays in memory with them.
@lru_cache(maxsize=3_500)
def _known(language: str, word: str) -> Token:
    if language == "en" and word.isascii() and word.isalpha():  # as most are
        folded = word.lower()
        return _token(language, word, folded, _NUMBERS.get(folded) or _strip_inflection(folded))
    return _token(language, word, word.casefold(), _stem(language, word))


def _token(language: str, written: str, folded: str, stemmed: str) -> Token:
    # Equal strings are one in memory.
    folded = written if folded == written else folded
    stemmed = folded if stemmed == folded else stemmed
    plain = folded if folded.isascii() else folded.replace("’", "'")
    is_function = plain in _GRAMMAR_WORDS.get(language, _NONE)
    is_negation = plain in _NEGATORS.get(language, _NONE) or (
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
    numbers = _NUMBER_WORDS.get(language, {})
    if folded in numbers:
        return numbers[folded]
    if language == "sl":
        return slovenian_stem(folded)
    is_word = folded.isalpha() and len(folded) <= _LONGEST_WORD
    stemmed = _stemmer(language)(folded) if is_word else folded
    return (
        without_carons(stemmed) if _LANGUAGES.get(language, {}).get("carons_optional") else stemmed
    )


@lru_cache(maxsize=64)
def _stemmer(language: str) -> Callable[[str], str]:
    name = _LANGUAGES.get(language, {}).get("snowball")
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
