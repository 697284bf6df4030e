"""What a file already holds of a record's evaluation, in the form of RAGChecker's results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from claimspan.verdicts import Claim, Label

__all__ = ["RAGCHECKER_LABELS", "Recorded", "RecordedClaim", "claim_text"]

RecordedClaim = str | tuple[str, ...]
"""A claim as a text, or as subject, predicate and object."""

RAGCHECKER_LABELS: Final[Mapping[Label, str]] = {
    Label.ENTAILED: "Entailment",
    Label.NEUTRAL: "Neutral",
    Label.CONTRADICTED: "Contradiction",
}
"""Label to RAGChecker's spelling, which its formulas compare letter by letter."""


def _label(value: object) -> object:
    return Label.parse(value) if isinstance(value, str) else value


_Label = Annotated[Label | None, BeforeValidator(_label)]
_Column = tuple[_Label, ...] | None
_Table = tuple[tuple[_Label, ...], ...] | None
_Claims = tuple[RecordedClaim, ...] | None

_SIDES: Final = (
    ("response_claims", "answer2response", "retrieved2response"),
    ("gt_answer_claims", "response2answer", "retrieved2answer"),
)
"""Fields with one entry for each claim of the response, and of the ground truth."""


class Recorded(BaseModel):
    """Claims, labels and metrics of one record; None where they are still to be found out."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    response_claims: _Claims = None
    """Claims of the response."""

    gt_answer_claims: _Claims = None
    """Claims of the ground truth."""

    answer2response: _Column = None
    """Label of each response claim by the ground truth."""

    response2answer: _Column = None
    """Label of each ground-truth claim by the response."""

    retrieved2response: _Table = None
    """Label of each response claim by each chunk."""

    retrieved2answer: _Table = None
    """Label of each ground-truth claim by each chunk."""

    metrics: Mapping[str, float] = Field(default_factory=dict[str, float])
    """Metric to value, between 0 and 1."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for claims, *matrices in (
            (self.response_claims, self.answer2response, self.retrieved2response),
            (self.gt_answer_claims, self.response2answer, self.retrieved2answer),
        ):
            # A label belongs to the claim at its place. With one missing nobody knows which, and
            # all behind it would be wrong.
            if len({len(each) for each in (claims, *matrices) if each is not None}) > 1:
                raise ValueError("give as many labels as claims")
            if not all(claim_text(claim) for claim in claims or ()):
                raise ValueError("give claims with a text")
        return self

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known yet."""
        # A file may name every field and have null in each, which is as empty.
        return not self.model_fields_set or self == Recorded()

    def widths(self) -> set[int]:
        """Numbers of chunks that the rows of both tables have."""
        tables = (self.retrieved2response, self.retrieved2answer)
        return {len(row) for table in tables for row in table or ()}

    def over(self, other: Recorded) -> Recorded:
        """Return this with what it lacks taken from another one, where it is of the same claims."""
        # An empty list is kept: it says that a text has no claims, and not that they are unknown.
        mine = {name: value for name, value in self if value is not None and name != "metrics"}
        theirs = dict(other)
        for side in _SIDES:
            sizes = {len(each) for name in side if (each := getattr(other, name)) is not None}
            known = {len(each) for name in side if (each := getattr(self, name)) is not None}
            # A file may have claims of a blank text, of which a judge finds none. Labels of other
            # claims would be given to these.
            if known and sizes - known:
                theirs.update(dict.fromkeys(side))
        both = {**theirs, **mine, "metrics": {**other.metrics, **self.metrics}}
        return Recorded.model_validate(both)

    def response(self) -> list[Claim] | None:
        """The claims of the response."""
        return _claims(self.response_claims)

    def ground_truth(self) -> list[Claim] | None:
        """The claims of the ground truth."""
        return _claims(self.gt_answer_claims)


def claim_text(claim: RecordedClaim) -> str:
    """Return the text of a claim: subject, predicate and object with spaces between them."""
    return claim.strip() if isinstance(claim, str) else " ".join(" ".join(claim).split())


def _claims(claims: Sequence[RecordedClaim] | None) -> list[Claim] | None:
    return None if claims is None else [Claim(text=claim_text(each)) for each in claims]
