"""``claimspan bench human-agreement``: whether an answer that a judge calls right is right.

FinanceBench (arXiv 2311.11944) has answers of many systems to one set of questions, each graded by
people. They are evaluated as the product evaluates any record. One half of the questions chooses
the threshold from which an answer is called right, and the other half says how far judge and people
agree.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, Self

import typer
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, field_validator

from claimspan.cli.options import JudgeNames, JudgeOptions, judges_from
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.evaluation.evaluate import CONCURRENCY
from claimspan.files.jsonl import parse_json_lines, read_text
from claimspan.files.names import TextOrScalar
from claimspan.judges.protocol import Judge
from claimspan.meta_evaluation.agreement import auroc
from claimspan.metrics.catalogue import CATALOGUE
from claimspan.records import RagRecord
from claimspan.statistics import Estimate, mean_estimate
from claimspan.text.percentages import in_percent, percent_hint
from claimspan.text.visible import visible
from claimspan_bench.resumed import evaluate_resumed, results_of_judge
from claimspan_bench.shown import (
    SOME_FAILED,
    AsJson,
    Concurrency,
    Markdown,
    Progress,
    Table,
    aligned,
    interval,
    piped,
    refuse_both,
    validated,
)
from claimspan_bench.statistics import bootstrap, spearman

__all__ = [
    "PUBLISHED",
    "Grade",
    "GradedAnswer",
    "HumanAgreement",
    "JudgedAnswer",
    "ajudge_graded",
    "best_threshold",
    "human_agreement",
    "measure_human_agreement",
    "question_parts",
    "read_graded",
]

METRIC: Final = "alignment"
"""The figure whose verdict on an answer is compared with people's."""

PUBLISHED: Final = {
    "RAGAS groundedness with answer relevancy": 0.94,
    "fact matching with GPT-4o": 0.027,
}
"""False-positive rates of the article by Pinecone on FinanceBench's graded answers."""

VERDICTS: Final = ("right", "wrong", "abstained")
"""What the judge makes of an answer."""

# Fewer than elsewhere, since each one ranks all scores again.
_AUROC_RESAMPLES: Final = 500

_WANTED: Final = "JSON-lines file of graded answers"
_USUAL_NAME: Final = "human_labeled_answers.jsonl"
"""The file that is read of a folder, where it has one of this name."""

_MAX_REASONS: Final = 5


# --- the graded answers ---


class Grade(StrEnum):
    """What people say of an answer."""

    CORRECT = "correct"
    """It is right."""

    INCORRECT = "incorrect"
    """It is wrong."""

    REFUSAL = "refusal"
    """It declines to answer."""

    @classmethod
    def parse(cls, spelling: str) -> Self:
        """Parse a grade, in FinanceBench's spelling (``Correct Answer``) or in ours.

        Raises:
            ValueError: The spelling is no grade.
        """
        return cls(spelling.strip().lower().removesuffix(" answer"))


class GradedAnswer(BaseModel):
    """One system's answer to one question, with the right answer and the grade."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())

    question: str = Field(min_length=1)
    """The question; answers to it are never on both sides of a split."""

    ground_truth: Annotated[TextOrScalar, Field(min_length=1)] = Field(
        validation_alias=AliasChoices("gold_answer", "ground_truth", "answer")
    )
    """The right answer; a number of the file stands here as a text."""

    response: TextOrScalar = Field(validation_alias=AliasChoices("model_answer", "response"))
    """What the system has answered, likewise; may be empty."""

    grade: Grade = Field(validation_alias=AliasChoices("label", "grade"))
    model: str = Field(default="", validation_alias=AliasChoices("model_name", "model", "system"))

    mode: str = Field(default="", validation_alias=AliasChoices("eval_mode", "mode"))
    """How the model was used, such as with which retrieval."""

    id: str | None = Field(default=None, validation_alias=AliasChoices("financebench_id", "id"))
    """The id of the question; None where the file gives none."""

    @field_validator("response", mode="before")
    @classmethod
    def _never_null(cls, value: object) -> object:
        return "" if value is None else value

    @field_validator("grade", mode="before")
    @classmethod
    def _in_any_spelling(cls, value: object) -> object:
        return Grade.parse(value) if isinstance(value, str) else value

    @property
    def system(self) -> str:
        """Model and mode: what people's grades rank."""
        return " ".join(filter(None, (self.model, self.mode))) or "(unnamed)"

    @property
    def record(self) -> RagRecord:
        """The answer as a record: with its question and the right answer, without chunks."""
        return RagRecord(
            id=self.id,
            query=self.question,
            response=self.response,
            ground_truth=self.ground_truth,
            metadata={"system": self.system, "grade": self.grade.value},
        )


def read_graded(paths: Iterable[Path]) -> list[GradedAnswer]:
    """Read graded answers.

    Args:
        paths: Files of JSON lines, or folders. Of a folder ``human_labeled_answers.jsonl`` is read,
            or else every file that ends in ``.jsonl``.

    Returns:
        The answers, in the order of the files.

    Raises:
        FileError: A file cannot be read, or a line is no graded answer; names the line.
    """
    wanted = (
        "a graded answer has question, gold_answer, model_answer, model_name, and a label: "
        "Correct Answer, Incorrect Answer or Refusal"
    )
    answers: list[GradedAnswer] = []
    for path in paths:
        # FinanceBench's folder has other JSON lines beside the graded answers.
        usual = path / _USUAL_NAME
        files = [path]
        if path.is_dir():
            files = [usual] if usual.exists() else sorted(path.glob("*.jsonl"))
        for file in files:
            text = read_text(file, wanted=_WANTED)
            answers += [
                validated(GradedAnswer, row, f"{str(file)!r} line {number}", wanted)
                for number, row in parse_json_lines(text, file, wanted="one graded answer")
            ]
    if not answers:
        given = ", ".join(repr(str(path)) for path in paths)
        raise FileError(f"no graded answers were found in {given}: give a {_WANTED}")
    return answers


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A graded answer, and what the judge makes of it."""

    answer: GradedAnswer

    score: float
    """The metric; 0 where it is undefined or the answer declines, since neither is a positive."""

    abstained: bool
    """Whether the product takes the answer for one that declines."""

    undefined: str | None = None
    """Why the metric has no value; None where it has one."""

    failed: bool = False
    """Whether the judge failed; then nothing is known of what it makes of the answer."""

    @property
    def is_correct(self) -> bool:
        """Whether people call the answer right; a refusal is not."""
        return self.answer.grade is Grade.CORRECT

    def is_positive(self, threshold: float) -> bool:
        """Whether the judge calls the answer right."""
        return self.score >= threshold


async def ajudge_graded(
    answers: Sequence[GradedAnswer],
    judge: Judge,
    *,
    metric: str = METRIC,
    results: Path | None = None,
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
) -> list[JudgedAnswer]:
    """Evaluate graded answers, with the right answer as ground truth and with the question.

    Args:
        answers: The answers.
        judge: The judge.
        metric: The metric to compare with people.
        results: File of results; what it holds already is not evaluated again. None keeps nothing.
        concurrency: Answers under evaluation at once.
        progress: As in ``evaluate_many``.

    Returns:
        One judged answer for each, in order.

    Raises:
        JudgeError: The judge failed on every answer; quotes the first reason.
        ConfigError: As in ``evaluate_resumed``.
    """
    done = await evaluate_resumed(
        [each.record for each in answers],
        judge,
        results=results,
        concurrency=concurrency,
        progress=progress,
    )
    # A wrong key or address fails everywhere: that is an error, and no finding about the judge.
    if done and all(each.error is not None for each in done):
        raise JudgeError(f"the judge failed on every answer: {done[0].error}")
    judged: list[JudgedAnswer] = []
    for answer, found in zip(answers, done, strict=True):
        value = found.metrics.get(metric)
        reason = found.error or found.undefined.get(metric, "the judge has no such score")
        judged.append(
            JudgedAnswer(
                answer=answer,
                score=0.0 if value is None or found.abstained else value,
                abstained=found.abstained,
                undefined=reason if value is None else None,
                failed=found.error is not None,
            )
        )
    return judged


# --- the threshold ---


def question_parts(questions: Iterable[str], parts: int, seed: int) -> dict[str, int]:
    """Distribute questions over parts of about the same size.

    Args:
        questions: Questions, in any order and as often as they come.
        parts: Number of parts.
        seed: Another seed gives other parts; the same one gives the same parts everywhere.

    Returns:
        Question to the number of its part, from 0.

    Raises:
        ConfigError: There are fewer questions than parts.
    """
    # Sorted, so that the split does not depend on the order of rows and files.
    distinct = sorted(set(questions))
    if len(distinct) < parts:
        raise ConfigError(
            f"{len(distinct)} questions cannot be split into {parts} parts: give more answers"
        )
    random.Random(seed).shuffle(distinct)  # noqa: S311 - no secret
    return {question: place * parts // len(distinct) for place, question in enumerate(distinct)}


def best_threshold(answers: Sequence[JudgedAnswer]) -> float:
    """Return the score from which an answer counts as right, by balanced accuracy.

    Args:
        answers: The answers to choose on; never those that are reported.

    Returns:
        The best of the scores that occur above 0; of equally good ones the highest, which calls
        fewest wrong answers right.
    """
    # Between two scores that occur no verdict changes; from 0 on every answer would be right.
    candidates = sorted({each.score for each in answers if each.score > 0}) or [1.0]
    return max(candidates, key=lambda threshold: (balanced_accuracy(answers, threshold), threshold))


def balanced_accuracy(answers: Sequence[JudgedAnswer], threshold: float) -> float:
    """Return the mean of the shares of right and of other answers that are called so.

    Where there are only answers of one kind, it is the share of these.
    """
    shares = [
        sum(each.is_positive(threshold) is is_correct for each in some) / len(some)
        for is_correct in (True, False)
        if (some := [each for each in answers if each.is_correct is is_correct])
    ]
    return sum(shares) / len(shares) if shares else 0.0


# --- how far judge and people agree ---


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
    accuracy: Estimate | None

    balanced_accuracy: float
    """1 less the mean of both error rates."""


class SystemStanding(BaseModel):
    """One system with its number of answers, by people and by the judge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    system: str
    n: int
    people: float
    judge: float


class HumanAgreement(BaseModel):
    """The agreement of one judge with people."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    judge: str
    metric: str
    threshold: float
    """From here on an answer counts as right."""

    threshold_chosen: bool
    """Whether it was chosen on the other half of the questions; False where it was given."""

    seed: int

    answers: int
    """Answers that are reported."""

    failed: int
    """Answers of the whole file on which the judge failed; they are in no figure."""

    questions: int
    rates: Rates

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
        ConfigError: As in ``_check_options``.
        JudgeError: The judge failed on every answer that would be reported.
    """
    _check_options([each.answer for each in judged], threshold=threshold, folds=folds)
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


def _check_options(
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
    def found(rows: Sequence[int]) -> float | None:
        some = [answers[row] for row in rows]
        return auroc([each.score for each in some], [each.is_correct for each in some])

    def drawn(rows: Sequence[int]) -> float:
        # A sample without right answers, or without others, tells nothing.
        value = found(rows)
        return 0.5 if value is None else value

    if found(range(len(answers))) is None:
        return None
    groups = [each.answer.question for each in answers]
    return bootstrap(drawn, len(answers), groups=groups, resamples=_AUROC_RESAMPLES)


def _confusion(answers: Sequence[JudgedAnswer], threshold: float) -> dict[str, dict[str, int]]:
    counts: Counter[tuple[Grade, str]] = Counter()
    for each in answers:
        declined = "abstained" if each.abstained else "wrong"
        verdict = "right" if each.is_positive(threshold) else declined
        counts[each.answer.grade, verdict] += 1
    return {
        grade.value: {verdict: counts[grade, verdict] for verdict in VERDICTS} for grade in Grade
    }


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


# --- the command ---


def human_agreement(
    files: Annotated[
        list[Path],
        typer.Argument(help="FinanceBench's graded answers: a folder, or JSON-lines files."),
    ],
    judges: JudgeNames = None,
    judge_options: JudgeOptions = None,
    metric: Annotated[
        str, typer.Option(help="The metric that an answer is called right by.")
    ] = METRIC,
    threshold: Annotated[
        float | None,
        typer.Option(help="A fixed threshold; by default one half of the questions chooses it."),
    ] = None,
    folds: Annotated[
        int, typer.Option(help="Parts for cross-fitting as a second reading; 0: none.", min=0)
    ] = 5,
    seed: Annotated[int, typer.Option(help="Seed of the split by question.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder for what is evaluated, a file for each judge. A run goes on with it.",
        ),
    ] = None,
    concurrency: Concurrency = CONCURRENCY,
    progress: Progress = None,
    markdown: Markdown = False,
    as_json: AsJson = False,
) -> None:
    """Compare which answers a judge calls right with people's grades.

    An answer is called right where its metric reaches a threshold. The threshold is chosen on one
    half of the questions, and the errors are measured on the other half. Without --judge that of
    lexical is measured. Exits with 1 where a judge failed on some answers.
    """
    usable = [name for name, each in CATALOGUE.items() if each.lower_is_better is False]
    if metric not in usable:
        raise ConfigError(
            f"{metric!r} is no metric that is high for a right answer: give one of "
            f"{', '.join(usable)}"
        )
    refuse_both(markdown, as_json)
    answers = read_graded(files)
    _check_options(answers, threshold=threshold, folds=folds)
    found: list[HumanAgreement] = []
    for name, judge in judges_from(judges or ["lexical"], judge_options).items():
        judged = asyncio.run(
            ajudge_graded(
                answers,
                judge,
                metric=metric,
                results=results_of_judge(output, name),
                concurrency=concurrency,
                progress=progress,
            )
        )
        found.append(
            measure_human_agreement(
                judged, name, metric=metric, threshold=threshold, folds=folds, seed=seed
            )
        )
    if as_json:
        result = {
            "answers": len(answers),
            "judges": [each.model_dump(mode="json") for each in found],
            "published_false_positives": PUBLISHED,
        }
        typer.echo(json.dumps(result))
    else:
        typer.echo(visible(_shown(found, markdown=markdown)))
    if any(each.failed for each in found):
        raise typer.Exit(SOME_FAILED)


def _shown(found: Sequence[HumanAgreement], *, markdown: bool) -> str:
    """What each judge has found, and a table of all: first in Markdown, last in a terminal."""
    table = piped if markdown else aligned
    heads = ["judge", "false positives", "false negatives", "AUROC"]
    rates = [
        [each.judge, *map(interval, (each.rates.false_positives, each.rates.false_negatives))]
        for each in found
    ]
    ours = [[*row, interval(each.auroc)] for row, each in zip(rates, found, strict=True)]
    theirs = [[f"published: {name}", f"{rate:g}", "-", "-"] for name, rate in PUBLISHED.items()]
    comparison = [
        table([heads, *ours, *theirs]),
        "Published figures: Pinecone's article on the same kind of grades, measured with other "
        "judges, another threshold, and not on this half of the questions.",
    ]
    parts: list[str] = []
    for each in found:
        parts += [f"## {each.judge}"] if markdown else []
        parts += [_summary(each), table(_rates_table(each))]
        parts += [] if markdown else ["people \\ judge"]
        parts += [table(_confusion_table(each)), table(_systems_table(each)), _undefined(each)]
    title = ["# Agreement with people on graded answers"]
    return "\n\n".join([*title, *comparison, *parts] if markdown else [*parts, *comparison])


def _summary(found: HumanAgreement) -> str:
    origin = "chosen on the other questions" if found.threshold_chosen else "given"
    spearman = "-" if found.spearman is None else f"{found.spearman:.3f}"
    lines = [
        f"{found.judge}: {found.answers:,} answers to {found.questions} questions (seed "
        f"{found.seed})",
        f"an answer is called right from {found.metric} {found.threshold:.3f} ({origin})",
        f"AUROC {interval(found.auroc)}; ranking of {len(found.systems)} systems against "
        f"people's: Spearman {spearman}",
    ]
    if found.failed:
        lines.append(f"the judge failed on {found.failed:,} answers; they are in no figure")
    return "\n".join(lines)


def _rates_table(found: HumanAgreement) -> Table:
    columns = {"held-out half": found.rates}
    if found.cross_fitted is not None:
        columns[f"{found.folds} folds, all answers"] = found.cross_fitted
    rows: dict[str, Callable[[Rates], Estimate | None]] = {
        "false positives": lambda each: each.false_positives,
        "  of wrong answers": lambda each: each.false_positives_incorrect,
        "  of refusals": lambda each: each.false_positives_refusal,
        "false negatives": lambda each: each.false_negatives,
        "accuracy": lambda each: each.accuracy,
    }
    balanced = [f"{rates.balanced_accuracy:.3f}" for rates in columns.values()]
    return [
        ["", *columns],
        *(
            [name, *(interval(of(rates)) for rates in columns.values())]
            for name, of in rows.items()
        ),
        ["balanced accuracy", *balanced],
    ]


def _confusion_table(found: HumanAgreement) -> Table:
    rows = [[grade, *map(str, row.values())] for grade, row in found.confusion.items()]
    return [["people say", *(f"judge: {each}" for each in VERDICTS)], *rows]


def _systems_table(found: HumanAgreement) -> Table:
    rows = [
        [each.system, str(each.n), f"{each.people:.3f}", f"{each.judge:.3f}"]
        for each in found.systems
    ]
    return [["system", "answers", "right by people", "by judge"], *rows]


def _undefined(found: HumanAgreement) -> str:
    lines = [f"{found.metric} undefined: {in_percent(found.undefined_share)} of all answers"]
    reasons = Counter(found.undefined).most_common()
    lines += [f"  {n:,}: {reason}" for reason, n in reasons[:_MAX_REASONS]]
    if len(reasons) > _MAX_REASONS:
        lines.append(f"  and {len(reasons) - _MAX_REASONS} more reasons")
    return "\n".join(lines)
