"""The claims of an answer with their verdicts in words: ``in chunk 2``, ``in no chunk``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from claimspan.evaluation.result import Evaluation
from claimspan.text.closest import SearchedSentences
from claimspan.text.visible import one_line
from claimspan.verdicts import Claim, Label, VerdictMatrix

__all__ = ["ToldClaim", "evidence_of", "told_claims"]

MAX_NAMED: Final = 3
"""Chunks that one verdict names."""

MAX_SEARCHED: Final = 20_000
"""Characters of a chunk that are searched for evidence, in some 0.05 s: a trace waits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldClaim:
    """A claim of an answer, as a person reads it."""

    claim: Claim
    """The claim."""

    label: Label | None
    """Its label by the chunks, or by the ground truth if it was not judged by chunks; None if
    undecided."""

    verdict: str
    """``in chunk 2``, ``in no chunk``, ``contradicted by chunk 1``, with what the ground truth says
    against it; chunks are numbered from 1."""

    decided_by: int | None = None
    """Place of the first chunk that the verdict names, from 0; None if it names none."""


def told_claims(evaluation: Evaluation) -> list[ToldClaim]:
    """Return the claims of the answer with their verdicts, in the order of the answer."""
    by_chunks, by_truth = evaluation.response_vs_chunks, evaluation.response_vs_ground_truth
    return [
        _told(claim, index, by_chunks, by_truth)
        for index, claim in enumerate(evaluation.response_claims)
    ]


def evidence_of(told: Sequence[ToldClaim], texts: Sequence[str], limit: int) -> list[str]:
    """Return for each claim the sentence of the deciding chunk that is closest to it.

    Args:
        told: The claims.
        texts: The texts of the chunks, in their order; the first 20,000 characters are searched.
        limit: Characters of each sentence.

    Returns:
        One line each; empty if no chunk decided, or no sentence of it is close to the claim.
    """
    # Split once, however many claims a chunk decides, and kept for this record alone.
    sentences: dict[int, SearchedSentences] = {}
    found: list[str] = []
    for each in told:
        place, sentence = each.decided_by, ""
        if place is not None and place < len(texts):
            text = texts[place][:MAX_SEARCHED]
            if place not in sentences:
                sentences[place] = SearchedSentences(text)
            denied = each.label is Label.CONTRADICTED
            if span := sentences[place].closest(each.claim.text, denied=denied):
                sentence = one_line(text[slice(*span)], limit)
        found.append(sentence)
    return found


def _told(
    claim: Claim, index: int, by_chunks: VerdictMatrix | None, by_truth: VerdictMatrix | None
) -> ToldClaim:
    truth = by_truth.merged[index] if by_truth else None
    if by_chunks is None:
        told = {
            Label.ENTAILED: "in the ground truth",
            Label.NEUTRAL: "not in the ground truth",
            Label.CONTRADICTED: "contradicted by the ground truth",
            None: "undecided",
        }
        return ToldClaim(claim=claim, label=truth, verdict=told[truth])
    label, row = by_chunks.merged[index], by_chunks.labels[index]
    places = {
        wanted: [place for place, found in enumerate(row) if found is wanted]
        for wanted in (Label.ENTAILED, Label.CONTRADICTED)
    }
    parts = [
        f"{word} {_chunks(places[each])}"
        for each, word in ((Label.ENTAILED, "in"), (Label.CONTRADICTED, "contradicted by"))
        if places[each]
    ]
    if not parts:
        parts = ["undecided" if label is None else "in no chunk"]
    if truth is Label.CONTRADICTED:
        parts.append("contradicted by the ground truth")
    decided_by = places[label][0] if places.get(label) else None
    return ToldClaim(claim=claim, label=label, verdict=", ".join(parts), decided_by=decided_by)


def _chunks(places: Sequence[int]) -> str:
    named = ", ".join(str(place + 1) for place in places[:MAX_NAMED])
    more = len(places) - MAX_NAMED
    return f"chunk{'s' if len(places) > 1 else ''} {named}{f' and {more} more' if more > 0 else ''}"
