"""Measures which share of a claim's words the best window of a reference has.

Words are compared by stem and weighted by how rare they are among the references of one call
(smoothed inverse document frequency).
"""

from __future__ import annotations

import asyncio
import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import accumulate, chain, pairwise
from operator import itemgetter
from typing import Final, NamedTuple, Self, TypeVar, cast
from unicodedata import is_normalized

from claimspan.quantities import stems_within
from claimspan.text.languages import detect_language
from claimspan.text.markdown import every_sentence
from claimspan.text.words import Token, tokenize

__all__ = [
    "DENYING",
    "Corpus",
    "Patterns",
    "Reference",
    "Support",
    "Vocabulary",
    "Weighted",
    "Wording",
    "stem_of",
    "word_weight",
]


# --- words ----------------------------------------------------------------------------------------

# A record has some 170 cells, and each claim and each sentence is in many of them. What a detector
# looks for in one side alone is found once, and kept with the words.

_T = TypeVar("_T")
stem_of = itemgetter(Token._fields.index("stem"))
"""Returns the stem of a token."""

DENYING: Final = frozenset({"not", "non", "never", "isn't", "aren't", "wasn't", "weren't"})
"""Words that deny an adjective behind them: ``not refundable``."""

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
        """Returns what a function finds in the words; it is called once, and the result kept.

        Args:
            reader: A function of a module, which finds the same each time.
        """
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


# --- patterns -------------------------------------------------------------------------------------

# The words of all claims are numbered. A window is compared with a claim by one ``&`` then, and the
# weight of what they share is summed once for each combination of words, however many windows and
# sentences have it.


class Patterns(NamedTuple):
    """What one reference has of a vocabulary."""

    windows: Sequence[int]
    """The words of each window."""

    sentences: Sequence[int]
    """The words of each sentence."""


class Vocabulary:
    """The stems of some claims, each with a bit of its own."""

    def __init__(self, stems: Iterable[str]) -> None:
        """Numbers the stems.

        Args:
            stems: The stems; their bits are in no order.
        """
        self.bits: Mapping[str, int] = {
            stem: 1 << place for place, stem in enumerate(frozenset(stems))
        }
        """The bit of each stem."""
        self._stems = frozenset(self.bits)

    def pattern(self, stems: Iterable[str]) -> int:
        """Returns which words of the vocabulary are among some stems."""
        bits, pattern = self.bits, 0
        for stem in self._stems.intersection(stems):
            pattern |= bits[stem]
        return pattern


class Weighted:
    """The weights of a claim's stems, with the sums for combinations of them."""

    def __init__(self, weights: Mapping[str, float], vocabulary: Vocabulary | None = None) -> None:
        """Keeps the weights.

        Args:
            weights: Weight of each stem of the claim.
            vocabulary: Has all of these stems; None for one of these alone.
        """
        self.vocabulary = vocabulary or Vocabulary(weights)
        """The numbers of the words."""
        self.weights = weights
        """Weight of each stem of the claim."""
        self.total: float = sum(weights.values())
        """The sum of all weights."""
        bits = self.vocabulary.bits
        self._items = [(bits[stem], weight) for stem, weight in weights.items()]
        self._sums: dict[int, float] = {}
        self.mask = 0
        """The bits of all stems."""
        for bit, _ in self._items:
            self.mask |= bit

    def weight(self, pattern: int) -> float:
        """Returns the weight of a combination of the claim's words.

        Args:
            pattern: The bits of words of this claim, and of no others.
        """
        found = self._sums.get(pattern)
        if found is None:
            # In the order of the claim: the last bit of a sum depends on its order.
            found = sum([weight for bit, weight in self._items if bit & pattern])
            self._sums[pattern] = found
        return found

    def pattern(self, stems: Iterable[str]) -> int:
        """Returns the bits of those of some stems that are the claim's."""
        bits, pattern = self.vocabulary.bits, 0
        for stem in stems:
            pattern |= bits.get(stem, 0)
        return pattern & self.mask

    def share(self, stems: Iterable[str]) -> float:
        """Returns the share of the weight that some stems have, 0 to 1."""
        return self.weight(self.pattern(stems)) / (self.total or 1.0)


def _heaviest(weighted: Weighted, patterns: Sequence[int], start: int, end: int) -> tuple[int, int]:
    """Returns which of some patterns has most weight of a claim; of equal ones, the first.

    Returns:
        Its place, and what it has of the claim.
    """
    mask = weighted.mask
    best, held = start, patterns[start] & mask
    weight = -1.0
    for place in range(start + 1, end):
        pattern = patterns[place] & mask
        # What has no other words than the best one so far weighs no more.
        if pattern & ~held:
            if weight < 0:
                weight = weighted.weight(held)
            other = weighted.weight(pattern)
            if other > weight:
                best, held, weight = place, pattern, other
    return best, held


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
_bases_of = itemgetter(Token._fields.index("bases"))
_is_negation = itemgetter(Token._fields.index("is_negation"))
_NO_WORDS: Final = Wording()
# Scripts whose runs of characters become pairs.
_RUNS: Final = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]")
# How a word begins within which a value may end.
_MAY_END_VALUE: Final = frozenset("qQpPcCfF")
# Names that were looked for in one reference, which may be kept for many records.
_MAX_LOOKED_FOR: Final = 200


class Signs(NamedTuple):
    """What the words of a text are, wherever they stand in it."""

    words: Set[str]
    """All words in lower case."""

    bases: Set[str]
    """What is left of words without a prefix that may deny."""

    turned: Set[str]
    """These, and the words behind ``not``, ``never`` and their like."""

    has_negation: bool
    """Whether any word is a negation."""


class Support:
    """The part of one reference that supports one claim best."""

    __slots__ = ("_claim", "_patterns", "_sentence", "_window", "coverage", "held", "reference")

    def __init__(
        self,
        reference: Reference,
        claim: Weighted,
        patterns: Patterns,
        window: int | None,
        held: int = 0,
    ) -> None:
        """Keeps what ``Reference.supported`` has found."""
        self.reference = reference
        """The whole reference."""
        self.held = held
        """The bits of the claim's words that the best window has; 0 where no word matches."""
        self.coverage = claim.weight(held) / claim.total if held else 0.0
        """Weight of the claim's words in the best window over the weight of all of them, 0 to 1."""
        self._claim, self._patterns, self._window = claim, patterns, window
        self._sentence: Wording | None = None

    @property
    def sentence(self) -> Wording:
        """The sentence of that window with most weight of the claim; empty without a match."""
        if self._sentence is None:
            self._sentence = _NO_WORDS
            if self._window is not None and self.held:
                self._sentence = self.reference.best_sentence(
                    self._claim, self._patterns, self._window
                )
        return self._sentence

    def quotes(self, claim: Wording) -> bool:
        """Tells whether the best window has all words of a claim, and the reference has them so."""
        return self.held == self._claim.mask and self.reference.quotes(claim)

    @property
    def most_words(self) -> int:
        """How many different words of the claim a sentence of the best window has at most."""
        return self.reference.most_words(self._claim, self._patterns, self._window or 0)

    @property
    def window(self) -> Wording:
        """The best window."""
        return _NO_WORDS if self._window is None else self.reference.window(self._window)

    @property
    def window_stems(self) -> Set[str]:
        """The stems of the best window."""
        return frozenset() if self._window is None else self.reference.window_stems(self._window)


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
            sentences: Its sentences with their tokens, where they are known already.
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
        self._spelled: str | None = None
        self._letters: str | None = None
        self._within: frozenset[str] | None = None
        self._is_spaced = self.language == "en" and _is_spaced(text)
        self._has: dict[str, bool] = {}

    @classmethod
    async def read(cls, text: str, language: str) -> Self:
        """Tokenizes a reference, with pauses in which the event loop turns to other work.

        Args:
            text: The reference; of any length.
            language: Code of its language.
        """
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
        if self._spelled is None:
            self._spelled = _spelled(self.tokens)
        return claim.read(_spelled) in self._spelled

    def has_letters(self, word: str) -> bool:
        """Tells whether a word in lower case is anywhere, alone or as a part of another one."""
        found = self._has.get(word)
        if found is None:
            if self._letters is None:
                self._letters = " ".join(map(_folded_of, self.tokens))
            if len(self._has) >= _MAX_LOOKED_FOR:
                self._has.clear()
            found = self._has[word] = word in self._letters
        return found

    @cached_property
    def signs(self) -> Signs:
        """What its words are, wherever they stand."""
        words = frozenset(map(_folded_of, self.tokens))
        denying = words & DENYING
        bases = frozenset(chain.from_iterable(map(_bases_of, self.tokens)))
        return Signs(
            words=words,
            bases=bases,
            turned=bases | self._words_after(denying) if denying else bases,
            has_negation=any(map(_is_negation, self.tokens)),
        )

    def stems_within(self) -> Set[str] | None:
        """Returns stems among which are the English ones of all words of the text.

        Returns:
            None where its words are not read as English ones, or are runs of characters.
        """
        if self._within is None and self._is_spaced:
            texts = set(map(_text_of, self.tokens))
            # The stem of a plain word is all that ``stems_within`` would give for it.
            unsure = [t for t in texts if not t.isalpha() or t[0] in _MAY_END_VALUE]
            more = set(stems_within(unsure))
            self._within = self.stems if more <= self.stems else self.stems | more
        return self._within

    def window(self, place: int) -> Wording:
        """Returns the words of a window."""
        if len(self._starts) == 1:
            return self.tokens
        if place not in self._windows:
            start = self._starts[place]
            self._windows[place] = Wording(self.tokens[start : start + _WINDOW_WORDS])
        return self._windows[place]

    def window_stems(self, place: int) -> frozenset[str]:
        """Returns the stems of the words of a window."""
        return self.window(place).stems

    def patterns(self, vocabulary: Vocabulary) -> Patterns:
        """Returns which words of some claims its windows and its sentences have.

        Args:
            vocabulary: The words of the claims.
        """
        windows: Iterable[Iterable[str]] = (self.stems,)
        if len(self._starts) > 1:
            windows = (map(stem_of, tokens) for tokens in self._cut())
        return Patterns(
            [vocabulary.pattern(stems) for stems in windows],
            [vocabulary.pattern(map(stem_of, tokens)) for tokens in self._sentences],
        )

    def support(self, weights: Mapping[str, float]) -> Support:
        """Finds the window with the largest weight of a claim's words; of equal ones, the first.

        Args:
            weights: Weight by stem of the claim, as ``Corpus.weights`` gives it.
        """
        weighted = Weighted(weights)
        return self.supported(weighted, self.patterns(weighted.vocabulary))

    def supported(self, claim: Weighted, patterns: Patterns) -> Support:
        """Finds the window with the largest weight of a claim's words, as ``support`` does.

        Args:
            claim: The weights of the claim's words.
            patterns: What ``patterns`` gives for the claim's vocabulary.
        """
        if not claim.total or not self.tokens:
            return Support(self, claim, patterns, None)
        best, held = _heaviest(claim, patterns.windows, 0, len(patterns.windows))
        return Support(self, claim, patterns, best, held)

    def best_sentence(self, claim: Weighted, patterns: Patterns, window: int) -> Wording:
        """Returns the sentence of a window with the largest weight of a claim's words.

        Args:
            claim: The weights of the claim's words.
            patterns: What ``patterns`` gives for the claim's vocabulary.
            window: Which window.
        """
        first, last = self._spans[window]
        place, _ = _heaviest(claim, patterns.sentences, first, last + 1)
        return self._sentences[place]

    def most_words(self, claim: Weighted, patterns: Patterns, window: int) -> int:
        """Returns how many different words of a claim one sentence of a window has at most.

        Args:
            claim: The weights of the claim's words.
            patterns: What ``patterns`` gives for the claim's vocabulary.
            window: Which window.
        """
        first, last = self._spans[window]
        mask = claim.mask
        return max([(each & mask).bit_count() for each in patterns.sentences[first : last + 1]])

    @cached_property
    def denials(self) -> Sequence[Wording]:
        """Its sentences with a negation."""
        if not self.signs.has_negation:
            return ()
        return [words for words in self._sentences if any(map(_is_negation, words))]

    @cached_property
    def _spans(self) -> Sequence[tuple[int, int]]:
        """The first and the last sentence of every window."""
        ends = (min(start + _WINDOW_WORDS, len(self.tokens)) - 1 for start in self._starts)
        return [
            (bisect_right(self._ends, start), bisect_right(self._ends, end))
            for start, end in zip(self._starts, ends, strict=True)
        ]

    def _words_after(self, words: Set[str]) -> frozenset[str]:
        folded = map(_folded_of, self.tokens)
        return frozenset([word for before, word in pairwise(folded) if before in words])

    def _cut(self) -> Iterator[Sequence[Token]]:
        """Yields the tokens of every window."""
        return (self.tokens[start : start + _WINDOW_WORDS] for start in self._starts)


class Corpus:
    """The references of one call, and how many of them have each word."""

    def __init__(self, references: Sequence[Reference]) -> None:
        """Counts the words.

        Args:
            references: The references, in order.
        """
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
    # Whether a negation is missing is for a detector to say; in English it counts here as well, as
    # the weights were chosen so.
    is_negation = token.language != "en" and token.is_negation
    return _FUNCTION_WEIGHT if is_negation or token.is_function else 1.0


def _tokenized(text: str, language: str) -> Iterator[tuple[str, list[Token]]]:
    return ((sentence, tokenize(sentence, language)) for sentence in every_sentence(text, language))


def _is_spaced(text: str) -> bool:
    """Tells whether the tokens of a text are its words, composed as they are written."""
    return text.isascii() or (is_normalized("NFC", text) and not _RUNS.search(text))


def _spelled(tokens: Iterable[Token]) -> str:
    """Returns the words with a separator around each that no word contains."""
    joined = "\n".join(map(_text_of, tokens))
    return f"\n{joined}\n" if joined else "\n"
