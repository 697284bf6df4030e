"""Some cells of a matrix, and the verdict of several references read together.

For judges whose verdicts rest on the references of one call: which words are rare among them.
"""

from __future__ import annotations

import asyncio
import math
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Final, NamedTuple

from claimspan.cost.usage import add_undecided
from claimspan.errors import ConfigError
from claimspan.judges.lexical.coverage import word_weight
from claimspan.judges.protocol import AnswerText, Cell
from claimspan.text.languages import detect_language
from claimspan.text.markdown import every_sentence
from claimspan.text.percentages import percent_hint
from claimspan.text.words import FUNCTION_WORDS, Token, tokenize
from claimspan.verdicts import UNSURE, Claim, Label, Verdict, VerdictMatrix

__all__ = [
    "WORDS_SURE_FROM",
    "Block",
    "GatherSize",
    "Sentences",
    "SureFrom",
    "Verdicts",
    "Wanted",
    "blocks_of",
    "checked_sure_from",
    "context_cells",
    "entails",
    "gather_sentences",
    "gathered_beyond_one",
    "is_sure",
    "matrix_of",
    "sure_verdicts",
    "verdicts_of",
    "wanted_of",
    "with_joint",
]


# --- gathered sentences ---------------------------------------------------------------------------

# What supports a claim may lie far apart: one sentence names the company, another the year.

# A text may have a hundred thousand sentences; only those with most of the claim are considered.
_MAX_CANDIDATES: Final = 50
# Gain of a candidate: words of the claim that a chosen sentence has already count a tenth, and the
# length is damped so that neither headings nor very long sentences always win.
_REPEATED_WORD_WEIGHT: Final = 0.1
_LENGTH_OFFSET: Final = 10
_LENGTH_EXPONENT: Final = 0.3


class GatherSize(NamedTuple):
    """How many words are gathered."""

    chosen: int
    """At most so many words are of sentences that have words of the claim."""

    with_neighbours: int
    """Neighbours of the chosen sentences are added up to so many words in all."""

    min_gain: float = 0.0
    """Share of the claim's content that every sentence but the first has to add, by weight."""


class Wanted(NamedTuple):
    """The words of a claim, tokenized once to be looked for in many texts."""

    weights: Mapping[str, float]
    """Weight of every stem by its kind of word."""

    content: frozenset[str]
    """The stems of words that carry content."""


def wanted_of(claim: str | Sequence[Token]) -> Wanted:
    """Returns the words of a claim, given as its text or as its English tokens."""
    tokens = tokenize(claim) if isinstance(claim, str) else claim
    return Wanted(
        {token.stem: word_weight(token) for token in tokens},
        frozenset(token.stem for token in tokens if token.folded not in FUNCTION_WORDS),
    )


class Sentences:
    """Sentences of one or several texts, tokenized once, to be gathered for many claims."""

    def __init__(self, sentences: Iterable[str] = ()) -> None:
        """Tokenizes sentences."""
        self._texts: list[str] = []
        self._stems: list[frozenset[str]] = []
        self._lengths: list[int] = []
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        for each in sentences:
            self.add(each)

    def __len__(self) -> int:
        """How many sentences there are."""
        return len(self._texts)

    def add(self, sentence: str) -> None:
        """Adds a sentence of another text."""
        stems = frozenset([token.stem for token in tokenize(sentence)])
        for stem in stems:
            self._places[stem].append(len(self._texts))
        self._texts.append(sentence)
        self._stems.append(stems)
        self._lengths.append(len(sentence.split()))

    def gather(self, claim: Wanted, size: GatherSize) -> list[int]:
        """Chooses the sentences that together have most of a claim's words.

        Sentences are chosen greedily, each for the words of the claim that those before it lack;
        the remaining room goes to their neighbours.

        Returns:
            Indices of the sentences in their order; empty if none has a word of the claim.
        """
        chosen = self._choose(claim, size)
        return sorted(_with_neighbours(chosen, self._lengths, size.with_neighbours))

    def _choose(self, claim: Wanted, size: GatherSize) -> set[int]:
        """Chooses sentences greedily until no word of the claim is missing or no sentence fits."""
        # A word is the rarer, the fewer of the sentences have it.
        weights = {
            stem: weight * math.log(1 + len(self._texts) / len(self._places[stem]))
            for stem, weight in claim.weights.items()
            if stem in self._places
        }
        said: defaultdict[int, set[str]] = defaultdict(set)
        for stem in weights:
            for place in self._places[stem]:
                said[place].add(stem)
        missing = set(weights)

        def gain(place: int) -> float:
            stems = said[place]
            gained = sum(
                [
                    w * (_REPEATED_WORD_WEIGHT + (s in missing))
                    for s, w in weights.items()
                    if s in stems
                ]
            )
            return gained / float((_LENGTH_OFFSET + self._lengths[place]) ** _LENGTH_EXPONENT)

        def content_weight(stems: Set[str]) -> float:
            return sum([w for s, w in weights.items() if s in stems and s in claim.content])

        least = size.min_gain * content_weight(missing)
        candidates: list[int] = sorted(sorted(said), key=gain, reverse=True)[:_MAX_CANDIDATES]
        chosen, n_words = set[int](), 0
        while candidates and missing:
            for best in sorted(candidates, key=gain, reverse=True):
                candidates.remove(best)
                new = missing & said[best]
                fits = n_words + self._lengths[best] <= size.chosen
                fits = fits and (not least or content_weight(new) >= least)
                if fits or not chosen:
                    chosen.add(best)
                    n_words += self._lengths[best]
                    missing -= new
                    break  # what the others add is less now
            # What adds nothing now never will.
            candidates = [each for each in candidates if missing & said[each]]
        return chosen

    def text(self, indices: Sequence[int]) -> str:
        """Joins the sentences with these indices."""
        return " ".join(self._texts[i] for i in indices)

    def stems(self, indices: Sequence[int]) -> frozenset[str]:
        """Returns the stems of the words in the sentences with these indices."""
        return frozenset[str]().union(*(self._stems[i] for i in indices))


def gather_sentences(sentences: Sequence[str], claim: str) -> str:
    """Gathers the sentences of a long text that together have most of a claim's words.

    Returns:
        Up to 120 words: the chosen sentences in the order of the text; empty if no sentence has
        a word of the claim.
    """
    found = Sentences(sentences)
    return found.text(found.gather(wanted_of(claim), GatherSize(120, 120)))


def _with_neighbours(chosen: Set[int], lengths: Sequence[int], n_words: int) -> set[int]:
    """Adds the sentences beside the chosen ones, as far as they fit."""
    extended, size = set(chosen), sum(lengths[i] for i in chosen)
    for i in (beside for each in sorted(chosen) for beside in (each - 1, each + 1)):
        if 0 <= i < len(lengths) and i not in extended and size + lengths[i] <= n_words:
            extended.add(i)
            size += lengths[i]
    return extended


# --- cells ----------------------------------------------------------------------------------------

# A gathered text is read where it has so much more of a claim's content words than any of the
# references: the second half of a claim is in another reference, not a word that happens to be.
_MORE_SHARE: Final = 0.05
_SIZE: Final = GatherSize(chosen=80, with_neighbours=45)
# About a millisecond of work between two turns of the event loop.
_SENTENCES_AT_ONCE: Final = 20
_ORDER: Final = (Label.ENTAILED, Label.CONTRADICTED, Label.NEUTRAL)

Verdicts = dict[Cell, Verdict]
"""The verdicts of decided cells."""

Check = Callable[[Sequence[Claim], Sequence[str]], Awaitable[Iterable[Iterable[Verdict | None]]]]
"""Checks claims against references; returns a row for each claim."""


class Block(NamedTuple):
    """Cells that are checked in one call: every claim against every reference."""

    claims: Sequence[int]
    """Indices of the claims."""

    references: Sequence[int]
    """Indices of the references."""


def blocks_of(cells: Collection[Cell]) -> list[Block]:
    """Divides cells into blocks: references that the same claims are checked against.

    Of a record these are its chunks, its ground truth, and its response: texts that compete to
    support a claim are together, so that a word which all chunks have tells little.
    """
    claims_of: defaultdict[int, set[int]] = defaultdict(set)
    for i, j in cells:
        claims_of[j].add(i)
    references_of: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for j in sorted(claims_of):
        references_of[tuple(sorted(claims_of[j]))].append(j)
    return [Block(claims, references) for claims, references in references_of.items()]


async def verdicts_of(
    check: Check, claims: Sequence[Claim], references: Sequence[str], cells: Collection[Cell]
) -> Verdicts:
    """Checks some cells of a matrix, block by block."""
    found: Verdicts = {}
    for block in blocks_of(cells):
        rows = await check(
            [claims[i] for i in block.claims], [references[j] for j in block.references]
        )
        for i, row in zip(block.claims, rows, strict=True):
            found |= {
                (i, j): verdict
                for j, verdict in zip(block.references, row, strict=True)
                if verdict is not None
            }
    return found


def matrix_of(
    verdicts: Mapping[Cell, Verdict], cells: Collection[Cell], shape: tuple[int, int]
) -> VerdictMatrix:
    """Returns a matrix of this shape with the verdicts on these cells; all others are None."""
    n_claims, n_references = shape
    asked = {cell: verdicts.get(cell) for cell in cells}
    rows = [[asked.get((i, j)) for j in range(n_references)] for i in range(n_claims)]
    return VerdictMatrix.of(rows, n_references)


class SureFrom(NamedTuple):
    """From which probability on a verdict is decided."""

    passed: float
    """That the claim is entailed."""

    refused: float
    """That it is not."""


WORDS_SURE_FROM: Final = SureFrom(0.7, 0.72)
"""From which probability on words decide a claim on a passage. Of the decided ones .92 to .99 are
right if models answered by themselves (RefChecker, LFQA, stance, BEGIN; tune halves), and .66 to
.87 if one thing was changed in a claim (FEVER-symmetric, FM2, VitaminC, SummEdits)."""


def checked_sure_from(sure_from: float | Sequence[float]) -> SureFrom:
    """Returns the option ``sure_from`` of a judge: one number for both sides, or one for each.

    Raises:
        ConfigError: It is not from 0.5 to 1, or has more or fewer numbers.
    """
    both = sure_from if isinstance(sure_from, Sequence) else (sure_from, sure_from)
    for each in both:
        if isinstance(each, bool) or not isinstance(each, int | float):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(f"sure_from is of type {type(each).__name__}: use 0.5 to 1")
        if not 0.5 <= each <= 1:
            hint = percent_hint(each) if each >= 50 else ""
            raise ConfigError(
                f"sure_from={sure_from!r} is no probability of the likelier side: use 0.5, at "
                f"which every verdict is decided, to 1{hint}"
            )
    if len(both) != 2:
        raise ConfigError(
            f"sure_from has {len(both)} numbers: use one, or two, from which on a claim is passed "
            "and from which on it is refused"
        )
    return SureFrom(both[0], both[1])


def is_sure(entailed: float, sure_from: SureFrom) -> bool:
    """Tells whether a probability is far enough to one side."""
    return entailed >= sure_from.passed or 1 - entailed >= sure_from.refused


def sure_verdicts(
    verdicts: Mapping[Cell, Verdict],
    references: Sequence[str],
    sure_from: SureFrom,
) -> Verdicts:
    """Returns the verdicts that tell surely enough if a claim is entailed; reports the others.

    A response and its ground truth decide each other's claims in any case: both answer one
    question, in as many words, so that the likelier side is right more often than by a chunk, and
    a score without the doubtful half of such claims agrees less with people (FinanceBench: AUROC
    .87, and .93 with all).

    Args:
        verdicts: The verdicts by cell; the column beyond the references is that of the context.
        references: The texts that the claims were checked against.
        sure_from: From which probability on a verdict is decided.
    """
    answers = {j for j, text in enumerate(references) if isinstance(text, AnswerText)}
    sure = {
        cell: each
        for cell, each in verdicts.items()
        if each.entailed is None or cell[1] in answers or is_sure(each.entailed, sure_from)
    }
    if len(sure) < len(verdicts):
        add_undecided(UNSURE, len(verdicts) - len(sure))
    return sure


def context_cells(
    cells: Collection[Cell], context: Sequence[int], width: int
) -> tuple[list[int], set[Cell]]:
    """Divides the cells of ``check_context``.

    Args:
        cells: The cells; the column ``width`` is the context.
        context: Indices of the references that are read together.
        width: Number of references.

    Returns:
        The claims that are checked against the context; and the cells of single references, with
        those on which the verdicts of these claims rest.
    """
    wanted = sorted(i for i, j in cells if j == width)
    single = {(i, j) for i, j in cells if j != width}
    return wanted, single | {(i, j) for i in wanted for j in context}


def entails(verdicts: Mapping[Cell, Verdict], claim: int, references: Iterable[int]) -> bool:
    """Tells whether one of the references entails a claim."""
    found = (verdicts.get((claim, j)) for j in references)
    return any(verdict is not None and verdict.label == Label.ENTAILED for verdict in found)


def with_joint(
    verdicts: Verdicts, claims: Iterable[int], context: Sequence[int], width: int
) -> Verdicts:
    """Adds the verdicts by the context as a whole.

    Each is the most probable of those that say "entailed", by one reference or by what was gathered
    from all; else of those that say "contradicted"; else the one that is nearest to "entailed".

    Args:
        verdicts: Verdicts by single references, and in the column ``width`` by gathered sentences,
            where these were read.
        claims: The claims that are checked against the context.
        context: Indices of the references that are read together.
        width: Number of references.
    """
    columns = (*context, width)
    found = {i: [verdicts[i, j] for j in columns if (i, j) in verdicts] for i in claims}
    return verdicts | {(i, width): _strongest(each) for i, each in found.items() if each}


def _strongest(verdicts: Sequence[Verdict]) -> Verdict:
    def rank(verdict: Verdict) -> tuple[int, float, float]:
        probability = (
            verdict.contradicted if verdict.label == Label.CONTRADICTED else verdict.entailed
        )
        return -_ORDER.index(verdict.label), probability or 0.0, verdict.entailed or 0.0

    return max(verdicts, key=rank)


async def gathered_beyond_one(
    claims: Mapping[int, str], references: Sequence[str], language: str | None
) -> dict[int, str]:
    """Gathers the support of several references for claims that none of them supports by itself.

    Args:
        claims: The claims by their index.
        references: The references that are read together.
        language: Code of the language for the sentence splitter; None to detect it.

    Returns:
        By the index of its claim, a text of up to 80 words from two references or more; claims are
        left out of which one reference has as many words as all together.
    """
    wanted = {i: wanted_of(claim) for i, claim in claims.items()}
    sentences = Sentences()
    said: list[Set[str]] = []
    for text in references if claims else ():
        start = len(sentences)
        for n, each in enumerate(every_sentence(text, language or detect_language(text) or "en")):
            if n % _SENTENCES_AT_ONCE == 0:
                await asyncio.sleep(0)  # other records are evaluated on the same event loop
            sentences.add(each)
        said.append(sentences.stems(range(start, len(sentences))))
    together = frozenset[str]().union(*said)
    found: dict[int, str] = {}
    for i, claim in wanted.items():
        await asyncio.sleep(0)
        content = claim.content
        most = max((len(content & each) for each in said), default=len(content))
        enough = most + _MORE_SHARE * len(content)
        if len(content & together) >= enough:
            chosen = sentences.gather(claim, _SIZE)
            if len(content & sentences.stems(chosen)) >= enough:
                found[i] = sentences.text(chosen)
    return found
