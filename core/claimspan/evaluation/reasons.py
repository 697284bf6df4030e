"""Reasons of scores in plain words: how many claims or chunks failed, of how many, and which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

from claimspan.evaluation.diagnosis import Evaluated
from claimspan.metrics import counted
from claimspan.metrics.catalogue import CATALOGUE, ClaimMetric
from claimspan.metrics.expected import expected_of
from claimspan.metrics.truths import Truths, UndefinedMetricError, share
from claimspan.text.visible import one_line
from claimspan.verdicts import Label

__all__ = ["MAX_REASON_BYTES", "Evidence", "reason_for"]

MAX_QUOTES: Final = 3
"""Claims or chunks shown in one reason."""

MAX_QUOTED: Final = 120
"""Characters of a claim shown; the whole of it is among the claims of the evaluation."""

MAX_REASON_BYTES: Final = 1024
"""Bytes of one reason, so that Tempo, which cuts attributes at 2 KiB, shows all of it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a reason may show beside its counts."""

    chunk_ids: Sequence[str] = ()
    """Ids of the chunks, in their order; a chunk without one is shown by its place."""

    quotes: bool = True
    """Whether claims may be quoted."""


def reason_for(metric: str, evaluation: Evaluated, truths: Truths, evidence: Evidence) -> str:
    """Tell what a score counts against the answer, in one line.

    Args:
        metric: Name of the metric.
        evaluation: Has the claims.
        truths: What its verdicts say.
        evidence: What may be shown.

    Returns:
        At most 1 KiB; empty for a metric that is not ours, and where there are no verdicts.
    """
    known = CATALOGUE.get(metric)
    if known is None:
        return ""
    if metric == "soft_alignment":
        return _of_probabilities(truths)
    if known.mean_of:
        return _of_mean(known, truths, evidence)
    told, failed = _counts(known, truths, evidence)
    return _joined(told, _shown(known.things, failed, evaluation, evidence))


def _of_mean(metric: ClaimMetric, truths: Truths, evidence: Evidence) -> str:
    parts = [CATALOGUE[name] for name in metric.mean_of]
    if metric.name == "alignment" and _is_defined(CATALOGUE["completeness"], truths):
        # It is 0 by its limit if correctness has no value, which then counts as nothing.
        parts = [part for part in parts if _is_defined(part, truths)]
    # Counts alone: the reasons of both shares quote the claims.
    told = (_counts(part, truths, evidence)[0] for part in parts)
    return "; ".join(each for each in dict.fromkeys(told) if each)


def _is_defined(metric: ClaimMetric, truths: Truths) -> bool:
    try:
        metric.formula(truths)
    except UndefinedMetricError:
        return False
    return True


def _of_probabilities(truths: Truths) -> str:
    try:
        expected = expected_of(truths)
    except UndefinedMetricError:
        return ""
    return (
        f"by probability the answer states {expected.entailed:.2f} of {expected.n} "
        f"{'fact' if expected.n == 1 else 'facts'} of the ground truth, and contradicts "
        f"{expected.contradicted:.2f}"
    )


def _counts(metric: ClaimMetric, truths: Truths, evidence: Evidence) -> tuple[str, list[bool]]:
    """The counts of a metric in words, and which of its claims or chunks failed."""
    if metric.counted is None or not metric.told:
        return "", []
    try:
        values = metric.counted(truths)
        share(values)  # raises if every verdict is undecided
    except UndefinedMetricError as error:
        # ``undefined="zero"`` makes a score of one that has none.
        return ("" if error.not_given else f"without a value, counted as 0: {error}"), []
    failed = [value is metric.failure for value in values]
    total = sum(value is not None for value in values)
    n = sum(failed)
    if not n:  # the other share of a mean; or a score that is not made of these verdicts
        return "", failed
    things = metric.things
    by = _contradicting(truths, failed, evidence) if "{by}" in metric.told else ""
    told = metric.told.format(
        **{things: f"{n} of {total} {things if total != 1 else things[:-1]}"},
        are="is" if n == 1 else "are",
        by=by,
    )
    if metric.name == "precision" and (n_denied := counted.denied(truths).count(True)):
        told += f", which contradicts {n_denied} of them"
    return told, failed


def _contradicting(truths: Truths, failed: Sequence[bool], evidence: Evidence) -> str:
    """The chunks that contradict the failed claims, by their ids where these are few."""
    rows = compress(truths.chunk_labels, failed)
    places = {i for row in rows for i, label in enumerate(row) if label is Label.CONTRADICTED}
    names = [_chunk(place, evidence) for place in sorted(places)]
    if not 0 < len(names) <= MAX_QUOTES:
        return f"{len(names)} chunks"
    return f"chunk {names[0]}" if len(names) == 1 else f"chunks {', '.join(names)}"


def _chunk(place: int, evidence: Evidence) -> str:
    known = place < len(evidence.chunk_ids)
    return one_line(evidence.chunk_ids[place], MAX_QUOTED) if known else f"[{place}]"


def _shown(
    things: str, failed: Sequence[bool], evaluation: Evaluated, evidence: Evidence
) -> list[str]:
    """The first of the claims or chunks that failed."""
    if things == "chunks":
        places = [place for place, is_failed in enumerate(failed) if is_failed]
        return [_chunk(place, evidence) for place in places[:MAX_QUOTES]]
    if not evidence.quotes:
        return []
    claims = evaluation.response_claims if things == "claims" else evaluation.ground_truth_claims
    return [
        f"'{one_line(c.text, MAX_QUOTED)}'" for c in list(compress(claims, failed))[:MAX_QUOTES]
    ]


def _joined(told: str, shown: Sequence[str]) -> str:
    """The counts, with as many of the things shown as there is room for."""
    for n in range(len(shown), 0, -1):
        line = f"{told}: {'; '.join(shown[:n])}"
        if len(line.encode("utf-8")) <= MAX_REASON_BYTES:
            return line
    return told
