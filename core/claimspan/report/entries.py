"""The view model of the report: one record with its claims and scores.

The report depends on no tracing. The tracing package makes entries, either from a job and its
outcome or from a trace file, so that a page is the same whichever way the records were read.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from claimspan.records import Chunk
from claimspan.verdicts import Claim, Label

__all__ = ["ReportClaim", "ReportEntry"]


class ReportClaim(Claim):
    """A claim with its verdicts."""

    label: Label | None = None
    """A response claim against all chunks, or a ground-truth claim against the response.

    None where the judge was undecided.
    """

    ground_truth_label: Label | None = None
    """A response claim against the ground truth; None where undecided or without ground truth."""

    supported_by: tuple[str, ...] = ()
    """Ids of the chunks that entail the claim."""

    contradicted_by: tuple[str, ...] = ()
    """Ids of the chunks that contradict the claim."""


class ReportEntry(BaseModel):
    """One record with its claims, its scores and the state in which its evaluation ended.

    Made by the tracing package, from a job and its outcome or from a trace file. Defaults stand
    for what was not captured.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    trace_id: str
    """Hexadecimal id of the trace, for looking up the record in a tracing backend."""

    query: str
    """The question of the user."""

    response: str
    """The answer that the pipeline gave."""

    ground_truth: str | None = None
    """The correct response; None where it is not known."""

    chunks: tuple[Chunk, ...] = ()
    """The chunks that the generator read, in its order."""

    chunks_left_out: int = 0
    """Number of chunks that were retrieved but did not fit into the limits of a span."""

    response_claims: tuple[ReportClaim, ...] = ()
    """Claims of the response, in its order."""

    ground_truth_claims: tuple[ReportClaim, ...] = ()
    """Claims of the ground truth, in its order."""

    claims_left_out: int = 0
    """Number of claims that did not fit into the limits of a span; the scores include them."""

    scores: Mapping[str, float] = Field(default_factory=dict[str, float])
    """Name of a metric to its value; an undefined metric is absent."""

    undefined: Mapping[str, str] = Field(default_factory=dict[str, str])
    """Name of a metric without a value to the reason."""

    status: str
    """State in which the evaluation ended: ``evaluated``, ``timeout``, ``judge_error``..."""

    reason: str | None = None
    """Details of the status; None where there are none."""

    late: bool = False
    """Whether the scores arrived after the record's own spans had ended."""

    judge: str = ""
    """Name of the judge; empty where no judge was called."""

    judge_calls: int = 0
    """Number of calls that the judge made for this record."""

    cost_usd: float | None = None
    """Cost of these calls in US dollars; None where the price is not known."""

    started: datetime
    """Time at which the pipeline started, with a time zone."""

    seconds: float = 0.0
    """Duration of the pipeline in seconds, evaluation not included."""
