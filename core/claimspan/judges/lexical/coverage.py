"""Measures which share of a claim's words the best window of a reference has.

Words are compared by stem and weighted by how rare they are among the references of one call
(smoothed inverse document frequency).
"""

from __future__ import annotations

import asyncio
import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property, reduce
from itertools import accumulate, chain
from operator import add, itemgetter
from typing import Final, Self, TypeVar, cast

from claimspan.text.languages import detect_language
from claimspan.text.markdown import every_sentence
from claimspan.text.words import Token, tokenize

__all__ = [
    "Corpus",
    "Reference",
    "Support",
    "Wording",
    "stem_of",
    "word_weight",
]


# --- words ----------------------------------------------------------------------------------------

# A record has some 170 cells, and each claim and each sentence is in many of them. What a finder
# looks for in one side alone is found once, and kept with the words.

_T = TypeVar("_T")
stem_of = itemgetter(Token._fields.index("stem"))
"""Returns the stem of a token."""

_UNREAD: Final = object()


class Wording(tuple[Token, ...]):
    """The tokens of a claim, a sentence or a window.

    Most sentences of a reference support no claim best: nothing is kept of them but their tokens.
    """

    @cached_property
    def stems(self) -> frozenset[str]:
        """The stems of all words."""
        return _stems_of(self)

    _kept: dict[object, object] | None = None

    def read(self, reader: Callable[[Wording], _T]) -> _T:
        """Returns what a function finds in the words; it is called once, and the result kept."""
        kept = self._kept
        if kept is None:
            kept = self._kept = {}
        found = kept.get(reader, _UNREAD)
        if found is _UNREAD:
            found = kept[reader] = reader(self)
        return cast("_T", found)

    @property
    def folded(self) -> tuple[str, ...]:
        """All words in lower case, in order."""
        return self.read(_folded)


def _stems_of(tokens: Iterable[Token]) -> frozenset[str]:
    """Returns the stems of some tokens, which are not kept as those of a ``Wording`` are."""
    return frozenset(map(stem_of, tokens))


def _folded(words: Wording) -> tuple[str, ...]:
    return tuple([token.folded for token in words])


# --- coverage -------------------------------------------------------------------------------------

# A paragraph. With 40 words the mean AUROC on the tune halves is .002 lower.
_WINDOW_WORDS: Final = 120
_STRIDE: Final = _WINDOW_WORDS // 2

# One reference gives no idf that would mark function words as common, so their weight is scaled
# down. Chosen on whole development sets; on the tune halves alone the mean AUROC of coverage is
# .7299, with .2 it is .7304, with 1 it is .7209.
_FUNCTION_WEIGHT: Final = 0.35
# A missing number tells more than a missing word, which may have a synonym. From the tune halves:
# it gains on most sets and costs up to .01 on healthver and refchecker.
_NUMBER_WEIGHT: Final = 1.5
# About a millisecond of work between two turns of the event loop.
_TOKENS_AT_ONCE: Final = 500

_text_of = itemgetter(Token._fields.index("text"))
_folded_of = itemgetter(Token._fields.index("folded"))
_NO_WORDS: Final = Wording()


# Of English, German, French and Slovenian.
_PRONOUNS: Final = frozenset(
    "it they he she this these its their his her er sie dieser diese dieses il elle ils elles ona "
    "oni".split()
)


class Support:
    """The part of one reference that supports one claim best."""

    def __init__(
        self, reference: Reference, weights: Mapping[str, float], window: int | None, weight: float
    ) -> None:
        """Keeps the results of ``Reference.support``."""
        self.reference = reference
        """The whole reference."""
        self._weights, self._window = weights, window
        self._total = _weight(weights, weights.keys()) or 1.0
        self.coverage = weight / self._total
        """Weight of the claim's words in the best window over the weight of all, 0 to 1."""

    @property
    def window(self) -> Wording:
        """The best window; empty without a match."""
        return _NO_WORDS if self._window is None else self.reference.window(self._window)

    @cached_property
    def sentence(self) -> Wording:
        """The sentence of that window with most weight of the claim; empty without a match."""
        if self._window is None:
            return _NO_WORDS
        sentences = self.reference.sentences_of(self._window)
        return max(sentences, key=lambda words: _weight(self._weights, words.stems))

    @cached_property
    def told_in_a_row(self) -> Set[str]:
        """The stems of that sentence and of the one before it, or of more that open with a pronoun.

        "The laboratory is in Leeds. It is closed in August." tells when the laboratory is closed.
        """
        if self._window is None:
            return frozenset()
        sentences = self.reference.sentences_of(self._window)
        at = next(i for i, words in enumerate(sentences) if words is self.sentence)
        first = max(at - 1, 0)
        while first and sentences[first][0].folded in _PRONOUNS:
            first -= 1
        return frozenset[str]().union(*(words.stems for words in sentences[first : at + 1]))

    def lacking(self, stems: Set[str]) -> float:
        """Returns the share of the claim's weight in those stems that the best window lacks."""
        lacking = stems - self.window.stems if stems else stems
        return _weight(self._weights, lacking) / self._total


def _weight(weights: Mapping[str, float], stems: Set[str]) -> float:
    # In the order of the claim, and one by one as `Reference.support` does it: from Python 3.12 on
    # `sum` rounds otherwise, and the share of all words would be a last digit off 1.
    return reduce(add, [weight for stem, weight in weights.items() if stem in stems], 0.0)


class Reference:
    """One reference, tokenized once, with its sentences and its overlapping windows."""

    def __init__(
        self,
        text: str,
        language: str | None = None,
        *,
        sentences: Iterable[tuple[str, list[Token]]] | None = None,
    ) -> None:
        """Tokenizes a reference.

        Args:
            text: The reference.
            language: Code of its language; None to detect it.
            sentences: Its sentences with their tokens, if they are known already.
        """
        self.language = language or detect_language(text) or "en"
        """Code of the language by whose rules it was read: its tokens are compared with tokens of
        the same language."""
        if sentences is None:
            sentences = _tokenized(text, self.language)
        self.sentences = [(written, Wording(tokens)) for written, tokens in sentences]
        """All sentences, as written and as words; one of signs alone has no words."""
        self._sentences = [words for _, words in self.sentences if words]
        self._ends = list(accumulate(map(len, self._sentences)))
        self.tokens = Wording(chain.from_iterable(self._sentences))
        """All tokens of the reference, in order."""
        self.stems = self.tokens.stems
        """The stems of all tokens."""
        self._starts = range(0, max(len(self.tokens) - _WINDOW_WORDS + _STRIDE, 1), _STRIDE)
        self._windows: dict[int, Wording] = {}

    @classmethod
    async def read(cls, text: str, language: str) -> Self:
        """Tokenizes a reference, with pauses in which the event loop turns to other work."""
        sentences: list[tuple[str, list[Token]]] = []
        pending = 0
        for written, tokens in _tokenized(text, language):
            sentences.append((written, tokens))
            pending += len(tokens)
            if pending > _TOKENS_AT_ONCE:
                pending = 0
                await asyncio.sleep(0)
        return cls(text, language, sentences=sentences)

    def quotes(self, claim: Wording) -> bool:
        """Tells whether the reference has the words of a claim one after the other."""
        return claim.read(_spelled) in self._spelled

    def has_letters(self, word: str) -> bool:
        """Tells whether a word in lower case is anywhere, alone or as a part of another one."""
        return word in self._letters

    @cached_property
    def _spelled(self) -> str:
        return _spelled(self.tokens)

    @cached_property
    def _letters(self) -> str:
        return " ".join(map(_folded_of, self.tokens))

    def support(self, weights: Mapping[str, float]) -> Support:
        """Finds the window with the largest weight of a claim's words; of equal ones, the first.

        Args:
            weights: Weight by stem of the claim, as ``Corpus.weights`` gives it.
        """
        found: dict[int, float] = {}
        for stem, weight in weights.items():
            for window in self._windows_with.get(stem, ()):
                found[window] = found.get(window, 0.0) + weight
        best = min(found, key=lambda window: (-found[window], window), default=None)
        return Support(self, weights, best, 0.0 if best is None else found[best])

    def window(self, place: int) -> Wording:
        """Returns the words of a window."""
        if len(self._starts) == 1:
            return self.tokens
        if place not in self._windows:
            start = self._starts[place]
            self._windows[place] = Wording(self.tokens[start : start + _WINDOW_WORDS])
        return self._windows[place]

    def sentences_of(self, window: int) -> Sequence[Wording]:
        """Returns the sentences that have any word of a window, in order."""
        start = self._starts[window]
        end = min(start + _WINDOW_WORDS, len(self.tokens)) - 1
        return self._sentences[bisect_right(self._ends, start) : bisect_right(self._ends, end) + 1]

    @cached_property
    def _windows_with(self) -> Mapping[str, Sequence[int]]:
        """The windows that have each stem, in order."""
        if len(self._starts) == 1:
            return dict.fromkeys(self.stems, (0,))
        found: defaultdict[str, list[int]] = defaultdict(list)
        for place, start in enumerate(self._starts):
            for stem in _stems_of(self.tokens[start : start + _WINDOW_WORDS]):
                found[stem].append(place)
        # Of a chunk there are few different ones, and equal ones are one in memory.
        same: dict[tuple[int, ...], tuple[int, ...]] = {}
        return {
            stem: same.setdefault(places, places)
            for stem, places in zip(found, map(tuple, found.values()), strict=True)
        }


class Corpus:
    """The references of one call, and how many of them have each word."""

    def __init__(self, references: Sequence[Reference]) -> None:
        """Counts the words."""
        self.references = references
        """The tokenized references, in order."""
        total = len(references)
        rarities = [math.log(1 + (total + 1) / (seen + 1)) for seen in range(total + 1)]
        seen_in = Counter(chain.from_iterable([reference.stems for reference in references]))
        self._rarity = {stem: rarities[seen] for stem, seen in seen_in.items()}
        self._unseen = rarities[0]

    def weights(self, claim: Iterable[Token]) -> dict[str, float]:
        """Returns the weight of every distinct stem of a claim: smoothed idf by kind of word."""
        words = claim if isinstance(claim, Wording) else Wording(claim)
        known, unseen = self._rarity, self._unseen
        return {
            stem: known.get(stem, unseen) * weight
            for stem, weight in words.read(_kind_weights).items()
        }


def _kind_weights(words: Wording) -> dict[str, float]:
    return {token.stem: word_weight(token) for token in words}


def word_weight(token: Token) -> float:
    """Returns the weight of a word by its kind alone: 1.5 for numbers, 0.35 for function words."""
    if token.stem[:1].isdigit():
        return _NUMBER_WEIGHT
    # Whether a negation is missing is for an edit to say; in English it counts here as well, as
    # the weights were chosen so.
    is_negation = token.language != "en" and token.is_negation
    return _FUNCTION_WEIGHT if is_negation or token.is_function else 1.0


def _tokenized(text: str, language: str) -> Iterator[tuple[str, list[Token]]]:
    return ((sentence, tokenize(sentence, language)) for sentence in every_sentence(text, language))


def _spelled(tokens: Iterable[Token]) -> str:
    """Returns the words with a separator around each that no word contains."""
    joined = "\n".join(map(_text_of, tokens))
    return f"\n{joined}\n" if joined else "\n"
