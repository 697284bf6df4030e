"""Some cells of a matrix, and the verdict of several references read together.

For judges whose verdicts rest on the references of one call: which words are rare among them.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from claimspan.judges.lexical.gathering import GatherSize, Sentences, Wanted, wanted_of
from claimspan.judges.protocol import Cell
from claimspan.text.languages import detect_language
from claimspan.text.markdown import every_sentence
from claimspan.text.words import tokenize
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = [
    "Block",
    "Context",
    "Verdicts",
    "blocks_of",
    "context_cells",
    "entails",
    "gathered_beyond_one",
    "matrix_of",
    "verdicts_of",
    "with_joint",
]

# A gathered text is read where it has so much more of a claim's content words than any of the
# references: the second half of a claim is in another reference, not a word that happens to be.
_MORE_SHARE: Final = 0.05
_SIZE: Final = GatherSize(chosen=80, with_neighbours=45)
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

    Args:
        cells: Which claim against which reference.
    """
    claims_of: defaultdict[int, set[int]] = defaultdict(set)
    for i, j in cells:
        claims_of[j].add(i)
    references_of: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for j in sorted(claims_of):
        references_of[tuple(sorted(claims_of[j]))].append(j)
    return [Block(claims, references) for claims, references in references_of.items()]


async def verdicts_of(
    check: Check, claims: Sequence[Claim], references: Sequence[str], blocks: Iterable[Block]
) -> Verdicts:
    """Checks blocks of a matrix one after the other.

    Args:
        check: Checks a whole block.
        claims: All claims.
        references: All references.
        blocks: The cells to check.
    """
    found: Verdicts = {}
    for block in blocks:
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
    """Gathers what several references say of claims that none of them supports by itself.

    Args:
        claims: The claims by their index.
        references: The references that are read together.
        language: Code of the language for the sentence splitter; None to detect it.

    Returns:
        By the index of its claim, a text of up to 80 words from two references or more; claims are
        left out of which one reference has as many words as all together.
    """
    wanted = {i: wanted_of(claim) for i, claim in claims.items()}
    context = Context(wanted.values())
    for text in references if claims else ():
        await asyncio.sleep(0)  # other records are evaluated on the same event loop
        sentences = every_sentence(text, language or detect_language(text) or "en")
        context.add((each, [token.stem for token in tokenize(each)]) for each in sentences)
    found: dict[int, str] = {}
    for i, claim in wanted.items():
        await asyncio.sleep(0)
        if together := context.gathered(claim):
            found[i] = together
    return found


class Context:
    """References that are read together."""

    def __init__(self, claims: Iterable[Wanted]) -> None:
        """Starts with no reference.

        Args:
            claims: The claims that ``gathered`` will be asked for; no other words are kept.
        """
        self._vocabulary = frozenset[str]().union(*(claim.weights for claim in claims))
        self._sentences = Sentences()
        self._stems: list[frozenset[str]] = []
        self._all: frozenset[str] = frozenset()

    def add(self, sentences: Iterable[tuple[str, Iterable[str]]]) -> None:
        """Adds a reference, sentence by sentence, each with the English stems of its words."""
        known = self._vocabulary
        added = self._sentences.add_read((each, known.intersection(of)) for each, of in sentences)
        stems = self._sentences.stems(added)
        self._stems.append(stems)
        self._all |= stems

    def gathered(self, claim: Wanted) -> str | None:
        """Returns what the references say of a claim together.

        Args:
            claim: The words of the claim.

        Returns:
            Up to 80 words; None where one reference has as many words of the claim as all.
        """
        wanted = claim.content
        most = max((len(wanted & each) for each in self._stems), default=len(wanted))
        enough = most + _MORE_SHARE * len(wanted)
        if len(wanted & self._all) < enough:
            return None
        chosen = self._sentences.gather(claim, _SIZE)
        is_enough = len(wanted & self._sentences.stems(chosen)) >= enough
        return self._sentences.text(chosen) if is_enough else None
