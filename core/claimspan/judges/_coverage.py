"""How much of a claim the best window of a reference says, word by word.

Words are compared by stem, weighted by how rare they are among the references of one call.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Final, NamedTuple

from claimspan.judges._sentences import split_prose

__all__ = ["Corpus", "Reference", "Support", "Token", "stem", "tokenize"]

WINDOW_WORDS: Final = 120
"""Length of a window: a paragraph; shorter ones lose facts spread over sentences."""

_STRIDE: Final = WINDOW_WORDS // 2

# Words that say little on their own. One reference gives no idf to tell them by, so their weight
# is scaled down; chosen on the tune halves of the development sets.
_FUNCTION_WEIGHT: Final = 0.35
FUNCTION_WORDS: Final = frozenset(
    "a an the this that these those of in on at by for from to with as and or but nor if then than "
    "is are was were be been being am do does did done has have had having it its he she they them "
    "his her their him i you we us our your my me who whom whose which what when where there here "
    "will would shall should can could may might must also so such very just about into over under "
    "out up down s t".split()
)

_CJK: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af\u0e00-\u0e7f"
_TOKEN: Final = re.compile(
    rf"(?P<cjk>[{_CJK}]+)"
    r"|(?P<ordinal>\d+(?:st|nd|rd|th)\b)"
    r"|(?P<number>\d+(?:[.,]\d+)*)"
    r"|(?P<percent>%|\bper\s?cent\b)"
    rf"|(?P<word>(?:(?![{_CJK}])[^\W_])+(?:['’](?:(?![{_CJK}])[^\W\d_])+)*)",
    re.IGNORECASE,
)
_THOUSANDS: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")

_CARDINALS: Final = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
} | {
    word: str(10 * value)
    for value, word in enumerate("thirty forty fifty sixty seventy eighty ninety".split(), 3)
}
_ORDINALS: Final = {
    word: f"{value}th"
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(),
        1,
    )
}


class Token(NamedTuple):
    """One word, number or pair of CJK characters."""

    text: str
    """As written."""

    stem: str
    """What it is compared by: lower case, without inflection, numbers in digits."""

    start: int
    """Offset of its first character in the tokenized text."""


class Support(NamedTuple):
    """What the best window of one reference has for one claim."""

    coverage: float
    """Weight of the claim's words found there over the weight of all of them, 0 to 1."""

    window: Sequence[Token]
    """The words of that window."""

    sentence: Sequence[Token]
    """The one sentence that says most of the claim; empty where no word was found."""


def stem(word: str) -> str:
    """The form that a word is compared by: ``Cities`` and ``city`` meet in ``citi``."""
    folded = unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    folded = re.sub(r"'s?$", "", folded)
    if folded in _CARDINALS:
        return _CARDINALS[folded]
    return _ORDINALS.get(folded) or _without_inflection(folded)


def _without_inflection(word: str) -> str:
    if len(word) > 3 and word.isascii():
        for suffix in ("ing", "edly", "ed", "es", "ly", "s"):
            if word.endswith(suffix) and len(word) - len(suffix) >= 3 and not word.endswith("ss"):
                word = word.removesuffix(suffix)
                break
        if word[-1] in "ey":
            word = word[:-1] + ("i" if word[-1] == "y" else "")
        if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz":
            word = word[:-1]
    return word


def number_value(written: str) -> float | None:
    """``"1,250.5"`` is 1250.5 and ``"3,5"`` is 3.5; None for what is no number."""
    digits = unicodedata.normalize("NFKC", written)
    digits = digits.replace(",", "") if _THOUSANDS.fullmatch(digits) else digits.replace(",", ".")
    try:
        return float(digits)
    except ValueError:
        return None


def tokenize(text: str) -> list[Token]:
    """Words, numbers and CJK character pairs of ``text``, in order."""
    found: list[Token] = []
    for match in _TOKEN.finditer(text):
        written, start = match.group(), match.start()
        match match.lastgroup:
            case "cjk":
                found.extend(_bigrams(written, start))
            case "number":
                value = number_value(written)
                found.append(Token(written, written if value is None else f"{value:g}", start))
            case "ordinal":
                found.append(Token(written, f"{int(written[:-2])}th", start))
            case "percent":
                found.append(Token(written, "percent", start))
            case _:
                found.append(Token(written, stem(written), start))
    return found


def _bigrams(run: str, start: int) -> list[Token]:
    pairs = [run[i : i + 2] for i in range(len(run) - 1)] or [run]
    return [Token(pair, pair, start + i) for i, pair in enumerate(pairs)]


class Reference:
    """One reference, tokenized once: its words, its sentences and its windows."""

    def __init__(self, text: str, language: str) -> None:
        """Tokenize ``text``; ``language`` is the code for the sentence splitter."""
        by_sentence = [tokenize(piece) for piece in split_prose(text, language)]
        self._sentences = [words for words in by_sentence if words]
        self._ends = list(accumulate(len(words) for words in self._sentences))
        self.tokens = [token for words in self._sentences for token in words]
        self.stems = frozenset(token.stem for token in self.tokens)
        last = max(len(self.tokens) - WINDOW_WORDS + _STRIDE, 1)
        self._windows = [self.tokens[i : i + WINDOW_WORDS] for i in range(0, last, _STRIDE)]
        self._window_stems = [frozenset(t.stem for t in window) for window in self._windows]

    def support(self, weights: Counter[str] | dict[str, float]) -> Support:
        """The window that holds most of the weight, the first of those that tie."""
        total = sum(weights.values())
        if not total or not self.tokens:
            return Support(0.0, (), ())
        held = [
            sum(weight for word, weight in weights.items() if word in stems)
            for stems in self._window_stems
        ]
        best = max(range(len(held)), key=held.__getitem__)
        sentence = self._best_sentence(best, weights)
        return Support(held[best] / total, self._windows[best], sentence)

    def _best_sentence(self, window: int, weights: dict[str, float]) -> Sequence[Token]:
        start = window * _STRIDE
        end = min(start + WINDOW_WORDS, len(self.tokens)) - 1
        first, last = bisect_right(self._ends, start), bisect_right(self._ends, end)

        def weight(words: Sequence[Token]) -> float:
            return sum(weights.get(word, 0.0) for word in {token.stem for token in words})

        best = max(self._sentences[first : last + 1], key=weight, default=[])
        return best if weight(best) else ()


class Corpus:
    """The references of one call, and what they tell about the rarity of words."""

    def __init__(self, texts: Iterable[str], language: str) -> None:
        """Tokenize every reference once."""
        self.references = [Reference(text, language) for text in texts]
        self._frequency = Counter(word for ref in self.references for word in ref.stems)

    def weights(self, claim: Sequence[Token]) -> dict[str, float]:
        """Smoothed idf of every distinct stem of the claim."""
        return {token.stem: self._idf(token) for token in claim}

    def _idf(self, token: Token) -> float:
        seen, total = self._frequency[token.stem], len(self.references)
        idf = math.log(1 + (total + 1) / (seen + 1))
        return idf * (_FUNCTION_WEIGHT if token.text.casefold() in FUNCTION_WORDS else 1.0)
