"""The view model of the report: one record with its claims and scores.

The report depends on no tracing. The tracing package makes entries from a job and its outcome or
from a trace file, and ``evaluated`` makes them from a file of results, so that a page is the same
whichever way the records were read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from claimspan.errors import ConfigError
from claimspan.evaluation.claims import ReportClaim
from claimspan.evaluation.judgement import NEUTRAL, UNKNOWN, Assessment, Judgement
from claimspan.records import Chunk

__all__ = ["ReportClaim", "ReportEntry", "ReportSystem", "TraceLinks"]


class ReportEntry(BaseModel):
    """One record with its claims, its scores and the state in which its evaluation ended.

    A default stands for a field that was not captured.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    trace_id: str = ""
    """Hexadecimal id of the trace, for looking up the record in a tracing backend; empty if the
    record was evaluated from a file."""

    span_id: str = ""
    """Hexadecimal id of the record's root span within that trace; empty as ``trace_id`` is."""

    record_id: str | None = None
    """The caller's own id of the query; None if it has none."""

    query: str
    response: str
    ground_truth: str | None = None
    chunks: tuple[Chunk, ...] = ()
    chunks_left_out: int = 0
    """Number of chunks that were retrieved but did not fit into the limits of a span."""

    response_claims: tuple[ReportClaim, ...] = ()
    ground_truth_claims: tuple[ReportClaim, ...] = ()
    claims_left_out: int = 0
    """Number of claims that did not fit into the limits of a span; the scores include them."""

    claims_undecided: int | None = None
    """Number of claims with a verdict that the judge left undecided; None if not known."""

    scores: Mapping[str, float] = Field(default_factory=dict[str, float])
    undefined: Mapping[str, str] = Field(default_factory=dict[str, str])
    """Name of a metric without a value to the reason."""

    judgement: Judgement = Judgement()
    """The judgement on the answer, as on its span."""

    lower_is_better: tuple[str, ...] = ()
    """The metrics beyond claimspan's own that are better the lower they are."""

    metadata: Mapping[str, JsonValue] = Field(default_factory=dict[str, JsonValue])
    """What the caller keeps with the record, by which the report slices the scores."""

    abstained: bool = False
    """Whether the response declines to answer, and asserts nothing."""

    status: str
    """State in which the evaluation ended: ``evaluated``, ``timeout``, ``judge_error``..."""

    reason: str | None = None
    """Details of the status, if any."""

    late: bool = False
    """Whether the scores arrived after the record's own spans had ended."""

    judge: str = ""
    judge_calls: int = 0
    """Number of calls that the judge made for this record."""

    cost_usd: float | None = None
    """Cost of these calls in US dollars; None if the price is not known."""

    started: datetime | None = None
    """Time at which the pipeline started, with a time zone; None if it is not known."""

    seconds: float = 0.0
    """Duration of the pipeline in seconds, evaluation not included."""

    @property
    def assessments(self) -> tuple[Assessment, ...]:
        """The scores with their labels; one that the judgement lacks is neutral, and comes last."""
        judged = {each.name for each in self.judgement.scores}
        others = (
            Assessment(name=name, value=value, label=NEUTRAL)
            for name, value in self.scores.items()
            if name not in judged
        )
        return (*self.judgement.scores, *others)

    @property
    def why(self) -> str:
        """The reason of the record's label in one line, or empty."""
        if not self.assessments and not self.abstained:
            return self.reason or ""
        told = self.judgement.findings if self.judgement.label == UNKNOWN else ()
        return self.judgement.summary or next(iter(told), "")

    @property
    def least_confidence(self) -> float | None:
        """How sure the judge is of its least sure label of a claim; None if it is not known."""
        claims = (*self.response_claims, *self.ground_truth_claims)
        return min((c.confidence for c in claims if c.confidence is not None), default=None)

    @property
    def key(self) -> str:
        """Its id, else its query, by which another system's file has the same record."""
        return self.record_id or self.query


@dataclass(frozen=True, slots=True)
class ReportSystem:
    """One system with its records, for a report on several."""

    name: str
    entries: tuple[ReportEntry, ...]


# Characters of RFC 3986 alone: a browser drops some others of an address, and rewrites some, so
# that what it opens is not what was checked.
_TEMPLATE: Final = re.compile(
    r"(?i:https?)://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%-]+)(?::[0-9]+)?"
    r"[/?#](?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]|\{(?:trace|span)_id\})*"
)

# Damaged files may hold any text as an id, and no backend has a trace for such a one.
_ID: Final = re.compile(r"[0-9A-Fa-f]{1,64}")


@dataclass(frozen=True, slots=True)
class TraceLinks:
    """Makes the address of a record's trace out of a template."""

    template: str
    """An http or https address in which ``{trace_id}``, and ``{span_id}`` if wanted, stand for the
    hexadecimal ids of the trace and of the record's root span."""

    def __post_init__(self) -> None:
        """Refuse any other address, without quoting it, as it might have a key in it."""
        if not _TEMPLATE.fullmatch(self.template) or "{trace_id}" not in self.template:
            raise ConfigError(
                "the template of trace addresses cannot be used: give an http or https address "
                "with a fixed host and without a user name or password, which every reader of the "
                "report would see; behind the host write {trace_id}, and {span_id} if it is "
                "wanted, and other characters that no address has in their percent-encoded form; "
                "such as http://localhost:6006/projects/x/traces/{trace_id}"
            )

    def url(self, entry: ReportEntry) -> str | None:
        """The address of a record's trace; None if it lacks an id that the template names."""
        address = self.template
        for field, id_ in (("{trace_id}", entry.trace_id), ("{span_id}", entry.span_id)):
            if field in address and not _ID.fullmatch(id_):
                return None
            address = address.replace(field, id_)
        return address
