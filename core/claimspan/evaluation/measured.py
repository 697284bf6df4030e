"""The measurements of a record, before they are judged.

A judgement, a diagnosis and a display read them. ``Evaluation``, which users get, adds these.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from claimspan.cost.usage import Usage
from claimspan.metrics.coverage import ContextCoverage, coverage
from claimspan.verdicts import UNSURE, Claim, ScoreMode, VerdictMatrices, VerdictMatrix

__all__ = ["Measured"]


class Measured(BaseModel):
    """The measurements of one record: an ``Evaluation`` without judgement and display."""

    # JSON of others may hold NaN: it would spoil every mean, and some backends refuse it.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    metrics: Mapping[str, float] = Field(default_factory=dict[str, float])
    """Name to value between 0 and 1; a metric that is undefined here is absent."""

    undefined: Mapping[str, str] = Field(default_factory=dict[str, str])
    """Name to reason, for each metric that is absent."""

    thresholds: Mapping[str, float] = Field(default_factory=dict[str, float])
    """Metric to its worst value that is good, for those that do not have the catalogue's."""

    lower_is_better: tuple[str, ...] = ()
    """The metrics beyond the catalogue's that are better the lower they are."""

    explanations: Mapping[str, str] = Field(default_factory=dict[str, str])
    """Criterion to the reason that its judge gave."""

    response_claims: tuple[Claim, ...] = ()
    """The claims of the response, in its order."""

    ground_truth_claims: tuple[Claim, ...] = ()
    """The claims of the ground truth, in its order; empty without a ground truth."""

    matrices: VerdictMatrices = VerdictMatrices()
    """The verdicts on the claims, as one value; the five properties below are its fields."""

    abstained: bool = False
    """Whether the response declines to answer, and asserts nothing."""

    claims_dropped: int = Field(default=0, ge=0)
    """Claims beyond the cap, of both texts together, that were not judged."""

    undecided: Mapping[str, int] = Field(default_factory=dict[str, int])
    """Reason to number of verdicts and grades that the judge left undecided; empty if it gave no
    reason."""

    notes: Mapping[str, int] = Field(default_factory=dict[str, int])
    """How the judge deviated from its usual method, to the number of verdicts concerned."""

    injection_suspected: tuple[str, ...] = ()
    """Texts that seem to address the judge: ``response``, ``ground_truth``, ``chunks[0]``, ..."""

    judge_name: str = ""
    """Name of the judge that gave the verdicts."""

    judge_version: str = ""
    """Version of the judge; empty if it has none."""

    usage: Usage = Usage()
    """The cost of the verdicts."""

    error: str | None = None
    """Why there are no verdicts; None if there are."""

    @property
    def why_undecided(self) -> str | None:
        """Why no verdict or grade at all is decided, by the most frequent reason; None if one is.

        Such an evaluation is a failure of the judge, whether it raised an error or not. A judge
        that is merely not sure has not failed.
        """
        if self.matrices.score_mode is not None or self.explanations:
            return None
        if not self.matrices.undecided_claims and not self.undecided:
            return None
        failures = {why: n for why, n in self.undecided.items() if why != UNSURE}
        if not failures:
            return None if self.undecided else "the judge decided no verdict"
        most = max(failures, key=failures.__getitem__)
        return f"the judge decided no verdict: {most}"

    @property
    def response_vs_chunks(self) -> VerdictMatrix | None:
        """Response claims against chunks, shape ``(n_response_claims, n_chunks)``."""
        return self.matrices.response_vs_chunks

    @property
    def response_vs_ground_truth(self) -> VerdictMatrix | None:
        """Shape ``(n_response_claims, 1)``; None without a ground truth."""
        return self.matrices.response_vs_ground_truth

    @property
    def ground_truth_vs_response(self) -> VerdictMatrix | None:
        """Shape ``(n_ground_truth_claims, 1)``; None without a ground truth."""
        return self.matrices.ground_truth_vs_response

    @property
    def ground_truth_vs_chunks(self) -> VerdictMatrix | None:
        """Shape ``(n_ground_truth_claims, n_chunks)``; None without a ground truth."""
        return self.matrices.ground_truth_vs_chunks

    @property
    def response_vs_context(self) -> VerdictMatrix | None:
        """Response claims against all chunks together, shape ``(n_response_claims, 1)``."""
        return self.matrices.response_vs_context

    @property
    def score_mode(self) -> ScoreMode | None:
        """Whether verdicts come with probabilities; None if no verdict is decided."""
        return self.matrices.score_mode

    @property
    def context_coverage(self) -> ContextCoverage | None:
        """Share of the ground truth that the chunks hold, by probability; None without one."""
        matrix = self.ground_truth_vs_chunks
        return None if matrix is None else coverage(matrix)

    @property
    def undecided_claims(self) -> int:
        """Number of claims, of both texts, with a verdict that the judge could not decide."""
        return self.matrices.undecided_claims
