"""What a record's verdicts say of its answer: one label, the reasons, and the part to blame.

Spans, summaries, reports, gates, alerts, comparisons and writers all show what ``judgement_of``
says, and none of them has a threshold of its own. The cases are a table in ``docs/scores.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Final, Literal, Protocol

from claimspan.evaluation.diagnosis import Evaluated, Part, diagnose, findings_of
from claimspan.metrics.catalogue import CATALOGUE, ClaimMetric
from claimspan.metrics.means import expected_of
from claimspan.metrics.truths import Truth, Truths, UndefinedMetricError, share
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
    "Evidence",
    "Judgement",
    "RecordLabel",
    "Scored",
    "judgement_of",
    "reason_for",
]

GOOD: Final = "good"
LOW: Final = "low"
NEUTRAL: Final = "neutral"
UNKNOWN: Final = "unknown"

LOW_SCORE: Final[Mapping[str, float]] = {LOW: 1.0, GOOD: 0.0}
"""Label of a record to its score ``low``, whose mean is the share of low records; an unknown one
has none."""

RecordLabel = Literal["good", "low", "unknown"]
"""What a whole record is. It is unknown if no score that could call it low has a value."""

_ROUNDING: Final = 1e-9
"""A share this near to its threshold is at it: 1 - 0.8 is a little less than 0.2."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One score of an evaluation."""

    name: str
    """The metric."""

    value: float
    """The score, 0 to 1."""

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
class Judgement:
    """What is said of one record, wherever it is shown."""

    label: RecordLabel = "unknown"
    """``low`` if, and only if, a score is low; ``good`` if one could be, and none is."""

    scores: tuple[Assessment, ...] = ()
    """Every score, in the order of ``evaluation.metrics``."""

    part: Part = Part.UNKNOWN
    """The part of the pipeline that a low record comes from; ``none`` of a good one."""

    summary: str = ""
    """The low scores in one line: the reason of the first, and the others by name.

    Such as ``faithfulness 0.71: 2 of 7 claims are in no chunk: 'It is long.'; 'It is old.' (also
    low: recall 0.50)``; empty if no score is low.
    """

    findings: tuple[str, ...] = ()
    """What the verdicts show, a sentence each, the reason of the part first."""

    doubts: tuple[str, ...] = ()
    """Why the part may be another one, a sentence each; empty if firm verdicts blame it."""

    @property
    def low(self) -> tuple[Assessment, ...]:
        """The low scores, the most telling first."""
        return tuple(each for each in self.scores if each.label == LOW)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the verdicts show, and what casts doubt on it."""
        return self.findings + self.doubts

    @property
    def is_sure(self) -> bool:
        """Whether firm verdicts blame the part, and none of them contradict each other."""
        return not self.doubts


class Scored(Evaluated, Protocol):
    """What a judgement reads of an ``Evaluation``, whose module asks for one."""

    @property
    def metrics(self) -> Mapping[str, float]:
        """The scores."""
        ...

    @property
    def thresholds(self) -> Mapping[str, float]:
        """Those that differ from the catalogue's."""
        ...

    @property
    def lower_is_better(self) -> Sequence[str]:
        """Metrics of the user's own whose lower end is better."""
        ...

    @property
    def explanations(self) -> Mapping[str, str]:
        """What the judge of a criterion wrote."""
        ...

    @property
    def claims_dropped(self) -> int:
        """Claims beyond the cap, which were not judged."""
        ...

    @property
    def error(self) -> str | None:
        """Why there are no verdicts."""
        ...


_REPEATING: Final = frozenset(
    {"completeness", "groundedness", *(m.name for m in CATALOGUE.values() if m.mean_of)}
)


def judgement_of(
    evaluation: Scored, *, chunk_ids: Sequence[str] = (), quotes: bool = True
) -> Judgement:
    """Return what an evaluation says of its record.

    A score is good from its threshold on. What is no fault of the answer is excused, unless the
    threshold is the user's: that it says more than a short ground truth, if the chunks support it
    and the ground truth does not contradict it; that the judge finds a fact in no chunk which the
    answer states, if the chunks support all of the answer. An answer that the ground truth
    contradicts is never good.

    Args:
        evaluation: The evaluation. It has the thresholds that differ from the catalogue's.
        chunk_ids: Ids of the chunks of its record, in their order; chunks are shown by their place
            without.
        quotes: Whether reasons quote claims, beside their counts.
    """
    truths = Truths(evaluation.matrices)  # one for all: it caches what metrics have in common
    evidence = Evidence(chunk_ids, quotes)
    found: list[Assessment] = []
    decides = False
    for name, value in evaluation.metrics.items():
        label = _label(name, value, evaluation, truths)
        may_be_low = _threshold(name, evaluation) is not None
        decides = decides or may_be_low
        reason = evaluation.explanations.get(name, "")
        if label == LOW or (label == NEUTRAL and may_be_low):
            reason = reason or reason_for(name, evaluation, truths, evidence)
            excuse = CATALOGUE[name].excuse if label == NEUTRAL else ""
            reason = f"{reason}; {excuse}" if reason and excuse else reason
        found.append(Assessment(name=name, value=value, label=label, explanation=reason))
    is_low = any(each.label == LOW for each in found)
    of_record: RecordLabel = "low" if is_low else "good" if decides else "unknown"
    judged = Judgement(label=of_record, scores=tuple(found), summary=_summary(found, evaluation))
    if evaluation.error is not None or not (found or evaluation.abstained):
        return judged
    diagnosis = diagnose(findings_of(evaluation, truths))
    if dropped := evaluation.claims_dropped:
        told = f"{dropped:,} more claim{'s were' if dropped > 1 else ' was'} not judged."
        diagnosis = replace(diagnosis, findings=(*diagnosis.findings, told))
    if of_record != LOW:
        # What falls short by less than its threshold is told, and blames no part.
        part = Part.NONE if of_record == GOOD else Part.UNKNOWN
        return replace(judged, part=part, findings=diagnosis.findings)
    part = diagnosis.part if diagnosis.part.is_bad else Part.UNKNOWN
    return replace(judged, part=part, findings=diagnosis.findings, doubts=diagnosis.doubts)


def _summary(scores: Sequence[Assessment], evaluation: Scored) -> str:
    low = [each for each in scores if each.label == LOW]
    if not low:
        return ""
    # What says again what another score says is not named beside it.
    others = ", ".join(each.named for each in low[1:] if each.name not in _REPEATING)
    declines = "the answer declines; " if evaluation.abstained else ""
    return f"{declines}{low[0]}" + (f" (also low: {others})" if others else "")


def _threshold(name: str, evaluation: Scored) -> float | None:
    known = CATALOGUE.get(name)
    return evaluation.thresholds.get(name, None if known is None else known.threshold)


def _label(name: str, value: float, evaluation: Scored, truths: Truths) -> str:
    limit = _threshold(name, evaluation)
    if limit is None:
        return NEUTRAL
    metric = CATALOGUE.get(name)
    lower = name in evaluation.lower_is_better if metric is None else metric.failure
    if metric is not None and _any_true(metric.never_good, truths):
        return LOW
    if not _is_beyond(value, limit, lower=lower):
        return GOOD
    if metric is None or name in evaluation.thresholds:
        return LOW
    if metric.mean_of:
        parts = [each for part in metric.mean_of if (each := _part_label(part, evaluation, truths))]
        return NEUTRAL if parts and LOW not in parts else LOW
    if metric.excused is None:
        return LOW
    try:
        excused = share(metric.excused(truths))
    except UndefinedMetricError:  # the verdicts that would excuse it were not asked for
        return LOW
    return LOW if _is_beyond(excused, limit, lower=lower) else NEUTRAL


def _part_label(name: str, evaluation: Scored, truths: Truths) -> str:
    """The label of a metric that a mean is made of; empty if it has no value."""
    value = evaluation.metrics.get(name)
    if value is None:
        try:
            value = CATALOGUE[name].value(truths)
        except UndefinedMetricError:
            return ""
    return _label(name, value, evaluation, truths)


def _any_true(values: Callable[[Truths], Sequence[Truth]] | None, truths: Truths) -> bool:
    try:
        return values is not None and any(values(truths))
    except UndefinedMetricError:
        return False


def _is_beyond(value: float, limit: float, *, lower: bool) -> bool:
    return value > limit + _ROUNDING if lower else value < limit - _ROUNDING


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
        metric.value(truths)
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
    if metric.name == "precision" and (n_denied := truths.denied.count(True)):
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
