"""Reasons of scores in plain words: how many claims or chunks failed, of how many, and which."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Final

from claimspan.evaluation.result import Evaluation
from claimspan.metrics import counted
from claimspan.metrics.expected import expected_of
from claimspan.metrics.truths import Truth, Truths, UndefinedMetricError, share
from claimspan.verdicts import Label

__all__ = ["EXPECTED", "MAX_REASON_BYTES", "MEANS", "REASONS", "Evidence", "reason_for"]

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


@dataclass(frozen=True, slots=True)
class _Reason:
    """How the failures of one metric are counted and told."""

    truths: Callable[[Truths], Sequence[Truth]]
    """The values that the score is the share of."""

    failure: bool
    """The value that counts against the answer: True where a lower score is better."""

    told: str
    """What is said of the failures: ``{claims}``, ``{facts}`` or ``{chunks}`` stands for their
    number, ``{are}`` for the verb."""

    @property
    def things(self) -> str:
        """What is counted: ``claims`` of the response, ``facts`` or ``chunks``."""
        return self.told.partition("}")[0].removeprefix("{")


REASONS: Final[Mapping[str, _Reason]] = {
    "precision": _Reason(
        lambda truths: truths.correct, False, "{claims} {are} not in the ground truth"
    ),
    "recall": _Reason(
        lambda truths: truths.recalled,
        False,
        "{facts} of the ground truth {are} missing from the answer",
    ),
    "claim_recall": _Reason(
        lambda truths: truths.retrieved, False, "{facts} of the ground truth {are} in no chunk"
    ),
    "context_precision": _Reason(
        lambda truths: truths.relevant, False, "{chunks} {are} not relevant to the ground truth"
    ),
    "context_utilization": _Reason(
        counted.utilized,
        False,
        "{facts} of the ground truth that the chunks hold {are} missing from the answer",
    ),
    "noise_sensitivity_in_relevant": _Reason(
        counted.wrong_in_relevant,
        True,
        "{claims} {are} not in the ground truth, but in a relevant chunk",
    ),
    "noise_sensitivity_in_irrelevant": _Reason(
        counted.wrong_in_irrelevant,
        True,
        "{claims} {are} not in the ground truth, but in irrelevant chunks",
    ),
    "hallucination": _Reason(
        counted.hallucinated, True, "{claims} {are} neither in a chunk nor in the ground truth"
    ),
    "faithfulness": _Reason(lambda truths: truths.faithful, False, "{claims} {are} in no chunk"),
    "groundedness": _Reason(
        lambda truths: truths.grounded,
        False,
        "{claims} {are} not supported by the chunks read together",
    ),
    "contradicted_by_chunks": _Reason(
        counted.contradicted, True, "{claims} {are} contradicted by {by}"
    ),
    "contradicted_by_ground_truth": _Reason(
        counted.denied, True, "{claims} {are} contradicted by the ground truth"
    ),
    "correctness": _Reason(
        counted.taken_up,
        False,
        "{facts} of the ground truth that the answer takes up {are} not as the answer has it",
    ),
    "completeness": _Reason(
        lambda truths: truths.recalled,
        False,
        "{facts} of the ground truth {are} missing from the answer",
    ),
}
"""Metric to its reason, for each metric that is a share and has a good and a bad end."""

MEANS: Final[Mapping[str, Sequence[str]]] = {
    "f1": ("precision", "recall"),
    "alignment": ("correctness", "completeness"),
}
"""The metrics that are the harmonic mean of two others; their reason is that of both."""

EXPECTED: Final = "soft_alignment"
"""The metric of sums of probabilities; its reason gives the sums."""


def reason_for(metric: str, evaluation: Evaluation, truths: Truths, evidence: Evidence) -> str:
    """Tell what a score counts against the answer, in one line.

    Args:
        metric: Name of the metric.
        evaluation: Has the claims.
        truths: What its verdicts say.
        evidence: What may be shown.

    Returns:
        At most 1 KiB; empty for a metric that is not ours, and where there are no verdicts.
    """
    if metric in MEANS:
        return _of_mean(metric, truths, evidence)
    if metric == EXPECTED:
        return _of_probabilities(truths)
    if metric not in REASONS:
        return ""
    told, failed = _counts(metric, truths, evidence)
    return _joined(told, _shown(REASONS[metric].things, failed, evaluation, evidence))


def _of_mean(metric: str, truths: Truths, evidence: Evidence) -> str:
    names = MEANS[metric]
    if metric == "alignment" and _is_defined("completeness", truths):
        # It is 0 by its limit where correctness has no value, which then counts as nothing.
        names = [name for name in names if _is_defined(name, truths)]
    # Counts alone: the reasons of both shares quote the claims.
    parts = (_counts(name, truths, evidence)[0] for name in names)
    return "; ".join(part for part in dict.fromkeys(parts) if part)


def _is_defined(metric: str, truths: Truths) -> bool:
    try:
        share(REASONS[metric].truths(truths))
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


def _counts(metric: str, truths: Truths, evidence: Evidence) -> tuple[str, list[bool]]:
    """The counts of a metric in words, and which of its claims or chunks failed."""
    reason = REASONS[metric]
    try:
        values = reason.truths(truths)
        share(values)  # raises where every verdict is undecided
    except UndefinedMetricError as error:
        # ``undefined="zero"`` makes a score of what has none.
        return ("" if error.not_given else f"without a value, counted as 0: {error}"), []
    failed = [value is reason.failure for value in values]
    total = sum(value is not None for value in values)
    return _told(reason, failed, total, truths, evidence), failed


def _told(
    reason: _Reason, failed: Sequence[bool], total: int, truths: Truths, evidence: Evidence
) -> str:
    n = sum(failed)
    if not n:  # the other share of a mean; or a score that is not made of these verdicts
        return ""
    things = reason.things
    by = _contradicting(truths, failed, evidence) if "{by}" in reason.told else ""
    return reason.told.format(
        **{things: f"{n} of {total} {things if total != 1 else things[:-1]}"},
        are="is" if n == 1 else "are",
        by=by,
    )


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
    return _one_line(evidence.chunk_ids[place]) if known else f"[{place}]"


def _shown(
    things: str, failed: Sequence[bool], evaluation: Evaluation, evidence: Evidence
) -> list[str]:
    """The first of the claims or chunks that failed."""
    if things == "chunks":
        places = [place for place, is_failed in enumerate(failed) if is_failed]
        return [_chunk(place, evidence) for place in places[:MAX_QUOTES]]
    if not evidence.quotes:
        return []
    claims = evaluation.response_claims if things == "claims" else evaluation.ground_truth_claims
    return [f"'{_one_line(c.text)}'" for c in list(compress(claims, failed))[:MAX_QUOTES]]


def _one_line(text: str) -> str:
    # Cut before the white space is looked at: a text may be long.
    line = " ".join(text[: 4 * MAX_QUOTED].split())
    return line if len(line) <= MAX_QUOTED else line[: MAX_QUOTED - 1] + "\N{HORIZONTAL ELLIPSIS}"


def _joined(told: str, shown: Sequence[str]) -> str:
    """The counts, with as many of the things shown as there is room for."""
    for n in range(len(shown), 0, -1):
        line = f"{told}: {'; '.join(shown[:n])}"
        if len(line.encode("utf-8")) <= MAX_REASON_BYTES:
            return line
    return told
