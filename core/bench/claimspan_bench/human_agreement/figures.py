"""How far a judge and people agree on which answers are right."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict

from claimspan.errors import ConfigError, JudgeError
from claimspan.statistics import Estimate, bootstrap, mean_estimate, spearman
from claimspan.text.percentages import percent_hint
from claimspan_bench.human_agreement.graded import Grade, GradedAnswer
from claimspan_bench.human_agreement.judged import METRIC, JudgedAnswer
from claimspan_bench.human_agreement.split import (
    best_threshold,
    question_parts,
    score_auroc,
)

__all__ = [
    "PUBLISHED",
    "HumanAgreement",
    "Rates",
    "SystemStanding",
    "check_options",
    "measure_human_agreement",
]

PUBLISHED: Final = {
    "RAGAS groundedness with answer relevancy": 0.94,
    "fact matching with GPT-4o": 0.027,
}
"""False-positive rates of the article by Pinecone on FinanceBench's graded answers."""

VERDICTS: Final = ("right", "wrong", "abstained")
"""What the judge makes of an answer."""

# Fewer than elsewhere, since each one ranks all scores again.
_AUROC_RESAMPLES: Final = 500


class Rates(BaseModel):
    """The errors of a judge, each with its interval; resampled by question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    false_positives: Estimate | None
    """Share of the answers that people do not call right and the judge does; wrong or refusal."""

    false_positives_incorrect: Estimate | None
    """Likewise, of the answers that people call wrong."""

    false_positives_refusal: Estimate | None
    """Likewise, of the answers that people call refusals."""

    false_negatives: Estimate | None
    """Share of the right answers that the judge does not call right."""

    accuracy: Estimate | None
    """Share of the answers that judge and people agree on, as right or not."""

    balanced_accuracy: float
    """1 less the mean of both error rates."""


class SystemStanding(BaseModel):
    """One system, by people and by the judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    """Model and mode."""

    n: int
    """Its answers."""

    people: float
    """Share that people call right."""

    judge: float
    """Share that the judge calls right."""


class HumanAgreement(BaseModel):
    """The agreement of one judge with people."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    """Name of the judge."""

    metric: str
    """The metric that the threshold is on."""

    threshold: float
    """From here on an answer counts as right."""

    threshold_chosen: bool
    """Whether it was chosen on the other half of the questions; False where it was given."""

    seed: int
    """Seed of the split."""

    answers: int
    """Answers that are reported."""

    failed: int
    """Answers of the whole file on which the judge failed; they are in no figure."""

    questions: int
    """Questions that they answer."""

    rates: Rates
    """The errors."""

    auroc: Estimate | None
    """Of the metric, for right against other answers; None where there are only ones of a kind."""

    confusion: Mapping[str, Mapping[str, int]]
    """People's grade to the judge's verdict (right, wrong, abstained) to answers."""

    undefined: Mapping[str, int]
    """Why the metric has no value, to answers of the whole file; they count as not right."""

    undefined_share: float
    """Share of all answers of the file that have no value."""

    spearman: float | None
    """Rank correlation of both columns of ``systems``; None where a column is constant."""

    systems: tuple[SystemStanding, ...]
    """The systems, the best by people first."""

    folds: int
    """Parts of the cross-fitting; 0 where there was none."""

    cross_fitted: Rates | None
    """Errors over all answers, each by a threshold of the other parts; None without folds. The
    probabilities of the value check come from FinanceBench's answers that ``rates`` leaves out by
    seed 0: for that data ``rates`` with seed 0 is the figure to report, and this a second reading.
    """


def measure_human_agreement(
    judged: Sequence[JudgedAnswer],
    judge: str,
    *,
    metric: str = METRIC,
    threshold: float | None = None,
    folds: int = 0,
    seed: int = 0,
) -> HumanAgreement:
    """Measure how far a judge and people agree.

    Args:
        judged: All answers. One half of their questions chooses the threshold, and the other half
            is reported, whether the threshold is chosen or given.
        judge: Name of the judge.
        metric: The metric behind the scores.
        threshold: A fixed threshold; None chooses one.
        folds: Parts for cross-fitting as a second reading, at least 2; 0 for none.
        seed: Seed of the split.

    Raises:
        ConfigError: As in ``check_options``.
        JudgeError: The judge failed on every answer that would be reported.
        MissingExtraError: scipy is not installed.
    """
    check_options([each.answer for each in judged], threshold=threshold, folds=folds)
    halves = question_parts((each.answer.question for each in judged), 2, seed)
    # To count a failure as "not right" would make the judge look the safer the more it fails.
    decided = [each for each in judged if not each.failed]
    tune, test = ([each for each in decided if halves[each.answer.question] == i] for i in (0, 1))
    if not test:
        raise JudgeError("the judge failed on every answer that would be reported")
    used = best_threshold(tune) if threshold is None else threshold
    systems = _standings(test, used)
    reasons = Counter(each.undefined for each in judged if each.undefined is not None)
    return HumanAgreement(
        judge=judge,
        metric=metric,
        threshold=used,
        threshold_chosen=threshold is None,
        seed=seed,
        answers=len(test),
        failed=len(judged) - len(decided),
        questions=len({each.answer.question for each in test}),
        rates=_rates(test, [each.is_positive(used) for each in test]),
        auroc=_auroc(test),
        confusion=_confusion(test, used),
        undefined=dict(reasons),
        undefined_share=reasons.total() / len(judged),
        spearman=spearman([each.people for each in systems], [each.judge for each in systems]),
        systems=tuple(systems),
        folds=folds,
        cross_fitted=_cross_fitted(decided, threshold, folds, seed) if folds else None,
    )


def check_options(
    answers: Sequence[GradedAnswer], *, threshold: float | None = None, folds: int = 0
) -> None:
    """Refuse what cannot be measured, before a judge is paid for it.

    Args:
        answers: The graded answers.
        threshold: As for ``measure_human_agreement``.
        folds: As for ``measure_human_agreement``.

    Raises:
        ConfigError: ``threshold`` is not above 0 and at most 1, ``folds`` is 1 or negative, or
            there are too few questions.
    """
    # From 0 on every answer would be right, also one that declines, since it has 0.
    if threshold is not None and not 0 < threshold <= 1:
        hint = percent_hint(threshold)
        raise ConfigError(f"threshold is {threshold!r}: give one above 0 and at most 1{hint}")
    if folds < 0 or folds == 1:
        raise ConfigError(f"folds is {folds!r}: give 2 or more, or 0 for none")
    question_parts((each.question for each in answers), max(2, folds), 0)


def _rates(answers: Sequence[JudgedAnswer], positive: Sequence[bool]) -> Rates:
    def share(wanted: Callable[[JudgedAnswer], bool], hit: bool) -> Estimate | None:
        chosen = [(a, p) for a, p in zip(answers, positive, strict=True) if wanted(a)]
        values = [float(p is hit) for _, p in chosen]
        return mean_estimate(values, [a.answer.question for a, _ in chosen])

    agreed = [float(a.is_correct is p) for a, p in zip(answers, positive, strict=True)]
    wrong = share(lambda each: not each.is_correct, hit=True)
    missed = share(lambda each: each.is_correct, hit=False)
    errors = [each.value for each in (wrong, missed) if each is not None]
    return Rates(
        false_positives=wrong,
        false_positives_incorrect=share(lambda a: a.answer.grade is Grade.INCORRECT, hit=True),
        false_positives_refusal=share(lambda a: a.answer.grade is Grade.REFUSAL, hit=True),
        false_negatives=missed,
        accuracy=mean_estimate(agreed, [each.answer.question for each in answers]),
        balanced_accuracy=1 - sum(errors) / len(errors),
    )


def _cross_fitted(
    judged: Sequence[JudgedAnswer], threshold: float | None, folds: int, seed: int
) -> Rates:
    """The errors over all answers, where no threshold was chosen on the question it decides."""
    questions = [each.answer.question for each in judged]
    parts = question_parts(questions, min(folds, len(set(questions))), seed)
    thresholds = {
        part: best_threshold([each for each in judged if parts[each.answer.question] != part])
        if threshold is None
        else threshold
        for part in range(folds)
    }
    positive = [each.is_positive(thresholds[parts[each.answer.question]]) for each in judged]
    return _rates(judged, positive)


def _auroc(answers: Sequence[JudgedAnswer]) -> Estimate | None:
    if score_auroc(answers) is None:
        return None

    def drawn(rows: Sequence[int]) -> float:
        # A sample without right answers, or without others, tells nothing.
        found = score_auroc([answers[row] for row in rows])
        return 0.5 if found is None else found

    groups = [each.answer.question for each in answers]
    return bootstrap(drawn, len(answers), groups=groups, resamples=_AUROC_RESAMPLES)


def _confusion(answers: Sequence[JudgedAnswer], threshold: float) -> dict[str, dict[str, int]]:
    counts = Counter((each.answer.grade, _verdict(each, threshold)) for each in answers)
    return {
        grade.value: {verdict: counts[grade, verdict] for verdict in VERDICTS} for grade in Grade
    }


def _verdict(answer: JudgedAnswer, threshold: float) -> str:
    if answer.is_positive(threshold):
        return "right"
    return "abstained" if answer.abstained else "wrong"


def _standings(answers: Sequence[JudgedAnswer], threshold: float) -> list[SystemStanding]:
    by_system: dict[str, list[JudgedAnswer]] = defaultdict(list)
    for each in answers:
        by_system[each.answer.system].append(each)
    found = [
        SystemStanding(
            system=system,
            n=len(some),
            people=sum(each.is_correct for each in some) / len(some),
            judge=sum(each.is_positive(threshold) for each in some) / len(some),
        )
        for system, some in by_system.items()
    ]
    return sorted(found, key=lambda each: (-each.people, each.system))
