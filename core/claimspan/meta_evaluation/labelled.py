"""Claims that people have labelled, and what a judge decides about them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.files.jsonl import parse_json_lines, read_text
from claimspan.judges.protocol import Judge
from claimspan.metrics.means import probability
from claimspan.progress import progress_bar
from claimspan.verdicts import Claim, Label

__all__ = [
    "LETTERS",
    "HumanLabel",
    "JudgedClaim",
    "LabelledClaim",
    "comparable",
    "judge_labelled",
    "read_labelled",
]

HumanLabel = Literal["E", "N", "C", "NE"]
"""Entailed, neutral, contradicted; or not entailed, where people did not say which of the two."""

LETTERS: Final[Mapping[Label, HumanLabel]] = {
    Label.ENTAILED: "E",
    Label.NEUTRAL: "N",
    Label.CONTRADICTED: "C",
}
"""Label of a judge to that of people."""

CONCURRENCY: Final = 8
"""Claims before the judge at once."""


class LabelledClaim(BaseModel):
    """A claim, its premises, and the label that people gave it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    """The id of the claim in its file."""

    premises: tuple[str, ...] = Field(min_length=1)
    """The references, at least one."""

    claim: str = Field(min_length=1)
    """The text of the claim."""

    label: HumanLabel
    """The label that people gave."""

    question: str | None = None
    """The question behind claim and premises; None where unknown."""


class JudgedClaim(NamedTuple):
    """The label that people gave a claim, and the one that a judge gave it."""

    human_label: HumanLabel
    """The label that people gave."""

    judge_label: Label | None
    """The judge's label over all premises; None where it failed or left the claim undecided."""

    entailed: float | None
    """The judge's highest p(entailed) over the premises; 1 or 0 by label where it has none."""

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
    claims = [_labelled(row, f"{str(path)!r} line {number}") for number, row in rows]
    if not claims:
        raise FileError(f"{str(path)!r} holds no labelled claims: write one JSON object a line")
    return claims


def _labelled(row: Mapping[str, object], place: str) -> LabelledClaim:
    try:
        return LabelledClaim.model_validate(row)
    except ValidationError:
        # Without the cause: a validation error quotes the input, which may be private.
        raise FileError(
            f"{place} needs id, premises (a list of at least one), claim, and a label out of "
            "E, N, C, NE"
        ) from None


def comparable(
    people: Sequence[HumanLabel], judge: Sequence[Label | None]
) -> list[tuple[HumanLabel, HumanLabel]]:
    """Return the labels of people beside those of a judge, in letters that can be compared.

    Some people only say "not entailed": if any label is NE, neutral and contradicted count as one
    label on both sides.

    Args:
        people: The labels of people.
        judge: The judge's labels of the same claims; those that are None are left out.
    """
    is_binary = "NE" in people

    def letter(label: HumanLabel) -> HumanLabel:
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

    Args:
        judge: The judge to measure.
        claims: Claims that people have labelled.
        concurrency: Claims before the judge at once.
        progress: As in ``evaluate_many``.

    Returns:
        One judged claim per claim, in order; one on which the judge failed is undecided.

    Raises:
        JudgeError: The judge failed on every claim; quotes the most frequent error.
        ConfigError: ``concurrency`` is not positive.
        MissingExtraError: ``progress=True`` without rich.
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
    # A claim is decided although a cell is not, where another premise entails it.
    decided = [verdict for verdict in matrix.verdicts() if verdict is not None]
    return JudgedClaim(
        human_label=claim.label,
        judge_label=merged,
        entailed=max(map(probability, decided)),
        has_probabilities=all(verdict.entailed is not None for verdict in decided),
    )
