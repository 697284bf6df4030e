"""Converts entries into the values that the template shows.

All decisions are made here, so that they are typed and tested; the template only prints.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

from claimspan.evaluation.judgement import Assessment
from claimspan.records import Chunk
from claimspan.report.entries import ReportClaim, ReportEntry
from claimspan.report.highlight import highlight
from claimspan.report.passages import Passage, Sought, passages
from claimspan.report.trace_links import TraceLinks
from claimspan.verdicts import Label

__all__ = [
    "CONFLICTING",
    "UNDECIDED",
    "AnswerView",
    "ChunkView",
    "ClaimView",
    "RecordView",
    "SegmentView",
    "response_label",
    "view_record",
]

UNDECIDED: Final = "undecided"
"""The word that the page shows for a label that is None."""

CONFLICTING: Final = "conflicting"
"""The word for a claim of the response that one chunk entails and another contradicts."""

_OF_RESPONSE: Final = "r"
"""How the keys of the response's claims begin; those of the ground truth begin with another letter.
"""

_WORST_FIRST: Final = (Label.CONTRADICTED, CONFLICTING, Label.NEUTRAL, UNDECIDED, Label.ENTAILED)


def response_label(claim: ReportClaim) -> str:
    """The label of a claim of the response against the chunks, in one word."""
    if claim.supported_by and claim.contradicted_by:
        return CONFLICTING
    return claim.label or UNDECIDED


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim of the response (keys ``r0``, ``r1``...) or of the ground truth (``g0``...)."""

    key: str
    number: int
    claim: ReportClaim
    located: bool
    """Whether the claim was found in its text."""

    supported_by: tuple[str, ...]
    """Keys of the chunks that entail the claim."""

    contradicted_by: tuple[str, ...]
    """Keys of the chunks that contradict the claim."""

    @property
    def label(self) -> str:
        """The label in one word."""
        if self.key.startswith(_OF_RESPONSE):
            return response_label(self.claim)
        return self.claim.label or UNDECIDED

    @property
    def is_close_call(self) -> bool:
        """Whether the judge is so unsure of the label that a person should look."""
        return self.claim.is_close_call


@dataclass(frozen=True, slots=True)
class SegmentView:
    """A part of a text with the claims that cover it."""

    text: str
    claims: tuple[ClaimView, ...]
    ending: tuple[ClaimView, ...]
    """The claims whose last segment this is; their numbers are printed after it."""

    @property
    def label(self) -> str:
        """The worst label among the claims; it gives the segment its colour."""
        labels = {claim.label for claim in self.claims}
        return next((label for label in _WORST_FIRST if label in labels), UNDECIDED)


@dataclass(frozen=True, slots=True)
class ChunkView:
    """A chunk (keys ``k0``, ``k1``...) with the claims that it supports or contradicts."""

    key: str
    chunk: Chunk
    supports: tuple[ClaimView, ...]
    contradicts: tuple[ClaimView, ...]
    relevant: bool | None
    """Whether it supports a claim of the ground truth; None where that is not known."""

    passages: tuple[Passage, ...]
    """Its text, split at the sentences that are closest to these claims."""


@dataclass(frozen=True, slots=True)
class RecordView:
    """Everything that the page shows about one record."""

    key: str
    entry: ReportEntry
    response_claims: tuple[ClaimView, ...]
    ground_truth_claims: tuple[ClaimView, ...]
    response: tuple[SegmentView, ...]
    ground_truth: tuple[SegmentView, ...]
    chunks: tuple[ChunkView, ...]
    scores: Mapping[str, Assessment]
    """Metric to score."""

    retrieval_known: bool
    """Whether a fact without a chunk was not retrieved, rather than undecided or cut off."""

    trace_url: str | None = None
    """Address of its trace in the user's backend; None where it is not known."""

    @property
    def undefined(self) -> Mapping[str, Sequence[str]]:
        """Reason to the metrics that have no value for it."""
        found: dict[str, list[str]] = {}
        for name, reason in self.entry.undefined.items():
            found.setdefault(reason, []).append(name)
        return found


class AnswerView(NamedTuple):
    """The answer of one system to a question."""

    system: str
    record: RecordView | None
    """None where the system was not asked."""


def view_record(key: str, entry: ReportEntry, links: TraceLinks | None = None) -> RecordView:
    """Convert one entry.

    Args:
        key: Makes the anchors of the record unique on the page.
        entry: The entry.
        links: Makes the address of its trace; None for a page without such links.
    """
    # Two chunks may have the same id. Claims refer to the first one, so it is entered last.
    keys = {chunk.id: f"k{i}" for i, chunk in reversed(list(enumerate(entry.chunks)))}
    response, claims = _view_text("r", entry.response, entry.response_claims, keys)
    known = _retrieval_is_known(entry)
    all_decided = known and entry.claims_undecided == 0
    truth, truth_claims = _view_text("g", entry.ground_truth or "", entry.ground_truth_claims, keys)
    return RecordView(
        key=key,
        entry=entry,
        scores={each.name: each for each in entry.assessments},
        retrieval_known=known,
        response_claims=claims,
        ground_truth_claims=truth_claims,
        response=response,
        ground_truth=truth,
        chunks=tuple(
            _view_chunk(f"k{i}", chunk, claims, truth_claims, known=all_decided)
            for i, chunk in enumerate(entry.chunks)
        ),
        trace_url=links.url(entry) if links else None,
    )


def _view_text(
    prefix: str, text: str, claims: Sequence[ReportClaim], keys: Mapping[str, str]
) -> tuple[tuple[SegmentView, ...], tuple[ClaimView, ...]]:
    """Split a text into segments, and view its claims; claim keys are the prefix and a number."""
    segments = highlight(text, claims)
    # A claim that others overlap has several segments, and its number stands after the last one.
    last = {claim: place for place, segment in enumerate(segments) for claim in segment.claims}
    views = tuple(
        ClaimView(
            key=f"{prefix}{i}",
            number=i + 1,
            claim=claim,
            located=i in last,
            supported_by=_keys_of(claim.supported_by, keys),
            contradicted_by=_keys_of(claim.contradicted_by, keys),
        )
        for i, claim in enumerate(claims)
    )
    return tuple(
        SegmentView(
            segment.text,
            tuple(views[i] for i in segment.claims),
            tuple(views[i] for i in segment.claims if last[i] == place),
        )
        for place, segment in enumerate(segments)
    ), views


def _keys_of(ids: Iterable[str], keys: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(keys[chunk_id] for chunk_id in ids if chunk_id in keys)


def _view_chunk(
    key: str,
    chunk: Chunk,
    claims: Sequence[ClaimView],
    truth_claims: Sequence[ClaimView],
    *,
    known: bool,
) -> ChunkView:
    supports = tuple(c for c in chain(claims, truth_claims) if key in c.supported_by)
    contradicts = tuple(c for c in chain(claims, truth_claims) if key in c.contradicted_by)
    sought = [
        Sought(view.key, view.claim.text, contradicts=denies)
        for views, denies in ((supports, False), (contradicts, True))
        for view in views
    ]
    return ChunkView(
        key=key,
        chunk=chunk,
        supports=supports,
        contradicts=contradicts,
        # A chunk that supports no fact is irrelevant only where no verdict of it is open.
        relevant=any(key in c.supported_by for c in truth_claims) or (False if known else None),
        passages=tuple(passages(chunk.text, sought)),
    )


def _retrieval_is_known(entry: ReportEntry) -> bool:
    """Whether a fact without a chunk was not retrieved, rather than undecided or cut off.

    The chunks of a claim do not tell this apart. The score does: it is the share of the decided
    facts, so it is the share of all of them only where all are decided and no chunk is lost.
    """
    share, facts = entry.scores.get("claim_recall"), entry.ground_truth_claims
    if share is None or not facts or entry.claims_left_out:
        return False
    retrieved = sum(bool(fact.supported_by) for fact in facts)
    if not math.isclose(share, retrieved / len(facts), abs_tol=1e-6):
        return False
    # A share of 0 looks the same however many facts are undecided.
    return retrieved > 0 or entry.claims_undecided == 0
