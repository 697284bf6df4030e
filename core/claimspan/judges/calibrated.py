"""``CalibratedJudge``: a judge whose verdicts are moved to agree with people on one's own traffic.

What a judge calls entailed depends on how an application writes its chunks and its answers. Some
50 to 200 labels by people tell from which probability on the people of one application agree.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Final, ParamSpec, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from claimspan.cost.budget import Budget
from claimspan.errors import ConfigError, FileError
from claimspan.files.jsonl import read_text
from claimspan.judges.protocol import (
    BudgetedJudge,
    ContextJudge,
    CriteriaJudge,
    Judge,
    SparseJudge,
)
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = ["CalibratedJudge", "JudgeCalibration", "is_calibrated", "log_odds"]

_P = ParamSpec("_P")

# Beyond it a probability says no more than "sure", and its logarithm would outweigh all others.
_SUREST: Final = 0.001

_MOST_ODDS: Final = 700.0

_PREFIX: Final = "calibrated("

_WANTED: Final = "calibration (claimspan calibrate -o)"


class JudgeCalibration(BaseModel):
    """How the probabilities of one judge are to be read on the traffic that was labelled."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    judge: str = Field(min_length=1)
    """Name of the judge that it was measured for."""

    threshold: float = Field(gt=0.0, lt=1.0)
    """The judge's p(entailed) from which people call a claim entailed more often than not."""

    slope: float = Field(default=1.0, gt=0.0, allow_inf_nan=False)
    """By how much the log-odds around the threshold are stretched; above 1 the judge was too
    cautious, below 1 too sure."""

    labels: int = Field(default=0, ge=0)
    """Number of labels that it was fitted on."""

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a file of ``claimspan calibrate -o``.

        Raises:
            FileError: It cannot be read, or holds no calibration.
        """
        text = read_text(Path(path), wanted=_WANTED)
        try:
            return cls.model_validate_json(text)
        except ValidationError:
            # Without the cause, which quotes the file.
            raise FileError(f"{str(path)!r} holds no calibration: give a {_WANTED}") from None

    @property
    def digest(self) -> str:
        """Short digest of all that changes a verdict."""
        values = f"{self.judge}|{self.threshold!r}|{self.slope!r}"
        return hashlib.sha256(values.encode()).hexdigest()[:12]

    def probability(self, entailed: float) -> float:
        """The probability that people call a claim entailed.

        Returns:
            0.5 at the threshold, and more above it.
        """
        odds = self.slope * (log_odds(entailed) - log_odds(self.threshold))
        # Bounded: the slope is that of a file, and math.exp raises beyond 709.
        return 1 / (1 + math.exp(-min(max(odds, -_MOST_ODDS), _MOST_ODDS)))

    def label(self, label: Label, entailed: float) -> Label:
        """The label of a claim by the threshold, if only its p(entailed) is known.

        Returns:
            Entailed from the threshold on. Below it the judge's own, and neutral in place of
            entailed.
        """
        if entailed >= self.threshold:
            return Label.ENTAILED
        return Label.NEUTRAL if label is Label.ENTAILED else label

    def verdict(self, verdict: Verdict | None) -> Verdict | None:
        """A verdict with its label by the threshold, and its probabilities on the same scale.

        Args:
            verdict: The judge's own; one without probabilities, or None, stays as it is.
        """
        if verdict is None or verdict.entailed is None:
            return verdict
        neutral, contradicted = verdict.neutral or 0.0, verdict.contradicted or 0.0
        entailed = self.probability(verdict.entailed)
        rest = neutral + contradicted
        denied = (1 - entailed) * (contradicted / rest if rest else 0.0)
        label = verdict.label
        if label is Label.ENTAILED and contradicted > neutral:
            label = Label.CONTRADICTED
        return Verdict(
            label=self.label(label, verdict.entailed),
            entailed=entailed,
            neutral=max(0.0, 1 - entailed - denied),
            contradicted=denied,
        )


def is_calibrated(name: str) -> bool:
    """Whether a name is that of a judge with a calibration."""
    return name.startswith(_PREFIX)


def log_odds(probability: float) -> float:
    """The logarithm of the odds, for probabilities from 0.001 to 0.999; beyond as at these."""
    bounded = min(max(probability, _SUREST), 1 - _SUREST)
    return math.log(bounded / (1 - bounded))


class CalibratedJudge:
    """Asks a judge, and reads its probabilities as a calibration says.

    It has the calls of the judge behind it: one that reads chunks together still does. Each call
    returns calibrated verdicts. An evaluation calibrates the verdicts on a response by its chunks,
    which people have labelled, and leaves those on and by a ground truth as the judge gives them.
    """

    def __init__(self, judge: Judge, calibration: JudgeCalibration | str | Path) -> None:
        """Puts a calibration around a judge.

        Args:
            judge: The judge that the calibration was made for.
            calibration: The result of ``claimspan calibrate -o``, or the path of that file.

        Raises:
            ConfigError: The calibration was made for another judge.
            FileError: The file cannot be read, or holds no calibration.
        """
        if not isinstance(calibration, JudgeCalibration):
            calibration = JudgeCalibration.read(calibration)
        if calibration.judge != judge.name:
            raise ConfigError(
                f"the calibration was made for the judge {calibration.judge!r}, not for "
                f"{judge.name!r}: their probabilities differ; label claims that {judge.name!r} "
                "has judged, and run `claimspan calibrate` on them"
            )
        self.judge: Final = judge
        self.calibration: Final = calibration
        # On the object: it must not seem to have calls that the judge behind it lacks.
        if isinstance(judge, SparseJudge):
            self.check_cells: Final = self._reading(judge.check_cells)
            """As ``SparseJudge.check_cells``, calibrated; only if the judge has it."""
        if isinstance(judge, ContextJudge):
            self.check_context: Final = self._reading(judge.check_context)
            """As ``ContextJudge.check_context``, calibrated; only if the judge has it."""
        if isinstance(judge, CriteriaJudge):
            self.grade: Final = judge.grade
            """The call of the judge, whose grades a calibration says nothing of; if it has one."""

    @property
    def name(self) -> str:
        """``calibrated(NAME)`` with the name of the judge."""
        return f"{_PREFIX}{self.judge.name})"

    @property
    def version(self) -> str:
        """The version of the judge, with the digest of the calibration."""
        return f"{getattr(self.judge, 'version', '')}+{self.calibration.digest}"

    def check_budget(self, budget: Budget) -> None:
        """Checks that the judge can keep to a budget, if it has such a check.

        Raises:
            ConfigError: It cannot.
        """
        if isinstance(self.judge, BudgetedJudge):
            self.judge.check_budget(budget)

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """Returns the claims that the judge extracts."""
        return await self.judge.extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """The judge's verdicts, calibrated."""
        return self.read(await self.judge.check(claims, references, question=question))

    def read(self, matrix: VerdictMatrix) -> VerdictMatrix:
        """Returns the verdicts of the judge behind it as the calibration reads them."""
        rows = [[self.calibration.verdict(cell) for cell in row] for row in matrix.rows]
        return VerdictMatrix.of(rows, matrix.n_references)

    def _reading(
        self, call: Callable[_P, Coroutine[object, object, VerdictMatrix]]
    ) -> Callable[_P, Coroutine[object, object, VerdictMatrix]]:
        async def calibrated(*args: _P.args, **kwargs: _P.kwargs) -> VerdictMatrix:
            return self.read(await call(*args, **kwargs))

        return calibrated
