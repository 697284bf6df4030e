"""Diagnoses an entry: what its labels say, without what a trace has lost."""

from __future__ import annotations

import math
from collections import Counter

from claimspan.evaluation.diagnosis import (
    Diagnosis,
    Fact,
    Findings,
    Part,
    Statement,
    diagnose,
)
from claimspan.metrics.truths import Truth
from claimspan.report.entries import ReportClaim, ReportEntry
from claimspan.verdicts import Label

__all__ = ["diagnosis_of", "retrieval_is_known"]


def diagnosis_of(entry: ReportEntry) -> Diagnosis:
    """Return where an answer falls short; the part is unknown where nothing was evaluated."""
    if not entry.scores and not entry.abstained:
        return Diagnosis(Part.UNKNOWN)
    return diagnose(_findings(entry))


def _findings(entry: ReportEntry) -> Findings:
    retrieval_known = retrieval_is_known(entry)
    facts = entry.ground_truth_claims
    relevant = {chunk for fact in facts for chunk in fact.supported_by}
    times = Counter(chunk.id for chunk in entry.chunks)
    # A claim names its chunks by their ids. Of two chunks with one id either may be meant, so
    # that neither is named, and what follows from one of them is not known.
    places = {c.id: i for i, c in enumerate(entry.chunks, start=1) if times[c.id] == 1}
    # A cell that is undecided leaves the chunk's relevance open, although the fact itself is
    # decided by another chunk.
    relevance_known = (
        retrieval_known and entry.claims_undecided == 0 and len(places) == len(entry.chunks)
    )
    return Findings(
        statements=[
            Statement(
                label=claim.label,
                correct=_is_entailed(claim.ground_truth_label),
                is_denied=claim.ground_truth_label is Label.CONTRADICTED,
                contradicted_by=[places[i] for i in claim.contradicted_by if i in places],
                in_relevant=_in_relevant(claim, relevant & places.keys(), known=relevance_known),
                is_close=claim.is_close_call,
            )
            for claim in entry.response_claims
        ],
        facts=[
            Fact(
                retrieved=bool(fact.supported_by) or (False if retrieval_known else None),
                answered=_is_entailed(fact.label),
                is_close=fact.is_close_call,
            )
            for fact in facts
        ],
        abstained=entry.abstained,
        complete=not entry.claims_left_out,
    )


def retrieval_is_known(entry: ReportEntry) -> bool:
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


def _in_relevant(claim: ReportClaim, relevant: set[str], *, known: bool) -> Truth:
    if relevant.intersection(claim.supported_by):
        return True
    return False if known and claim.supported_by else None


def _is_entailed(label: Label | None) -> Truth:
    return None if label is None else label is Label.ENTAILED
