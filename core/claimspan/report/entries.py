"""What a report shows, whichever way it was read: from a trace file or from an evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from claimspan.records import Chunk
from claimspan.verdicts import Claim, Label

__all__ = ["ReportClaim", "ReportEntry"]


class ReportClaim(Claim):
    """A claim and what was decided about it."""

    label: Label | None = None
    """Of a response claim: against the chunks. Of a ground-truth claim: against the response."""

    ground_truth_label: Label | None = None
    """Of a response claim: against the ground truth; None where undecided or without one."""

    supported_by: tuple[str, ...] = ()
    """Ids of the chunks that entail the claim."""

    contradicted_by: tuple[str, ...] = ()
    """Ids of the chunks that contradict the claim."""


class ReportEntry(BaseModel):
    """One record with its claims and scores."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    trace_id: str
    """Finds the record again in a tracing backend."""

    query: str
    """What the user asked."""

    response: str
    """What the pipeline answered."""

    ground_truth: str | None = None
    """A response known to be right; None where there is none."""

    chunks: tuple[Chunk, ...] = ()
    """What the retriever found, in its order."""

    chunks_left_out: int = 0
    """Chunks that were retrieved but not recorded, for want of room."""

    response_claims: tuple[ReportClaim, ...] = ()
    """In the order of the response."""

    ground_truth_claims: tuple[ReportClaim, ...] = ()
    """In the order of the ground truth."""

    claims_left_out: int = 0
    """Claims that were judged but not recorded, for want of room; they count in the scores."""

    scores: Mapping[str, float] = Field(default_factory=dict[str, float])
    """Name to value; an undefined metric is absent."""

    undefined: Mapping[str, str] = Field(default_factory=dict[str, str])
    """Name to reason, for each metric that has no value."""

    status: str
    """How the evaluation ended: ``evaluated``, ``timeout``, ``judge_error`` and so on."""

    reason: str | None = None
    """More about the status; None where it says all."""

    late: bool = False
    """The scores came after the record's own spans were ended."""

    judge: str = ""
    """Name of the judge; empty where none was asked."""

    judge_calls: int = 0
    """Calls that the judge made for this record."""

    cost_usd: float | None = None
    """What these calls cost; None where unknown."""

    started: datetime
    """When the pipeline began to answer, with its time zone."""

    seconds: float = 0.0
    """How long the pipeline took to answer."""
