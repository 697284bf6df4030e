"""Claims that people have judged, to measure judges by."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimspan.errors import ConfigError, GroundTruthError, JudgeError
from claimspan.judges.protocol import Judge
from claimspan.progress import progress_bar
from claimspan.verdicts import Claim, Label

__all__ = ["Judged", "LabelledClaim", "judge_labelled", "read_labelled"]

HumanLabel = Literal["E", "N", "C", "NE"]
"""Entailed, neutral, contradicted; or not entailed, where people did not say which of these."""


class LabelledClaim(BaseModel):
    """One claim, what it was judged by, and what people said."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    """The file's own id."""

    premises: tuple[str, ...] = Field(min_length=1)
    """The references, at least one."""

    claim: str = Field(min_length=1)
    """What was judged."""

    label: HumanLabel
    """What people said."""

    question: str | None = None
    """The question behind both, where known."""


class Judged(NamedTuple):
    """What people said of a claim, and what a judge said."""

    label: HumanLabel
    said: Label | None
    """None where the judge failed or left it undecided."""

    entailed: float | None
    """The judge's highest p(entailed) over the premises; 1 or 0 by label where it has none."""

    is_graded: bool = True
    """Whether every verdict behind ``entailed`` came with its probability."""


_SURE: Final = {True: 1.0, False: 0.0}


def read_labelled(path: str | Path) -> list[LabelledClaim]:
    """Read JSON lines with ``id``, ``premises``, ``claim`` and ``label`` (E, N, C or NE).

    Raises:
        GroundTruthError: The file cannot be read as one; names the line.
    """
    claims: list[LabelledClaim] = []
    try:
        with Path(path).open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    claims.append(_read_line(line, f"{str(path)!r} line {number}"))
    except (OSError, UnicodeDecodeError) as error:
        raise GroundTruthError(f"cannot read {str(path)!r} ({type(error).__name__})") from error
    if not claims:
        raise GroundTruthError(f"{str(path)!r} holds no labelled claims")
    return claims


def _read_line(line: str, where: str) -> LabelledClaim:
    try:
        return LabelledClaim.model_validate_json(line)
    except ValidationError:
        raise GroundTruthError(
            f"{where} needs id, premises (a list of at least one), claim, and a label out of "
            "E, N, C, NE"
        ) from None


async def judge_labelled(
    judge: Judge,
    claims: Sequence[LabelledClaim],
    *,
    concurrency: int = 8,
    progress: bool | None = None,
) -> list[Judged]:
    """Have a judge decide what people have decided; premises are merged as metrics merge chunks.

    Args:
        judge: Whom to measure.
        claims: What people have judged.
        concurrency: Claims before the judge at once.
        progress: As in ``evaluate_many``.

    Returns:
        One answer a claim, in order; one on which the judge failed is undecided.

    Raises:
        JudgeError: The judge failed on every claim; gives the commonest reason.
        ConfigError: ``concurrency`` is not positive.
        MissingExtraError: ``progress=True`` without rich.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency is {concurrency!r}: give 1 or more")
    gate = asyncio.Semaphore(concurrency)
    failures = Counter[str]()
    with progress_bar("judging", total=len(claims), show=progress) as advance:

        async def one(item: LabelledClaim) -> Judged:
            async with gate:
                try:
                    return await _judge(judge, item)
                except JudgeError as error:
                    failures[str(error)] += 1
                    return Judged(item.label, None, None)
                finally:
                    advance()

        answers = list(await asyncio.gather(*(one(item) for item in claims)))
    if claims and failures.total() == len(claims):
        (reason, _), *_ = failures.most_common(1)
        raise JudgeError(f"the judge failed on every claim: {reason}")
    return answers


async def _judge(judge: Judge, item: LabelledClaim) -> Judged:
    matrix = await judge.check(
        [Claim(text=item.claim)], list(item.premises), question=item.question
    )
    (said,) = matrix.merged
    if said is None:
        return Judged(item.label, None, None)
    found = [each for each in matrix.verdicts() if each is not None]
    entailed = max(
        _SURE[each.label is Label.ENTAILED] if each.entailed is None else each.entailed
        for each in found
    )
    return Judged(item.label, said, entailed, all(each.entailed is not None for each in found))
