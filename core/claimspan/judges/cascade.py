"""``CascadeJudge``: a cheap judge decides the claims that it is sure of, a strong judge the rest.

A strong judge costs money or time for every verdict. If a cheap judge's probability is near 0 or
1, its verdict is nearly always the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from itertools import product
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, model_validator

from claimspan.cost.budget import Budget
from claimspan.errors import ConfigError
from claimspan.judges.protocol import (
    BudgetedJudge,
    Cell,
    ClaimLimitedJudge,
    ContextJudge,
    CriteriaJudge,
    Judge,
    SparseJudge,
    matrix_of_cells,
)
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = ["CascadeJudge", "Thresholds"]


class Thresholds(BaseModel):
    """The probabilities of "entailed" from which a cheap judge's verdict is accepted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    low: float = Field(ge=0.0, le=1.0)
    """At or below it a label other than entailed is accepted."""

    high: float = Field(ge=0.0, le=1.0)
    """At or above it the label entailed is accepted."""

    @model_validator(mode="after")
    def _are_ordered(self) -> Thresholds:
        if self.low > self.high:
            raise ValueError(f"low is above high: {self.low!r} > {self.high!r}")
        return self

    def accepts(self, verdict: Verdict | None) -> bool:
        """Tells whether a verdict is accepted without the strong judge.

        Args:
            verdict: The cheap judge's verdict; one without probabilities, or None, is not accepted.
        """
        if verdict is None or verdict.entailed is None:
            return False
        return self.accepts_label(verdict.label, verdict.entailed)

    def accepts_label(self, label: Label, entailed: float) -> bool:
        """Tells whether a label is accepted at this p(entailed).

        Args:
            label: The most probable label.
            entailed: Probability of ``Label.ENTAILED``, 0 to 1.

        Returns:
            False as well if the label and the probability point to different sides.
        """
        return entailed >= self.high if label is Label.ENTAILED else entailed <= self.low


# From `claimspan calibrate` on the ten labelled development sets together, with 2 % of wrong
# verdicts allowed. On the 6,448 claims set aside, LexicalJudge then decides 19.6 % of the verdicts
# alone; 2.0 % of all verdicts are wrong by that.
_LEXICAL_THRESHOLDS: Final = Thresholds(low=0.19, high=0.72)
"""Thresholds for ``LexicalJudge`` as the cheap judge."""


class CascadeJudge(SparseJudge):
    """Asks a strong judge only if a cheap judge is not sure.

    Claims come from the strong judge, since every verdict depends on them. A claim that one chunk
    surely entails is still checked against the other chunks: every cell of the matrix counts in
    some metric.
    """

    def __init__(
        self, cheap: Judge, strong: Judge, *, thresholds: Thresholds = _LEXICAL_THRESHOLDS
    ) -> None:
        """Creates a cascade of two judges.

        Args:
            cheap: Judges every cell; needs probabilities, without them no verdict is accepted.
            strong: Judges the cells that the cheap judge is not sure of.
            thresholds: When the cheap judge is sure. The default is calibrated for
                ``LexicalJudge`` and saves a fifth of the verdicts; ``claimspan calibrate`` finds
                the thresholds of other judges.

        Raises:
            ConfigError: One of the two is no judge.
        """
        for name, judge in (("cheap", cheap), ("strong", strong)):
            if not isinstance(judge, Judge):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
                raise ConfigError(
                    f"{name} is of type {type(judge).__name__}: give a judge, such as "
                    "LexicalJudge() or OpenAIJudge(...)"
                )
        self.cheap: Final = cheap
        self.strong: Final = strong
        self.thresholds: Final = thresholds
        if isinstance(strong, ContextJudge):
            # On the object: a cascade of judges that read no context must not seem to read one.
            self.check_context: Final = partial(self._check_context, strong)
            """As ``ContextJudge.check_context``; only if the strong judge has it."""
        for judge in (cheap, strong):
            if isinstance(judge, CriteriaJudge):
                self.grade = judge.grade
                """As ``CriteriaJudge.grade``, by the strong judge if it can; only if one can."""

    @property
    def name(self) -> str:
        """``cascade(CHEAP,STRONG)`` with the names of both judges."""
        return f"cascade({self.cheap.name},{self.strong.name})"

    @property
    def version(self) -> str:
        """Versions of both judges, with the thresholds between them."""
        versions = [str(getattr(judge, "version", "")) for judge in (self.cheap, self.strong)]
        return f"{versions[0]}>{self.thresholds.low:g}-{self.thresholds.high:g}>{versions[1]}"

    def check_budget(self, budget: Budget) -> None:
        """Checks that both judges can keep to a budget, if they have such a check.

        Raises:
            ConfigError: One of them cannot.
        """
        for judge in (self.cheap, self.strong):
            if isinstance(judge, BudgetedJudge):
                judge.check_budget(budget)

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """Returns the claims that the strong judge extracts."""
        return await self.strong.extract_claims(text, question=question)

    async def extract_at_most(
        self, text: str, max_claims: int, *, question: str | None = None
    ) -> list[Claim]:
        """Returns the claims that the strong judge extracts, limited if it can be."""
        if isinstance(self.strong, ClaimLimitedJudge):
            return await self.strong.extract_at_most(text, max_claims, question=question)
        return await self.extract_claims(text, question=question)

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        """The cheap judge's verdict if it is sure, else the strong one's; see ``SparseJudge``."""
        cheap = await _check_cells(self.cheap, claims, references, cells, question)
        return await self._decided(
            cheap, cells, lambda some: _check_cells(self.strong, claims, references, some, question)
        )

    async def _check_context(
        self,
        strong: ContextJudge,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        context: Sequence[int],
        question: str | None = None,
    ) -> VerdictMatrix:
        """Decides single cells as ``check_cells`` does, and joint ones if it is sure of them."""
        cheap = await self._cheap_with_context(claims, references, cells, context, question)
        return await self._decided(
            cheap,
            cells,
            lambda some: strong.check_context(
                claims, references, some, context=context, question=question
            ),
        )

    async def _decided(
        self,
        cheap: VerdictMatrix,
        cells: Collection[Cell],
        ask: Callable[[Collection[Cell]], Awaitable[VerdictMatrix]],
    ) -> VerdictMatrix:
        """The cheap verdicts, and those of the strong judge in the cells that are not sure."""
        unsure = {(i, j) for i, j in cells if not self.thresholds.accepts(cheap[i][j])}
        strong = await ask(unsure) if unsure else cheap
        found = {(i, j): (strong if (i, j) in unsure else cheap)[i][j] for i, j in cells}
        return matrix_of_cells(found, *cheap.shape)

    async def _cheap_with_context(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        context: Sequence[int],
        question: str | None,
    ) -> VerdictMatrix:
        """The cheap judge's verdicts, with a column for the context.

        A judge that reads no context knows one thing of it: what a reference surely entails, and
        none denies, all of them entail.
        """
        if isinstance(self.cheap, ContextJudge):
            return await self.cheap.check_context(
                claims, references, cells, context=context, question=question
            )
        joint = len(references)
        single = {(i, j) for i, j in cells if j != joint}
        found = await _check_cells(self.cheap, claims, references, single, question)
        wanted = {i for i, j in cells if j == joint}
        rows = [
            [*row, self._undisputed([row[j] for j in context]) if i in wanted else None]
            for i, row in enumerate(found.rows)
        ]
        return VerdictMatrix.of(rows, joint + 1)

    def _undisputed(self, verdicts: Sequence[Verdict | None]) -> Verdict | None:
        """The verdict that entails a claim most, if it is accepted and none contradicts it."""
        if any(each is not None and each.label is Label.CONTRADICTED for each in verdicts):
            return None
        sure = [
            each
            for each in verdicts
            if each is not None and each.label is Label.ENTAILED and self.thresholds.accepts(each)
        ]
        return max(sure, key=lambda each: each.entailed or 0.0, default=None)


async def _check_cells(
    judge: Judge,
    claims: Sequence[Claim],
    references: Sequence[str],
    cells: Collection[Cell],
    question: str | None,
) -> VerdictMatrix:
    """Verdicts on at least these cells, by the smallest matrix with them from a dense judge."""
    # An LLM judge puts cells of several rows into one call, which separate matrices would prevent.
    if isinstance(judge, SparseJudge):
        return await judge.check_cells(claims, references, cells, question=question)
    found: dict[Cell, Verdict | None] = {}
    if cells:
        rows, columns = sorted({i for i, _ in cells}), sorted({j for _, j in cells})
        smallest = await judge.check(
            [claims[i] for i in rows], [references[j] for j in columns], question=question
        )
        found = dict(zip(product(rows, columns), smallest.verdicts(), strict=True))
    return matrix_of_cells(found, len(claims), len(references))
