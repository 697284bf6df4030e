"""Two judges: the cheap one decides what it is sure of, the strong one the rest."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from claimspan.judges.protocol import Cell, Judge, SparseJudge
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = ["CascadeJudge", "Thresholds"]


class Thresholds(BaseModel):
    """When a cheap judge is sure, by its probability that a claim is entailed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: float = Field(ge=0.0, le=1.0)
    """At or below it stands what the cheap judge does not call entailed."""

    high: float = Field(ge=0.0, le=1.0)
    """At or above it stands what the cheap judge calls entailed."""

    @model_validator(mode="after")
    def _are_ordered(self) -> Thresholds:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self

    def are_sure_of(self, verdict: Verdict | None) -> bool:
        """Whether a verdict stands without the strong judge; one without probabilities does not."""
        if verdict is None or verdict.entailed is None:
            return False
        return self.settle(verdict.label, verdict.entailed)

    def settle(self, label: Label, entailed: float) -> bool:
        """Whether a label stands at this p(entailed); one that speaks against it never does."""
        return entailed >= self.high if label is Label.ENTAILED else entailed <= self.low


# Of LexicalJudge: `claimspan calibrate` on the ten labelled sets for development, all of them
# together, allowed 2 % of wrong verdicts. On the 6,448 claims set aside it decides 19.6 % of the
# verdicts alone, 2.0 % of all wrongly.
LEXICAL: Final = Thresholds(low=0.19, high=0.72)


class CascadeJudge:
    """Asks the strong judge only where the cheap one is not sure.

    Claims come from the strong judge: every verdict stands on them. A claim for which a chunk
    entails it surely, in the cheap judge's eyes, is still asked about the other chunks that are
    unsure: all cells of the matrix count in some metric.

    Args:
        cheap: Judges everything; should give probabilities.
        strong: Judges the rest.
        thresholds: When the cheap judge is sure: by default as it was found for ``LexicalJudge``,
            which saves a fifth of the verdicts; calibrate others with ``claimspan calibrate``.
    """

    def __init__(self, cheap: Judge, strong: Judge, *, thresholds: Thresholds = LEXICAL) -> None:
        self.cheap: Final = cheap
        self.strong: Final = strong
        self.thresholds: Final = thresholds

    @property
    def name(self) -> str:
        """Both names."""
        return f"cascade({self.cheap.name},{self.strong.name})"

    @property
    def version(self) -> str:
        """Both versions and the thresholds."""
        versions = [str(getattr(judge, "version", "")) for judge in (self.cheap, self.strong)]
        return f"{versions[0]}>{self.thresholds.low:g}-{self.thresholds.high:g}>{versions[1]}"

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """The strong judge's claims."""
        return await self.strong.extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """The cheap judge's verdict where it is sure, else the strong one's."""
        cells = {(i, j) for i in range(len(claims)) for j in range(len(references))}
        return await self.check_cells(claims, references, cells, question=question)

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        """As ``check`` for some cells; a cell that the strong judge leaves undecided stays so."""
        first = await ask(self.cheap, claims, references, cells, question)
        unsure = {(i, j) for i, j in cells if not self.thresholds.are_sure_of(first[i][j])}
        second = await ask(self.strong, claims, references, unsure, question) if unsure else first
        rows = [
            [
                (second if (i, j) in unsure else first)[i][j] if (i, j) in cells else None
                for j in range(len(references))
            ]
            for i in range(len(claims))
        ]
        return VerdictMatrix.of(rows, len(references))


async def ask(
    judge: Judge,
    claims: Sequence[Claim],
    references: Sequence[str],
    cells: Collection[Cell],
    question: str | None,
) -> VerdictMatrix:
    """Verdicts on at least these cells, from a judge of either kind.

    A judge that knows whole matrices only is asked for the smallest one that holds the cells.
    """
    if isinstance(judge, SparseJudge):
        return await judge.check_cells(claims, references, cells, question=question)
    rows, columns = sorted({i for i, _ in cells}), sorted({j for _, j in cells})
    found = await judge.check(
        [claims[i] for i in rows], [references[j] for j in columns], question=question
    )
    whole: list[list[Verdict | None]] = [[None] * len(references) for _ in claims]
    for i, row in zip(rows, found.rows, strict=True):
        for j, verdict in zip(columns, row, strict=True):
            whole[i][j] = verdict
    return VerdictMatrix.of(whole, len(references))
