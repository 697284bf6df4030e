"""Decides which cells a cross-encoder reads, and turns what it says into verdicts."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, cast

from claimspan.judges.calibrated import log_odds
from claimspan.judges.lexical.cells import (
    GatherSize,
    Sentences,
    Verdicts,
    Wanted,
    blocks_of,
    gather_sentences,
    wanted_of,
)
from claimspan.judges.local.background import Stop
from claimspan.judges.local.cross_encoder import PairLogits, TextPair
from claimspan.judges.protocol import AnswerText, Cell
from claimspan.quantities import (
    StatedValues,
    as_written,
    equal_values,
    has_rivals,
    is_bare_value,
    value_conflicts,
)
from claimspan.text.languages import detect_language
from claimspan.text.markdown import every_sentence
from claimspan.verdicts import Label, Verdict

__all__ = [
    "WINDOW_WORDS",
    "Decided",
    "Passage",
    "Question",
    "Reads",
    "VerdictRegression",
    "bundled_verdicts",
    "cell_features",
    "gather_sentences",
    "pretrained_verdicts",
]


# --- features and regression ----------------------------------------------------------------------

_LABELS: Final = (Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED)
"""Order of the labels in scores, probabilities and weights."""

Rows = tuple[tuple[float, ...], ...]
"""Weights of a regression: one row for each label, the bias last."""


class VerdictRegression(NamedTuple):
    """Logistic regressions of people's labels on the features of a cell."""

    full: Rows
    """Weights for all features of ``cell_features``, shape ``(3, 9)``."""

    lexical: Rows
    """Weights for ``_lexical_features`` alone, shape ``(3, 3)``."""

    @classmethod
    def read(cls, path: Path) -> VerdictRegression:
        """Reads the fitted constants of a JSON file."""
        content = cast("dict[str, list[list[float]]]", json.loads(path.read_text("utf-8")))
        full, lexical = (tuple(map(tuple, content[name])) for name in ("full", "lexical"))
        return cls(full, lexical)

    def verdict(self, features: Sequence[float]) -> Verdict:
        """The calibrated verdict for the eight features of a cell, or the lexical two."""
        rows = self.full if len(features) + 1 == len(self.full[0]) else self.lexical
        inputs = (*features, 1.0)
        scores = [math.fsum(w * x for w, x in zip(row, inputs, strict=True)) for row in rows]
        return _softmax_verdict(scores)


def _softmax_verdict(scores: Sequence[float]) -> Verdict:
    """Returns the verdict whose probabilities are the softmax of three scores.

    Its label is "entailed" from one half on: what is more probably not entailed is never called so.
    """
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    entailed, neutral, contradicted = (power / math.fsum(powers) for power in powers)
    other = Label.NEUTRAL if neutral >= contradicted else Label.CONTRADICTED
    label = Label.ENTAILED if entailed >= 0.5 else other
    return Verdict(label=label, entailed=entailed, neutral=neutral, contradicted=contradicted)


# Positions of the cross-encoder's logits.
_ENTAILED, _NEUTRAL, _CONTRADICTED = range(3)


def _lexical_features(verdict: Verdict) -> tuple[float, float]:
    """The log-odds that the reference is about the claim, and that it then denies it."""
    support = _support(verdict)
    return log_odds(support), log_odds((verdict.contradicted or 0.0) / (support or 1.0))


def cell_features(verdict: Verdict, logits: Sequence[float]) -> tuple[float, ...]:
    """Returns all features of a claim and a reference.

    Args:
        verdict: The lexical judge's verdict.
        logits: The cross-encoder's: entailed, neutral, contradicted.

    Returns:
        Eight numbers: the two lexical features; log-odds of entailment; log-odds of contradiction
        against neutral, and against both others; and three of them saturated (about the claim,
        entailed, contradicted), since the step from even odds to sure tells more than the next one.
    """
    about, denied = _lexical_features(verdict)
    entailed = _odds_against_rest(logits, _ENTAILED)
    contradicted = _odds_against_rest(logits, _CONTRADICTED)
    return (
        about,
        denied,
        entailed,
        logits[_CONTRADICTED] - logits[_NEUTRAL],
        contradicted,
        *(math.tanh(odds / 2) for odds in (about, entailed, contradicted)),
    )


def _odds_against_rest(logits: Sequence[float], position: int) -> float:
    others = [logit for i, logit in enumerate(logits) if i != position]
    largest = max(others)
    rest = math.log(math.fsum(math.exp(each - largest) for each in others))
    return logits[position] - largest - rest


# --- windows --------------------------------------------------------------------------------------

# A cross-encoder reads a limited number of words at once, and time grows with every word. So it
# reads the sentences of a reference that could support the claim, and no others.

WINDOW_WORDS: Final = 120
"""Length of a window, about 160 word pieces; a chunk of usual length is one window."""

# Mean AUROC on the tune halves, and word pieces of a pair whose reference has 100 words or more,
# for the bundled model: .829 and 79 so; .832 and 101 without a least gain; .819 and 77 with 45 and
# 45 words; .830 and 420 where a chunk is read whole, and a longer text in four windows.
_READ: Final = GatherSize(chosen=80, with_neighbours=40, min_gain=0.2)


# "No." may be the whole sentence that answers another question.
_MIN_QUOTE_WORDS: Final = 3
_ENDS: Final = " .!?\"'“”"


class Passage:
    """A reference, cut into sentences once, to be read for many claims."""

    def __init__(self, text: str, language: str) -> None:
        self._written = [each.split() for each in every_sentence(text, language)]
        self.sentences = [
            " ".join(words) for each in self._written for words in _cut(each, _READ.chosen)
        ]
        """The sentences; one of more than 80 words is cut into pieces."""

    def windows_for(self, claim: str) -> list[str]:
        """Returns the windows to read for a claim, at most one.

        Returns:
            Up to 80 words: the sentences that together have most of the claim's words, in the order
            of the text; the first sentence if none has any. Empty for a text without words.
        """
        return [self.window(wanted_of(claim))] if self.sentences else []

    def window(self, claim: Wanted) -> str:
        """As ``windows_for``, for the words of a claim."""
        return self._gathered.text(self._gathered.gather(claim, _READ) or [0])

    def quotes(self, claim: str) -> bool:
        """Tells whether a claim of some words is one of the sentences, word for word."""
        return len(claim.split()) >= _MIN_QUOTE_WORDS and _bare(claim) in self._bare_sentences

    @cached_property
    def windows(self) -> list[str]:
        """All of the text, in windows, for a model that reads it whole.

        A text of up to one window and a half stays one window: half a window on its own has too
        little context. A longer text gives runs of whole sentences of up to 120 words, each
        starting in the middle of the one before. A text without words gives none.
        """
        return _windows([words for each in self._written for words in _cut(each, WINDOW_WORDS)])

    @cached_property
    def _bare_sentences(self) -> frozenset[str]:
        return frozenset(_bare(" ".join(each)) for each in self._written)

    @cached_property
    def _gathered(self) -> Sentences:
        return Sentences(self.sentences)


_BROKEN: Final = re.compile(r"(?<![\w-])([^\W\d_]{2,30})- ([^\W\d_]{2,30})\b")
"""A word that the end of a line has broken, as in the text of a PDF, or the first of two words."""


def _unbroken(window: str, claim: str) -> str:
    """A window with its broken words whole, if the claim has them so.

    No other rule tells "vaca- tion" from "low- cost"; the model takes half a word for another.
    """
    said = claim.casefold()
    return _BROKEN.sub(
        lambda found: whole if (whole := found[1] + found[2]).casefold() in said else found[0],
        window,
    )


def _bare(sentence: str) -> str:
    return " ".join(sentence.casefold().split()).strip(_ENDS)


def _windows(sentences: Sequence[Sequence[str]]) -> list[str]:
    words = [word for sentence in sentences for word in sentence]
    if len(words) <= WINDOW_WORDS * 3 // 2:
        return [" ".join(words)] if words else []
    return [
        " ".join(word for sentence in sentences[start:end] for word in sentence)
        for start, end in _spans([len(sentence) for sentence in sentences])
    ]


def _cut(words: Sequence[str], limit: int) -> Iterator[Sequence[str]]:
    """Yields a sentence whole, or in pieces of half the limit if it is longer than that."""
    length = len(words) if len(words) <= limit else limit // 2
    for start in range(0, len(words), length or 1):
        yield words[start : start + length]


def _spans(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yields start and end of every run of sentences that fits into one window."""
    start, end = 0, 0
    while end < len(lengths):
        end, size = start, 0
        while end < len(lengths) and size + lengths[end] <= WINDOW_WORDS:
            size += lengths[end]
            end += 1
        yield start, end
        passed = 0
        while start < end and passed < size / 2:  # the next run starts in the middle of this one
            passed += lengths[start]
            start += 1


# --- what is read ---------------------------------------------------------------------------------

# References are read in the order of their promise. After so many in a row that are less probable
# than this to entail the claim, those that promise less are not read: on the tune half of
# refchecker_msmarco, ten passages a claim, that leaves 63 % of the cells to read, and loses .4 % of
# those that the model calls entailed. ``tests/benchmarks/local_skips.py`` has the test halves.
#
# No reference is ruled out by its words alone. Bounds on the words that it shares with a claim
# saved 5 % of the cells there, and left 1 to 4 % of the claims that people call entailed without
# any reference in five of ten sets.
PATIENCE: Final = 2
_HOPELESS_BELOW: Final = 0.2
# What no label carries: the judge is as sure of a claim as of its contrary.
_UNSURE: Final = 0.5
# Of the written claims of the fitting part that the model passes, and that leave out another value
# of the kind beside their own, .56 of 41 are true, and from .9 on .64 of 11: most are left open.
_SURE_BINDING: Final = 0.85
# People call each of the 113 claims of the tune halves entailed that are a sentence of their
# reference word for word. One wrong in a hundred is what so many can show.
_QUOTED: Final = Verdict(label=Label.ENTAILED, entailed=0.98, neutral=0.01, contradicted=0.01)
# Score of a label that a pretrained model does not have: its probability becomes 0.
_NO_SUCH_LABEL: Final = -1e9


class Question(NamedTuple):
    """The texts of one call, and what words alone say of the cells that are asked for."""

    claims: Sequence[str]
    references: Sequence[str]
    lexical: Mapping[Cell, Verdict]
    language: str | None
    """Code of the language of the references; None to detect it."""

    text: str | None = None
    """The question itself; None if unknown."""


class Decided(NamedTuple):
    """The verdicts of a call."""

    verdicts: Verdicts
    n_read: int
    """Number of cells that the model has read."""

    n_cut: int
    """Number of these whose texts are longer than the model reads."""


Reads: TypeAlias = Generator[Sequence[TextPair], Sequence[PairLogits], Decided]
"""Yields the pairs to read next, is sent what the model says of them, and returns the verdicts."""


class _Values(NamedTuple):
    """The values of claims and references, by their places; read when first asked for."""

    claims: Mapping[int, StatedValues]
    references: Mapping[int, StatedValues]

    @classmethod
    def of(cls, asked: Question) -> _Values:
        rows, columns = ({cell[side] for cell in asked.lexical} for side in (0, 1))
        return cls(
            {i: StatedValues(asked.claims[i]) for i in rows},
            {j: StatedValues(asked.references[j]) for j in columns},
        )


@dataclass
class _Row:
    claim: Wanted
    cells: list[Cell]
    """The cells to read, the most promising first."""

    n_read: int = 0
    n_hopeless: int = 0
    """How many of the last ones in a row did not entail the claim."""

    def next_cells(self) -> list[Cell]:
        return self.cells[self.n_read : self.n_read + PATIENCE - self.n_hopeless]

    def note(self, entailed: float) -> None:
        self.n_read += 1
        self.n_hopeless = self.n_hopeless + 1 if entailed < _HOPELESS_BELOW else 0


def bundled_verdicts(regression: VerdictRegression, asked: Question, stop: Stop) -> Reads:
    """Combines the lexical verdicts with the bundled model's logits of the cells that it reads.

    ``stop`` is called for each reference that is cut into sentences, and between cells.
    """
    passages = _passages(asked, stop)
    read = _Values.of(asked)
    verdicts = {
        cell: regression.verdict(_lexical_features(words)) for cell, words in asked.lexical.items()
    }
    n_read, n_cut = 0, 0
    quoted = {(i, j) for i, j in asked.lexical if passages[j].quotes(asked.claims[i])}
    rows = _rows(asked, passages, quoted)
    while pairs := {cell: pair for cell, pair in _next_pairs(rows, passages, read)}:
        found = yield list(pairs.values())
        n_read, n_cut = n_read + len(pairs), n_cut + sum(each.cut for each in found)
        for cell, each in zip(pairs, found, strict=True):
            verdicts[cell] = regression.verdict(cell_features(asked.lexical[cell], each.logits))
        for row in rows:
            for cell in row.next_cells():
                row.note(verdicts[cell].entailed or 0.0)
    decided = _with_values(verdicts, asked, read, stop)
    return Decided(decided | dict.fromkeys(quoted, _QUOTED), n_read, n_cut)


def pretrained_verdicts(labels: Sequence[Label], asked: Question, stop: Stop) -> Reads:
    """The verdicts of a model by others, in the best window of every reference."""
    passages = _passages(asked, stop)
    shown = {
        (i, j): [(window, asked.claims[i]) for window in passages[j].windows or [""]]
        for i, j in asked.lexical
    }
    found = iter((yield [pair for pairs in shown.values() for pair in pairs]))
    verdicts: Verdicts = {}
    n_cut = 0
    for cell, pairs in shown.items():
        windows = list(islice(found, len(pairs)))
        verdicts[cell] = _best_window_verdict([each.logits for each in windows], labels)
        n_cut += any(each.cut for each in windows)
    return Decided(verdicts, len(verdicts), n_cut)


def _passages(asked: Question, stop: Stop) -> dict[int, Passage]:
    passages: dict[int, Passage] = {}
    for j in sorted({j for _, j in asked.lexical}):
        stop()
        text = asked.references[j]
        passages[j] = Passage(text, asked.language or detect_language(text) or "en")
    return passages


def _rows(asked: Question, passages: Mapping[int, Passage], quoted: Set[Cell]) -> list[_Row]:
    rows: list[_Row] = []
    for block in blocks_of(asked.lexical):
        for i in block.claims:
            if is_bare_value(asked.claims[i]):
                continue
            open_cells = {(i, j) for j in block.references if passages[j].sentences}
            by_promise = sorted(
                open_cells - quoted, key=lambda cell: (-_support(asked.lexical[cell]), cell)
            )
            rows.append(_Row(wanted_of(asked.claims[i]), by_promise))
    return rows


def _next_pairs(
    rows: Sequence[_Row], passages: Mapping[int, Passage], read: _Values
) -> Iterator[tuple[Cell, TextPair]]:
    for row in rows:
        for i, j in row.next_cells():
            claim = as_written(read.claims[i], read.references[j])
            yield (i, j), (claim, _unbroken(passages[j].window(row.claim), claim))


def _with_values(verdicts: Verdicts, asked: Question, read: _Values, stop: Stop) -> Verdicts:
    """Returns the verdicts with what values tell.

    A claim that is a value alone is decided by words. One with a value that its reference does not
    give, or gives otherwise, is at most unsure: it may be calculated, or changed. So is one with a
    value that stands beside another of its kind, unless the model is sure whose it is.
    """
    # Nothing else corrects the model. Rules about changed words, missing values and other forms of
    # them turned 36 verdicts on the written claims of the fitting part round, and five rightly.
    question = StatedValues(asked.text or "")
    found: Verdicts = {}
    for (i, j), verdict in verdicts.items():
        # Each cell holds the interpreter's lock for a millisecond or so; others wait for it.
        stop()
        found[i, j] = verdict
        if is_bare_value(asked.claims[i]):
            found[i, j] = asked.lexical[i, j]
        elif (verdict.entailed or 0.0) > _UNSURE:
            claim, reference = read.claims[i], read.references[j]
            conflicts = {(each.start, each.end) for each in value_conflicts(claim, reference)}
            if conflicts and isinstance(asked.references[j], AnswerText):
                # An answer need not repeat the values of its question.
                conflicts -= {(each.start, each.end) for each, _ in equal_values(claim, question)}
            is_sure = (verdict.entailed or 0.0) >= _SURE_BINDING
            if conflicts or (not is_sure and has_rivals(claim, reference)):
                found[i, j] = _unsure(verdict)
    return found


def _unsure(verdict: Verdict) -> Verdict:
    neutral = (verdict.neutral or 0.0) + (verdict.entailed or 0.0) - _UNSURE
    return Verdict(
        label=Label.NEUTRAL,
        entailed=_UNSURE,
        neutral=neutral,
        contradicted=verdict.contradicted,
    )


def _support(verdict: Verdict) -> float:
    """The probability that the reference is about the claim at all."""
    return (verdict.entailed or 0.0) + (verdict.contradicted or 0.0)


def _best_window_verdict(windows: Sequence[Sequence[float]], labels: Sequence[Label]) -> Verdict:
    """The verdict of the window with the highest p(entailed), not calibrated."""

    def verdict(logits: Sequence[float]) -> Verdict:
        by_label = dict(zip(labels, logits, strict=True))
        return _softmax_verdict([by_label.get(label, _NO_SUCH_LABEL) for label in _LABELS])

    return max(map(verdict, windows), key=lambda each: each.entailed or 0.0)
