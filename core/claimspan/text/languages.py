"""Detects the language of a text, so that words and sentences are read by its rules.

A script other than Latin tells the language or its nearest kin. Text in Latin script is scored by
the runs of one to four letters that its words have, against the profiles of 26 languages in
``language_profiles.json``. ``tests/benchmarks/language_detection.py`` counts the profiles and
measures them. The libraries that do this as well on short text are too large for what claimspan
installs everywhere: lingua has 96 MB, py3langid needs numpy; langdetect, cld2 and the small model
of fastText mistake one short sentence in seven.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from operator import sub
from typing import Final, NamedTuple

from claimspan.text.tables import read_text

__all__ = [
    "Scored",
    "detect_language",
    "language_of_script",
    "languages_of",
    "letter_runs",
    "scored_words",
]

_SCRIPTS: Final = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("bn", re.compile(r"[\u0980-\u09ff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
)
_ANY_SCRIPT: Final = re.compile("|".join(script.pattern for _, script in _SCRIPTS))
# A Chinese name in an English sentence does not make the sentence Chinese.
_SCRIPT_SHARE: Final = 0.2
# Letters of one language in Cyrillic script that the others do not have.
_CYRILLIC: Final = (
    ("uk", re.compile(r"[іїєґ]", re.IGNORECASE)),
    ("sr", re.compile(r"[јљњђћџ]", re.IGNORECASE)),
)

# The whole of a long text says no more: this much of its beginning, and as much of its middle.
_EXCERPT: Final = 2000
_MAX_WORDS: Final = 120
_FENCED: Final = re.compile(r"^[ \t]*+(`{3,}|~{3,}).*?(?:^[ \t]*+\1|\Z)", re.MULTILINE | re.DOTALL)
# Words alone: neither parts of an identifier, a path, a call or an address, nor ``camelCase``.
_WORD: Final = re.compile(
    r"(?<![\w./@#$\\=<-])[^\W\d_]+(?:['’][^\W\d_]+)*(?![\w(=/@\\>])(?!\.\w)(?!:\S)"
)
_PARTICLES: Final = frozenset(
    "a al am an af av bin da das de dei del della den der des di die do dos du e el ibn il in la "
    "las le les los lo of ten ter the und van von y zu zum zur".split()
)
_MAX_RUN: Final = 4

# A text is of another language than English where this much speaks for it, in units of log-odds:
# runs of letters are not independent, so that these are no odds. Chosen on the English claims of
# the tune halves and on the sentences that ``language_detection.py`` sets aside for it.
_MARGIN: Final = 6.0
_WIDE_MARGIN: Final = 30.0
_FEWEST_WORDS: Final = 2
_OWN: Final = 1.5
_DECIDED: Final = 40.0
# Few words of a short Spanish sentence are not Catalan as well, and Spanish is the likelier one.
_HANDICAPS: Final = {"ca": 8.0, "nb": 2.0}
_WORDS_BETWEEN_LOOKS: Final = 12


class Scored(NamedTuple):
    """A word by which a language is told."""

    word: str
    """In lower case, with straight apostrophes."""

    may_be_name: bool
    """Whether it opens a sentence, as in ``Angela Merkel``, and no word in lower case follows."""


class _Profiles(NamedTuple):
    """The profiles of the languages in Latin script.

    The log-ratios of a run of letters in each language to its mean over all of them are whole
    numbers of steps, one for each language, packed into one number: a sum of those has the sums of
    all languages, and takes a fiftieth of the time of as many sums.
    """

    languages: Sequence[str]
    handicaps: Sequence[float]
    """The deduction from the score of each language."""

    step: float
    lowest: int
    """The lowest log-ratio, in steps; packed numbers count from it, so that none is negative."""

    weights: Mapping[str, int]
    """The packed numbers of a run."""

    def unpacked(self, packed: int, count: int) -> list[float]:
        """Returns the sum of each language."""
        sums = array("I", packed.to_bytes(_PACKED * len(self.languages), sys.byteorder))
        offset = self.lowest * count
        return [(each + offset) * self.step for each in sums]


def detect_language(text: str) -> str | None:
    """Returns the language of a text.

    Fenced code, identifiers and names within a sentence do not count.

    Returns:
        The ISO 639-1 code, such as ``en`` or ``sl``; None if the text has too few words to tell,
        as a name, a table of numbers or code has. Bosnian and Serbian in Latin script are ``hr``,
        Malay is ``id``, Norwegian is ``nb``.
    """
    excerpt = _excerpt(text)
    detect = _detected if len(excerpt) <= _LONGEST_REMEMBERED else _detected.__wrapped__
    return detect(excerpt)


def languages_of(texts: Sequence[str], beside: Iterable[str] = ()) -> list[str]:
    """Returns the languages of texts that belong together, such as claims and chunks.

    A text that is too short to tell has the language of the others. If those have several, or
    none can be told, it counts as English.

    Returns:
        A code for each of ``texts``.
    """
    found = [detect_language(text) for text in texts]
    if all(found):
        return [language for language in found if language]
    every = [*texts, *beside]
    told = {language for language in map(detect_language, every) if language}
    if not told and (joined := detect_language("\n".join(every))):
        told = {joined}
    other = told.pop() if len(told) == 1 else "en"
    return [language or other for language in found]


def language_of_script(text: str) -> str | None:
    """Returns the language that the script of a text implies; None for Latin script."""
    if text.isascii() or not _ANY_SCRIPT.search(text):
        return None
    letters = sum(map(str.isalpha, text))
    for code, script in _SCRIPTS:
        if len(script.findall(text)) > _SCRIPT_SHARE * letters:
            return _within_cyrillic(text) if code == "ru" else code
    return None


def scored_words(text: str) -> Iterator[Scored]:
    """Yields the words by which a language is told.

    A capital letter within a sentence begins a name in most languages, and names are at home in
    all of them: they are left out, with the particles between them (``Leonardo da Vinci``).
    """
    before = ""
    for match, following in _with_following(_WORD.finditer(text)):
        word = match.group()
        opens = word.istitle() and _opens_sentence(text, match.start())
        named = following is not None and following.group()[0].isupper()
        belongs = named and word.casefold() in _PARTICLES and before[:1].isupper()
        if (opens or word.islower()) and not belongs:
            may_be_name = opens and (following is None or named)
            yield Scored(word.casefold().replace("’", "'"), may_be_name)
        before = word


def letter_runs(word: str) -> Sequence[str]:
    """Returns the runs of one to four letters of a word with its ends, and the whole word.

    Args:
        word: One word in lower case: ``ist`` gives ``i``, `` i``, ``ist`` and so on.
    """
    padded = f" {word} "
    runs = [letter for letter in word if letter != " "]
    for length in range(2, _MAX_RUN + 1):
        runs += [padded[i : i + length] for i in range(len(padded) - length + 1)]
    if len(padded) > _MAX_RUN:
        runs.append(padded)
    return runs


# --- excerpts and scores ---


def _with_following(
    matches: Iterator[re.Match[str]],
) -> Iterator[tuple[re.Match[str], re.Match[str] | None]]:
    """Yields each match with the next one, without reading on before that is asked for."""
    match = next(matches, None)
    while match is not None:
        following = next(matches, None)
        yield match, following
        match = following


def _excerpt(text: str) -> str:
    prose = _FENCED.sub(" ", text[: 8 * _EXCERPT]) if "```" in text or "~~~" in text else text
    if len(prose) > 2 * _EXCERPT:
        middle = len(prose) // 2
        prose = prose[:_EXCERPT] + "\n" + prose[middle : middle + _EXCERPT]
    return prose


# The claims and the chunks of a record are read by more than one step. Long texts are not kept, so
# that all of them together are 256 kB.
_LONGEST_REMEMBERED: Final = 1000


@lru_cache(maxsize=256)
def _detected(excerpt: str) -> str | None:
    if by_script := language_of_script(excerpt):
        return by_script
    composed = unicodedata.normalize("NFC", excerpt)
    scored = scored_words(composed.casefold() if composed.isupper() else composed)
    known = _profiles().weights
    return _best_language(
        each.word
        for each in islice(scored, _MAX_WORDS)
        if not each.may_be_name or f" {each.word} " in known
    )


def _best_language(unread: Iterator[str]) -> str | None:
    """Reads no more words than it takes to tell English, which most texts are in."""
    languages = _profiles().languages
    words: list[str] = []
    scores = _scores(_kept(unread, words))
    best = max(range(len(languages)), key=scores.__getitem__)
    if not words or languages[best] == "en":
        return "en" if words and scores[best] > _MARGIN else None
    words += unread
    needed = _MARGIN if _has_own_word(words, best) else _WIDE_MARGIN
    is_clear = scores[best] - scores[languages.index("en")] > needed
    return languages[best] if is_clear and len(words) >= _FEWEST_WORDS else None


def _kept(unread: Iterator[str], read: list[str]) -> Iterator[str]:
    """Yields words, and keeps the text read so far."""
    for word in unread:
        read.append(word)
        yield word


def _has_own_word(words: Sequence[str], language: int) -> bool:
    """Tells whether one of the words is far more common in a language than in English."""
    profiles = _profiles()
    english = profiles.languages.index("en")
    known = (profiles.weights.get(f" {word} ") for word in words)
    unpacked = (profiles.unpacked(packed, 1) for packed in known if packed is not None)
    return any(each[language] - each[english] >= _OWN for each in unpacked)


def _scores(words: Iterable[str]) -> list[float]:
    """Returns the score of every language, by as many words as it takes to tell."""
    packed = count = 0
    for i, word in enumerate(words, 1):
        of_word, n_runs = (
            _word_scores if len(word) <= _LONGEST_KNOWN else _word_scores.__wrapped__
        )(word)
        packed, count = packed + of_word, count + n_runs
        if i % _WORDS_BETWEEN_LOOKS == 0:
            totals = _totals(packed, count)
            second, first = sorted(totals)[-2:]
            if first - second > _DECIDED:
                return totals
    return _totals(packed, count)


def _totals(packed: int, count: int) -> list[float]:
    profiles = _profiles()
    return list(map(sub, profiles.unpacked(packed, count), profiles.handicaps))


# A word takes 350 bytes; longer ones do not come again.
@lru_cache(maxsize=1_500)
def _word_scores(word: str) -> tuple[int, int]:
    """The sum of the packed numbers of the known runs of a word, and how many they are."""
    found = map(_profiles().weights.get, letter_runs(word))
    known = [packed for packed in found if packed is not None]
    return sum(known), len(known)


_LONGEST_KNOWN: Final = 32


@lru_cache(maxsize=1)
def _profiles() -> _Profiles:
    read = json.loads(read_text("text", "language_profiles.json"))
    levels = {ord(code): i for i, code in enumerate(read["levels"])}
    weights = {run: _packed(codes.translate(levels)) for run, codes in read["runs"].items()}
    step, languages = read["step"], read["languages"].split()
    handicaps = [_HANDICAPS.get(language, 0.0) for language in languages]
    return _Profiles(languages, handicaps, step, round(read["lowest"] / step), weights)


# Bytes of each number of a packed one: a word of a megabyte does not make it overflow.
_PACKED: Final = 4
# Looked up with this module: a codec is a module, too, and a child that is forked while another
# thread imports it would wait for it without end.
_ENCODING: Final = codecs.lookup(f"utf-32-{sys.byteorder[0]}e").name


def _packed(levels: str) -> int:
    """Packs the code points of a text into one number, four bytes each."""
    return int.from_bytes(levels.encode(_ENCODING), sys.byteorder)


# --- scripts and sentences ---


def _within_cyrillic(text: str) -> str:
    letters = sum(map(str.isalpha, text))
    for code, own in _CYRILLIC:
        if len(own.findall(text)) > 0.02 * letters:
            return code
    return "ru"


def _opens_sentence(text: str, start: int) -> bool:
    before = text[max(start - 12, 0) : start].rstrip(" \t\"'“”„»«(*_-•>#|¿¡")
    return not before or before[-1] in ".!?:\n"
