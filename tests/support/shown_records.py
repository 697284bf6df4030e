"""What a page of a report shows of one text: its segments by claims, and the parts of a chunk."""

from __future__ import annotations

from collections.abc import Sequence

from claimspan import Chunk, Claim
from claimspan.report import ReportClaim, ReportEntry
from claimspan.report.page import Passage, SegmentView, view_record


def segments_of(text: str, claims: Sequence[Claim]) -> Sequence[SegmentView]:
    """The segments of a response with these claims."""
    shown = tuple(ReportClaim(text=each.text, sentence=each.sentence) for each in claims)
    entry = ReportEntry(query="q", response=text, status="evaluated", response_claims=shown)
    return view_record("e0", entry).response


def places_of(segment: SegmentView) -> tuple[int, ...]:
    """The places of the claims that cover a segment, from 0."""
    return tuple(claim.number - 1 for claim in segment.claims)


def parts_of_chunk(
    text: str, *, supports: Sequence[str] = (), contradicts: Sequence[str] = ()
) -> Sequence[Passage]:
    """The parts of a chunk that supports some claims, and contradicts others behind these."""
    claims = [ReportClaim(text=each, supported_by=("a",)) for each in supports]
    claims += [ReportClaim(text=each, contradicted_by=("a",)) for each in contradicts]
    entry = ReportEntry(
        query="q",
        response="r",
        status="evaluated",
        chunks=(Chunk(id="a", text=text),),
        response_claims=tuple(claims),
    )
    return view_record("e0", entry).chunks[0].passages
