"""Sums up the verdicts on an answer: one label, the reasons, and the part to blame.

Spans, summaries, reports, gates, alerts, comparisons and writers all show what ``judgement_of``
says, and none of them has a threshold of its own. The cases are a table in ``docs/scores.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, islice
from typing import Final, Literal, TypeVar

from claimspan.evaluation.diagnosis import Diagnosis, Part, diagnose, findings_of
from claimspan.evaluation.measured import Measured
from claimspan.metrics.catalogue import CATALOGUE, ClaimMetric
from claimspan.metrics.means import expected_of
from claimspan.metrics.truths import Truths, UndefinedMetricError, share
from claimspan.text.visible import one_line
from claimspan.verdicts import Label

__all__ = [
    "GOOD",
    "LOW",
    "LOW_SCORE",
    "MAX_REASON_BYTES",
    "NEUTRAL",
    "UNKNOWN",
    "Assessment",
    "Judgement",
    "RecordLabel",
    "judgement_of",
]

_T = TypeVar("_T")

GOOD: Final = "good"
LOW: Final = "low"
NEUTRAL: Final = "neutral"
UNKNOWN: Final = "unknown"

LOW_SCORE: Final[Mapping[str, float]] = {LOW: 1.0, GOOD: 0.0}
"""Label of a record to its score ``low``, whose mean is the share of low records; an unknown one
has none."""

RecordLabel = Literal["good", "low", "unknown"]
"""The label of a whole record. It is unknown if no score with a threshold has a value."""

_ROUNDING: Final = 1e-9
"""A share this near to its threshold is at it: 1 - 0.8 is a little less than 0.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One score of an evaluation."""

    name: str
    value: float
    label: str
    """``good`` or ``low``, by quality: a hallucination of 0.8 is low. ``neutral`` if the score says
    neither: that of a metric without a threshold, and one whose failures are excused."""

    explanation: str = ""
    """Why it is low or excused, in one line of plain words; what the judge of a criterion wrote."""

    def __str__(self) -> str:
        """The score with its reason: ``faithfulness 0.71: 2 of 7 claims are in no chunk``."""
        return f"{self.named}: {self.explanation}" if self.explanation else self.named

    @property
    def named(self) -> str:
        """The score with its name: ``faithfulness 0.71``."""
        return f"{self.name} {self.value:.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement(Diagnosis):
    """The judgement on one record, for every place that shows it."""

    label: RecordLabel = "unknown"
    """``low`` if, and only if, a score is low; ``good`` if one could be, and none is."""

    scores: tuple[Assessment, ...] = ()
    """Every score, in the order of ``evaluation.metrics``."""

    summary: str = ""
    """The low scores in one line: the reason of the first, and the others by name.

    Such as ``faithfulness 0.71: 2 of 7 claims are in no chunk: 'It is long.'; 'It is old.' (also
    low: recall 0.50)``; empty if no score is low.
    """

    @property
    def low(self) -> tuple[Assessment, ...]:
        """The low scores, the most telling first."""
        return tuple(each for each in self.scores if each.label == LOW)


_REPEATING: Final = frozenset(
    {"completeness", "groundedness", *(m.name for m in CATALOGUE.values() if m.mean_of)}
)


def judgement_of(
    evaluation: Measured, *, chunk_ids: Sequence[str] = (), quotes: bool = True
) -> Judgement:
    """Return the judgement on a record, with chunks named by ids or else by places.

    A score is good from its threshold on. A low score that is no fault of the answer is excused,
    unless the threshold is the user's: that it says more than a short ground truth, if the chunks
    support it and the ground truth does not contradict it; that the judge finds a fact in no chunk
    which the answer states, if the chunks support all of the answer. An answer that the ground
    truth contradicts is never good. Without ``quotes`` reasons have counts alone.
    """
    truths = Truths(evaluation.matrices)  # one for all: it caches what metrics have in common
    reasons = _Reasons(evaluation, truths, chunk_ids, quotes)
    found: list[Assessment] = []
    decides = False
    for name, value in evaluation.metrics.items():
        of_score = _label(name, value, evaluation, truths)
        may_be_low = _threshold(name, evaluation) is not None
        decides = decides or may_be_low
        reason = evaluation.explanations.get(name, "")
        if of_score == LOW or (of_score == NEUTRAL and may_be_low):
            reason = reason or reasons.of(name)
            excuse = CATALOGUE[name].excuse if of_score == NEUTRAL else ""
            reason = f"{reason}; {excuse}" if reason and excuse else reason
        found.append(Assessment(name=name, value=value, label=of_score, explanation=reason))
    summary = ""
    if low := [each for each in found if each.label == LOW]:
        declines = "the answer declines; " if evaluation.abstained else ""
        # What says again what another score says is not named beside it.
        others = ", ".join(each.named for each in low[1:] if each.name not in _REPEATING)
        summary = f"{declines}{low[0]}" + (f" (also low: {others})" if others else "")
    label: RecordLabel = "low" if low else "good" if decides else "unknown"
    judged = Judgement(label=label, scores=tuple(found), summary=summary)
    if evaluation.error is not None or not (found or evaluation.abstained):
        return judged
    diagnosis = diagnose(findings_of(evaluation, truths))
    if dropped := evaluation.claims_dropped:
        told = f"{dropped:,} more claim{'s were' if dropped > 1 else ' was'} not judged."
        diagnosis = replace(diagnosis, findings=(*diagnosis.findings, told))
    if not low:
        # What falls short by less than its threshold is told, and blames no part.
        part = Part.NONE if label == GOOD else Part.UNKNOWN
        return replace(judged, part=part, findings=diagnosis.findings)
    part = diagnosis.part if diagnosis.part.is_bad else Part.UNKNOWN
    return replace(judged, part=part, findings=diagnosis.findings, doubts=diagnosis.doubts)


def _threshold(name: str, evaluation: Measured) -> float | None:
    known = CATALOGUE.get(name)
    return evaluation.thresholds.get(name, None if known is None else known.threshold)


def _label(name: str, value: float, evaluation: Measured, truths: Truths) -> str:
    limit = _threshold(name, evaluation)
    if limit is None:
        return NEUTRAL
    metric = CATALOGUE.get(name)
    lower = name in evaluation.lower_is_better if metric is None else metric.failure
    if metric is not None and any(_known(metric.never_good, truths) or ()):
        return LOW
    if not _is_beyond(value, limit, lower=lower):
        return GOOD
    if metric is None or name in evaluation.thresholds:
        return LOW
    if metric.mean_of:
        values = {each: _value(each, evaluation, truths) for each in metric.mean_of}
        parts = [
            _label(each, value, evaluation, truths)
            for each, value in values.items()
            if value is not None
        ]
        return NEUTRAL if parts and LOW not in parts else LOW
    # Without the verdicts that would excuse it, which were not asked for, it is not excused.
    excused = _known(lambda found: metric.excused and share(metric.excused(found)), truths)
    return LOW if excused is None or _is_beyond(excused, limit, lower=lower) else NEUTRAL


def _value(name: str, evaluation: Measured, truths: Truths) -> float | None:
    """The score of a metric, if it was chosen or not; None if it has no value."""
    found = evaluation.metrics.get(name)
    return _known(CATALOGUE[name].value, truths) if found is None else found


def _known(of: Callable[[Truths], _T | None] | None, truths: Truths) -> _T | None:
    try:
        return None if of is None else of(truths)
    except UndefinedMetricError:
        return None


def _is_beyond(value: float, limit: float, *, lower: bool) -> bool:
    return value > limit + _ROUNDING if lower else value < limit - _ROUNDING


# --- reasons in plain words: how many claims or chunks failed, of how many, and which -----------

MAX_QUOTES: Final = 3

MAX_QUOTED: Final = 120
"""Characters of a claim shown; the whole of it is among the claims of the evaluation."""

MAX_REASON_BYTES: Final = 1024
"""Bytes of one reason, so that Tempo, which cuts attributes at 2 KiB, shows all of it."""


@dataclass(frozen=True, slots=True)
class _Reasons:
    """Tells in one line what a score counts against the answer."""

    evaluation: Measured
    truths: Truths
    chunk_ids: Sequence[str]
    """Ids of the chunks, in their order; a chunk without one is shown by its place."""

    quotes: bool

    def of(self, name: str) -> str:
        """At most 1 KiB; empty for a metric that is not ours, and if there are no verdicts."""
        metric = CATALOGUE.get(name)
        if metric is None:
            return ""
        if name == "soft_alignment":
            return self._of_probabilities()
        if metric.mean_of:
            return self._of_mean(metric)
        told, failed = self._counts(metric)
        shown = self._shown(metric.things, failed)
        # As many of the things shown as there is room for.
        for n in range(len(shown), 0, -1):
            line = f"{told}: {'; '.join(shown[:n])}"
            if len(line.encode("utf-8")) <= MAX_REASON_BYTES:
                return line
        return told

    def _of_probabilities(self) -> str:
        expected = _known(expected_of, self.truths)
        if expected is None:
            return ""
        return (
            f"by probability the answer states {expected.entailed:.2f} of {expected.n} "
            f"{'fact' if expected.n == 1 else 'facts'} of the ground truth, and contradicts "
            f"{expected.contradicted:.2f}"
        )

    def _of_mean(self, metric: ClaimMetric) -> str:
        parts = [CATALOGUE[name] for name in metric.mean_of]
        has_value = [_known(part.value, self.truths) is not None for part in parts]
        if metric.name == "alignment" and has_value[1]:
            # It is 0 by its limit if correctness has no value, which then counts as nothing.
            parts = list(compress(parts, has_value))
        # Counts alone: the reasons of both shares quote the claims.
        told = (self._counts(part)[0] for part in parts)
        return "; ".join(each for each in dict.fromkeys(told) if each)

    def _counts(self, metric: ClaimMetric) -> tuple[str, list[bool]]:
        if metric.counted is None or not metric.told:
            return "", []
        try:
            values = metric.counted(self.truths)
            share(values, least=metric.least_decided)  # raises if too few are decided
        except UndefinedMetricError as error:
            # ``undefined="zero"`` makes a score of one that has none.
            return ("" if error.not_given else f"without a value, counted as 0: {error}"), []
        failed = [value is metric.failure for value in values]
        total = sum(value is not None for value in values)
        n = sum(failed)
        if not n:  # the other share of a mean; or a score that is not made of these verdicts
            return "", failed
        things = metric.things
        told = metric.told.format(
            **{things: f"{n} of {total} {things if total != 1 else things[:-1]}"},
            are="is" if n == 1 else "are",
            by=self._contradicting(failed) if "{by}" in metric.told else "",
        )
        if metric.name == "precision" and (n_denied := self.truths.denied.count(True)):
            told += f", which contradicts {n_denied} of them"
        return told, failed

    def _contradicting(self, failed: Sequence[bool]) -> str:
        """The chunks that contradict the failed claims, by their ids if these are few."""
        rows = compress(self.truths.chunk_labels, failed)
        places = {i for row in rows for i, label in enumerate(row) if label is Label.CONTRADICTED}
        names = [self._chunk(place) for place in sorted(places)]
        if not 0 < len(names) <= MAX_QUOTES:
            return f"{len(names)} chunks"
        return f"chunk {names[0]}" if len(names) == 1 else f"chunks {', '.join(names)}"

    def _shown(self, things: str, failed: Sequence[bool]) -> list[str]:
        if things == "chunks":
            places = [place for place, is_failed in enumerate(failed) if is_failed]
            return [self._chunk(place) for place in places[:MAX_QUOTES]]
        found = self.evaluation
        claims = found.response_claims if things == "claims" else found.ground_truth_claims
        quoted = islice(compress(claims, failed), MAX_QUOTES if self.quotes else 0)
        return [f"'{one_line(claim.text, MAX_QUOTED)}'" for claim in quoted]

    def _chunk(self, place: int) -> str:
        known = place < len(self.chunk_ids)
        return one_line(self.chunk_ids[place], MAX_QUOTED) if known else f"[{place}]"
