"""The attributes that an evaluation turns into, apart from its claims."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import nlargest
from operator import itemgetter
from typing import Final

from opentelemetry.util.types import AttributeValue

from claimspan.evaluation.judgement import NEUTRAL, Judgement
from claimspan.metrics.truths import NO_GROUND_TRUTH
from claimspan_tracing import semconv
from claimspan_tracing.decide.sampling import Decision
from claimspan_tracing.job import Job, Outcome
from claimspan_tracing.text import clean, cut
from claimspan_tracing.write.limits import Attributes, present, text_attributes

__all__ = ["found_by_judge", "metric_scores", "sample_of"]

MAX_COUNTS: Final = 16
"""Notes of a judge, or reasons of undecided verdicts, on one span."""

MAX_COUNTED_BYTES: Final = 256
"""Bytes of one of them, as of the reason of a state; 4 KiB in all."""


def metric_scores(metrics: Mapping[str, float], names: Iterable[str] | None = None) -> Attributes:
    """Return the scores of some metrics, or of all, as doubles; an undefined one is absent."""
    wanted = metrics if names is None else [name for name in names if name in metrics]
    return {semconv.score(name): float(metrics[name]) for name in wanted}


def found_by_judge(job: Job, outcome: Outcome, judgement: Judgement) -> Attributes:
    """Return all that an evaluation has found, apart from its claims, the scores last.

    Empty and unknown values are absent: a span may have 110 attributes of ours.
    """
    evaluation, match = outcome.evaluation, outcome.ground_truth
    if evaluation is None:
        return {}
    usage, coverage = evaluation.usage, evaluation.context_coverage
    reasons = {each.name: each.explanation for each in judgement.scores}
    optional: dict[str, AttributeValue | None] = {
        semconv.EVALUATION_SUMMARY: judgement.summary or None,
        semconv.EVALUATION_FINDINGS: list(judgement.findings) or None,
        semconv.EVALUATION_DOUBTS: list(judgement.doubts) or None,
        semconv.SCORES_LOW: [each.name for each in judgement.low] or None,
        semconv.SCORES_NEUTRAL: [e.name for e in judgement.scores if e.label == NEUTRAL] or None,
        semconv.SCORES_LOWER_IS_BETTER: list(evaluation.lower_is_better) or None,
        **{semconv.reason(name): reasons[name] or None for name in evaluation.explanations},
        semconv.EVALUATION_LABEL: judgement.label,
        semconv.EVALUATION_BLAME: judgement.part.value,
        semconv.JUDGE_NOTES: _counts(evaluation.notes) or None,
        semconv.EVALUATION_UNDECIDED: _counts(evaluation.undecided) or None,
        semconv.INJECTION_SUSPECTED: list(evaluation.injection_suspected) or None,
        semconv.CLAIMS_CONFLICTING: evaluation.matrices.conflicting_claims or None,
        semconv.CLAIMS_DROPPED: evaluation.claims_dropped or None,
        semconv.JUDGE_SCORE_MODE: evaluation.score_mode or None,
        semconv.CONTEXT_COVERAGE: None if coverage is None else coverage.combined_or,
        semconv.CLAIMS_RESPONSE: len(evaluation.response_claims),
        semconv.CLAIMS_GROUND_TRUTH: len(evaluation.ground_truth_claims),
        semconv.CLAIMS_UNKNOWN: evaluation.undecided_claims,
        semconv.JUDGE_NAME: evaluation.judge_name,
        semconv.JUDGE_VERSION: evaluation.judge_version,
        semconv.JUDGE_CALLS: usage.calls,
        semconv.JUDGE_TOKENS_INPUT: usage.input_tokens,
        semconv.JUDGE_TOKENS_OUTPUT: usage.output_tokens,
        semconv.JUDGE_COST: usage.cost_usd,
        semconv.JUDGE_SECONDS: usage.seconds,
        semconv.EVALUATION_UNDEFINED: _undefined(evaluation.undefined),
        semconv.GROUND_TRUTH_SCORE: None if match is None else match.score,
        semconv.GROUND_TRUTH_MATCHED_BY: None if match is None else match.matched_by,
        semconv.REDACTION_FAILED: (job.redaction_failed + outcome.redaction_failed) or None,
    }
    text = {} if match is None else text_attributes({semconv.GROUND_TRUTH: match.text})
    return present(optional) | text | metric_scores(evaluation.metrics)


def sample_of(decision: Decision) -> Attributes:
    """Return the decision about a record: rate, weight and reason."""
    return {
        semconv.SAMPLE_RATE: decision.rate,
        semconv.SAMPLE_WEIGHT: decision.weight,
        semconv.SAMPLE_REASON: clean(decision.reason),
    }


def _undefined(undefined: Mapping[str, str]) -> list[str]:
    """One entry a reason: ``metric, metric: reason``.

    The reason that there is no ground truth stands alone. It holds for most metrics, and all those
    that are missing without an entry of their own are meant.
    """
    metrics: dict[str, list[str]] = {}
    for metric, reason in undefined.items():
        metrics.setdefault(reason, []).append(metric)
    return [
        reason if reason == NO_GROUND_TRUTH else f"{', '.join(names)}: {reason}"
        for reason, names in metrics.items()
    ]


def _counts(counts: Mapping[str, int]) -> list[str]:
    """The most frequent ones; they are a judge's own words, of which there may be any number."""
    most = nlargest(MAX_COUNTS, counts.items(), key=itemgetter(1))
    return [f"{cut(clean(name), MAX_COUNTED_BYTES)}: {count}" for name, count in most]
