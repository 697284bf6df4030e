"""Claims that people have labelled, what a judge decides about them, and how far the two agree."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.files.jsonl import parse_json_lines, read_text
from claimspan.judges.protocol import Judge
from claimspan.metrics.means import probability
from claimspan.progress import progress_bar
from claimspan.statistics import bootstrap_figures
from claimspan.verdicts import Claim, Label

__all__ = [
    "LETTERS",
    "Agreement",
    "ClassAgreement",
    "HumanLabel",
    "JudgedClaim",
    "LabelledClaim",
    "auroc",
    "comparable",
    "judge_labelled",
    "measure_agreement",
    "read_labelled",
]

RESAMPLES: Final = 500
"""Bootstrap samples; enough for the second decimal of an interval."""


class ClassAgreement(BaseModel):
    """Agreement on one label."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int
    precision: float | None
    """Share of the judge's claims of this label that people gave it to; None if it has none."""

    recall: float | None
    """Share of people's claims of this label that the judge gave it to; None if none has it."""


class Agreement(BaseModel):
    """Agreement of a judge with people on labelled claims; undecided ones are left out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    n: int
    undecided: int
    accuracy: float
    """Share of claims with the same label; of two labels if people gave only E and NE."""

    balanced_accuracy: float
    """Mean recall over the labels that people gave."""

    auroc: float | None
    """Of p(entailed), for entailed against the rest; None if people gave only one of them."""

    kappa: float | None
    """Cohen's kappa; None if the agreement expected by chance is 1."""

    classes: Mapping[str, ClassAgreement]
    confusion: Mapping[str, Mapping[str, int]]
    """People's label to the judge's label to the number of claims."""

    intervals: Mapping[str, tuple[float, float]]
    """95 % bootstrap intervals of the four figures, with claims resampled one by one."""


def measure_agreement(judged: Sequence[JudgedClaim], *, resamples: int = RESAMPLES) -> Agreement:
    """Measure the agreement of a judge with people.

    If any claim is labelled NE, neutral and contradicted count as one label on both sides.

    Raises:
        ConfigError: The judge decided no claim.
    """
    humans: list[HumanLabel] = [claim.human_label for claim in judged]
    pairs = comparable(humans, [claim.judge_label for claim in judged])
    if not pairs:
        raise ConfigError("the judge decided no claim: there is no agreement to measure")
    entailed = [claim.entailed or 0.0 for claim in judged if claim.judge_label is not None]

    def figures(rows: Sequence[int]) -> dict[str, float | None]:
        return _figures([pairs[row] for row in rows], [entailed[row] for row in rows])

    def of_class(label: str) -> ClassAgreement:
        by_human = sum(human == label for human, _ in pairs)
        by_judge = sum(judge == label for _, judge in pairs)
        by_both = counts[label, label]
        return ClassAgreement(
            n=by_human,
            precision=by_both / by_judge if by_judge else None,
            recall=by_both / by_human if by_human else None,
        )

    labels = ("E", "NE") if "NE" in humans else ("E", "N", "C")
    counts = Counter(pairs)
    whole = figures(range(len(pairs)))
    return Agreement(
        n=len(pairs),
        undecided=len(judged) - len(pairs),
        accuracy=whole["accuracy"] or 0.0,
        balanced_accuracy=whole["balanced_accuracy"] or 0.0,
        auroc=whole["auroc"],
        kappa=whole["kappa"],
        classes={label: of_class(label) for label in labels},
        confusion={human: {judge: counts[human, judge] for judge in labels} for human in labels},
        intervals={
            name: (found.low, found.high)
            for name, found in bootstrap_figures(figures, len(pairs), resamples=resamples).items()
        },
    )


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float | None:
    """Probability that a positive scores above a negative; ties count one half.

    Returns:
        The area under the ROC curve; None if there are no positives or no negatives.
    """
    wins, negatives = 0.0, 0
    pairs = sorted(zip(scores, positive, strict=True))
    for _, tied in groupby(pairs, key=lambda pair: pair[0]):
        are_positive = [is_positive for _, is_positive in tied]
        n_positive = sum(are_positive)
        n_negative = len(are_positive) - n_positive
        wins += n_positive * (negatives + n_negative / 2)
        negatives += n_negative
    positives = len(pairs) - negatives
    return wins / (negatives * positives) if negatives and positives else None


def _figures(
    pairs: Sequence[tuple[str, str]], entailed: Sequence[float]
) -> dict[str, float | None]:
    n = len(pairs)
    human, judge = Counter(by for by, _ in pairs), Counter(by for _, by in pairs)
    same = Counter(by_human for by_human, by_judge in pairs if by_human == by_judge)
    accuracy = same.total() / n
    chance = sum(human[label] * judge[label] for label in human) / n**2
    return {
        "accuracy": accuracy,
        "balanced_accuracy": sum(same[label] / human[label] for label in human) / len(human),
        "auroc": auroc(entailed, [by_human == "E" for by_human, _ in pairs]),
        "kappa": (accuracy - chance) / (1 - chance) if chance < 1 else None,
    }


HumanLabel = Literal["E", "N", "C", "NE"]
"""Entailed, neutral, contradicted; or not entailed, if people did not say which of the two."""

LETTERS: Final[Mapping[Label, HumanLabel]] = {
    Label.ENTAILED: "E",
    Label.NEUTRAL: "N",
    Label.CONTRADICTED: "C",
}
"""Label of a judge to that of people."""

CONCURRENCY: Final = 8


class LabelledClaim(BaseModel):
    """A claim, its premises, and the label that people gave it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    premises: tuple[str, ...] = Field(min_length=1)
    claim: str = Field(min_length=1)
    label: HumanLabel
    question: str | None = None
    """The question behind claim and premises; None if unknown."""


class JudgedClaim(NamedTuple):
    """The label that people gave a claim, and the one that a judge gave it."""

    human_label: HumanLabel
    judge_label: Label | None
    """The judge's label over all premises; None if it failed or left the claim undecided."""

    entailed: float | None
    """The judge's highest p(entailed) over the premises; 1 or 0 by label if it has none."""

    has_probabilities: bool = True
    """Whether every verdict behind ``entailed`` came with probabilities."""


def read_labelled(path: str | Path) -> list[LabelledClaim]:
    """Read JSON lines with ``id``, ``premises``, ``claim`` and ``label`` (E, N, C or NE).

    Raises:
        FileError: The file cannot be read, holds no claim, or a line lacks a field; names the line.
    """
    path = Path(path)
    text = read_text(path, wanted="JSON-lines file of labelled claims")
    rows = parse_json_lines(text, path, wanted="one labelled claim")
    claims: list[LabelledClaim] = []
    for number, row in rows:
        try:
            claims.append(LabelledClaim.model_validate(row))
        except ValidationError:
            # Without the cause: a validation error quotes the input, which may be private.
            raise FileError(
                f"{str(path)!r} line {number} needs id, premises (a list of at least one), claim, "
                "and a label out of E, N, C, NE"
            ) from None
    if not claims:
        raise FileError(f"{str(path)!r} holds no labelled claims: write one JSON object a line")
    return claims


def comparable(
    people: Sequence[HumanLabel], judge: Sequence[Label | None]
) -> list[tuple[str, str]]:
    """Return the labels of people beside those of a judge, in letters that can be compared.

    Some people only say "not entailed": if any label is NE, neutral and contradicted count as one
    label on both sides. Undecided verdicts are left out.
    """
    is_binary = "NE" in people

    def letter(label: HumanLabel) -> str:
        return "NE" if is_binary and label != "E" else label

    pairs = zip(people, judge, strict=True)
    return [(letter(human), letter(LETTERS[label])) for human, label in pairs if label is not None]


async def judge_labelled(
    judge: Judge,
    claims: Sequence[LabelledClaim],
    *,
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
) -> list[JudgedClaim]:
    """Have a judge decide the claims; premises are merged as metrics merge chunks.

    A claim on which the judge failed is undecided.

    Raises:
        JudgeError: The judge failed on every claim; quotes the most frequent error.
        ConfigError: ``concurrency`` is not positive.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency is {concurrency!r}: give 1 or more")
    gate = asyncio.Semaphore(concurrency)
    failures = Counter[str]()
    with progress_bar("judging", total=len(claims), show=progress) as advance:

        async def one(claim: LabelledClaim) -> JudgedClaim:
            async with gate:
                try:
                    return await _judge(judge, claim)
                except JudgeError as error:
                    failures[str(error)] += 1
                    return JudgedClaim(claim.label, None, None)
                finally:
                    advance()

        judged = list(await asyncio.gather(*(one(claim) for claim in claims)))
    if claims and failures.total() == len(claims):
        (reason, _), *_ = failures.most_common(1)
        raise JudgeError(f"the judge failed on every claim: {reason}")
    return judged


async def _judge(judge: Judge, claim: LabelledClaim) -> JudgedClaim:
    claims = [Claim(text=claim.claim)]
    matrix = await judge.check(claims, list(claim.premises), question=claim.question)
    (merged,) = matrix.merged
    if merged is None:
        return JudgedClaim(claim.label, None, None)
    # A claim is decided although a cell is not, if another premise entails it.
    decided = [verdict for verdict in matrix.verdicts() if verdict is not None]
    return JudgedClaim(
        human_label=claim.label,
        judge_label=merged,
        entailed=max(map(probability, decided)),
        has_probabilities=all(verdict.entailed is not None for verdict in decided),
    )
