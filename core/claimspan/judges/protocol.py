"""The protocols of judges: two calls that every judge has, and calls that some have as well."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from pydantic import JsonValue

from claimspan.cost.budget import Budget
from claimspan.judges.criteria import Criterion
from claimspan.records import RagRecord
from claimspan.verdicts import Claim, Verdict, VerdictMatrix

__all__ = [
    "AnswerText",
    "BudgetedJudge",
    "Cell",
    "ClaimLimitedJudge",
    "ContextJudge",
    "CriteriaJudge",
    "Grade",
    "Judge",
    "PartlyBlindJudge",
    "PortableJudge",
    "SparseJudge",
    "matrix_of_cells",
]


class AnswerText(str):
    """A reference that answers the question: a ground truth or a response, not a passage.

    An evaluation marks these two texts by this type. A judge may read them by the question: an
    answer need not repeat what the question says. To every other judge they are texts like any.
    """

    __slots__ = ()


Cell = tuple[int, int]
"""Index of a claim, and index of a reference."""


def matrix_of_cells(
    found: Mapping[Cell, Verdict | None], n_claims: int, n_references: int
) -> VerdictMatrix:
    """The matrix of some verdicts; a cell without one is None."""
    rows = [[found.get((i, j)) for j in range(n_references)] for i in range(n_claims)]
    return VerdictMatrix.of(rows, n_references)


@runtime_checkable
class Judge(Protocol):
    """Extracts claims from texts, and checks claims against references.

    A judge that fails raises ``JudgeError``; it never makes up a verdict. Judges run on the event
    loop of a worker that evaluates many records at a time: they await their input and output, and
    do not block. A judge may have an attribute ``version`` (string), which is written beside the
    scores; it has to change whenever the judge may give other verdicts on the same input.
    """

    @property
    def name(self) -> str:
        """Short and stable name, as it appears on the trace: ``lexical``, ``openai``."""
        ...

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """Extracts the claims that a text makes.

        Args:
            text: A response or a ground truth.
            question: The query that it answers, if known.

        Returns:
            The claims in the order of the text; an empty list if it makes none.

        Raises:
            JudgeError: The judge failed.
        """
        ...

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """Checks every claim against every reference.

        Args:
            claims: The claims to check.
            references: The texts to check against, each on its own.
            question: The query, if known.

        Returns:
            A matrix of shape ``(len(claims), len(references))``; a cell that could not be
            decided is None.

        Raises:
            JudgeError: The judge failed.
        """
        ...


@runtime_checkable
class SparseJudge(Judge, Protocol):
    """A judge that can check some cells of a matrix in one call.

    An evaluation needs four matrices of the same claims and texts. For a judge with this call they
    are asked for at once, as one matrix of all claims against all texts, with the cells that
    matter. A class that derives from this one has ``check`` by ``check_cells``.
    """

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """Checks every claim against every reference; see ``Judge``."""
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
        """As ``check``, for these ``cells``: which claim against which reference.

        A cell that was not asked for is None.
        """
        ...


class Grade(NamedTuple):
    """The grade of a judge for an answer by one criterion."""

    score: float | None
    """0 to 1, by the scale of the criterion; None if the judge could not decide."""

    reason: str
    """Why, in a sentence or two; why it could not, if there is no score."""


@runtime_checkable
class CriteriaJudge(Judge, Protocol):
    """A judge that also says whether an answer as a whole has properties that are given in words.

    That takes a language model. All criteria of a record are judged in one call.
    """

    async def grade(self, criteria: Sequence[Criterion], record: RagRecord) -> Sequence[Grade]:
        """Grades the response of a record, as users read it, by each criterion in their order.

        Raises:
            JudgeError: The judge failed.
        """
        ...


@runtime_checkable
class ContextJudge(SparseJudge, Protocol):
    """A judge that also reads several references together, as the generator read its chunks.

    What supports a claim may be spread over chunks: one names the company, another the year. No
    single chunk entails the claim then, but all of them together do.
    """

    async def check_context(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        context: Sequence[int],
        question: str | None = None,
    ) -> VerdictMatrix:
        """As ``check_cells``, and checks some claims against the context as a whole.

        Args:
            claims: The claims to check.
            references: The texts to check against, each on its own.
            cells: Which claim against which reference; the column ``len(references)`` stands for
                the context.
            context: Indices of the references that are read together, in the order of their rank.
            question: The query, if known.

        Returns:
            A matrix of shape ``(len(claims), len(references) + 1)``, whose last column has the
            verdicts by the context.
        """
        ...


@runtime_checkable
class PartlyBlindJudge(Judge, Protocol):
    """A judge that cannot see some kinds of errors; a monitor says so when it starts."""

    @property
    def blind_to(self) -> str:
        """What it misses, in a few words: ``paraphrase and sums``."""
        ...


@runtime_checkable
class ClaimLimitedJudge(Judge, Protocol):
    """A judge that can stop extracting, because every claim that it writes is paid for."""

    async def extract_at_most(
        self, text: str, max_claims: int, *, question: str | None = None
    ) -> list[Claim]:
        """As ``extract_claims``, for the first claims of a text.

        The caller leaves out what comes after ``max_claims``.
        """
        ...


@runtime_checkable
class BudgetedJudge(Judge, Protocol):
    """A judge that can say at set-up whether it can keep to a budget."""

    def check_budget(self, budget: Budget) -> None:
        """Checks a budget that the judge is about to run under.

        Raises:
            ConfigError: The judge cannot keep to it, such as to a limit in dollars without a price.
        """
        ...


@runtime_checkable
class PortableJudge(Judge, Protocol):
    """A judge that another process can make anew; its class has to be one that can be imported."""

    def arguments(self) -> Mapping[str, JsonValue]:
        """Returns the keyword arguments with which its class makes an equal judge."""
        ...
