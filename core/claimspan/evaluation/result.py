"""The result of an evaluation: everything that was found out about one record."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from claimspan.cost.usage import Usage
from claimspan.metrics.coverage import ContextCoverage, coverage
from claimspan.verdicts import Claim, ScoreMode, VerdictMatrix

__all__ = ["Evaluation"]


class Evaluation(BaseModel):
    """Everything that was found out about one record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metrics: Mapping[str, float] = Field(default_factory=dict[str, float])
    """Name to value between 0 and 1; a metric that is undefined here is absent."""

    undefined: Mapping[str, str] = Field(default_factory=dict[str, str])
    """Name to reason, for each metric that is absent."""

    response_claims: tuple[Claim, ...] = ()
    """The claims of the response, in its order."""

    ground_truth_claims: tuple[Claim, ...] = ()
    """The claims of the ground truth, in its order; empty without a ground truth."""

    response_vs_chunks: VerdictMatrix | None = None
    """Shape ``(n_response_claims, n_chunks)``."""

    response_vs_ground_truth: VerdictMatrix | None = None
    """Shape ``(n_response_claims, 1)``; None without a ground truth."""

    ground_truth_vs_response: VerdictMatrix | None = None
    """Shape ``(n_ground_truth_claims, 1)``; None without a ground truth."""

    ground_truth_vs_chunks: VerdictMatrix | None = None
    """Shape ``(n_ground_truth_claims, n_chunks)``; None without a ground truth."""

    abstained: bool = False
    """Whether the response declines to answer, and asserts nothing."""

    claims_dropped: int = 0
    """Claims beyond the cap, of both texts together, that were not judged."""

    judge_name: str = ""
    """Which judge gave the verdicts."""

    judge_version: str = ""
    """Its version; empty where it has none."""

    usage: Usage = Usage()
    """What the verdicts have cost."""

    undecided: Mapping[str, int] = Field(default_factory=dict[str, int])
    """Why the judge left verdicts undecided, and how many; empty where it cannot say."""

    notes: Mapping[str, int] = Field(default_factory=dict[str, int])
    """What the judge did otherwise than it usually does, and for how many verdicts."""

    injection_suspected: tuple[str, ...] = ()
    """Texts that seem to speak to the judge: ``response``, ``ground_truth``, ``chunks[0]``, ..."""

    error: str | None = None
    """Why there are no verdicts; None where there are."""

    @property
    def score_mode(self) -> ScoreMode | None:
        """Whether verdicts come with probabilities; None where there are no verdicts."""
        modes: set[ScoreMode] = {
            m.score_mode for m in self._matrices if m is not None and m.score_mode
        }
        return "mixed" if len(modes) > 1 else next(iter(modes), None)

    @property
    def context_coverage(self) -> ContextCoverage | None:
        """How much of the ground truth the chunks hold, by probability; None without one."""
        return (
            None if self.ground_truth_vs_chunks is None else coverage(self.ground_truth_vs_chunks)
        )

    @property
    def _matrices(self) -> tuple[VerdictMatrix | None, ...]:
        return (
            self.response_vs_chunks,
            self.response_vs_ground_truth,
            self.ground_truth_vs_response,
            self.ground_truth_vs_chunks,
        )

    @property
    def undecided_claims(self) -> int:
        """Number of claims, of both texts, with a verdict that the judge could not decide."""
        return _undecided_rows(self.response_vs_chunks, self.response_vs_ground_truth) + (
            _undecided_rows(self.ground_truth_vs_chunks, self.ground_truth_vs_response)
        )


def _undecided_rows(*matrices: VerdictMatrix | None) -> int:
    rows = {i for m in matrices if m is not None for i, row in enumerate(m.rows) if None in row}
    return len(rows)
