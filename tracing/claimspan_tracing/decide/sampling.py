"""Samplers: which records are evaluated. All records are traced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Protocol, runtime_checkable

from claimspan.errors import ConfigError
from claimspan.judges import Judge
from claimspan.text.percentages import percent_hint
from claimspan_tracing.decide.chance import is_share, is_taken
from claimspan_tracing.decide.facts import Facts
from claimspan_tracing.decide.status import Status

__all__ = [
    "MAX_REASON",
    "MIN_RATE",
    "Decision",
    "RateSampler",
    "Sampler",
    "checked_decision",
    "first_judge_of",
    "wants_feedback",
]

MIN_RATE: Final = 1e-12
"""Smallest rate of a sampled record; below, one record would outweigh all others."""

MAX_REASON: Final = 256
"""Characters of a decision's reason that are kept; it becomes a span attribute."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a sampler decided about one record."""

    sampled: bool
    """Whether to evaluate the record."""

    rate: float
    """Probability with which a record like this one is evaluated, 0 to 1."""

    reason: str
    """Which rule decided."""

    status: Status | None = None
    """The state of a record that is not to be evaluated; None stands for ``not_sampled``."""

    counts: bool = True
    """Whether the record has a weight. False where it was chosen after others like it had been left
    out, because of feedback: in a mean it would stand for nobody but itself."""

    undecided: bool = False
    """Whether the sampler has to see the scores of its first judge before it can decide. Then
    ``sampled`` is True, and the rate is that of everything that was decided so far."""

    def __post_init__(self) -> None:
        """Refuse what would leave a record without a usable weight.

        Raises:
            ConfigError: A field has the wrong type, or the rate does not fit the decision.
        """
        if not isinstance(self.sampled, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for samplers that are not type-checked
            raise ConfigError(f"Decision.sampled is {self.sampled!r}: give True or False")
        if not is_share(self.rate):
            raise ConfigError(
                f"Decision.rate is {self.rate!r}: give a number from 0.0 to 1.0"
                f"{percent_hint(self.rate)}"
            )
        if self.status is not None and self.sampled:
            raise ConfigError("Decision.status is the state of a record that is not sampled")
        if self.undecided and not self.sampled:
            raise ConfigError("Decision.undecided goes with sampled=True: the record goes on")
        if self.sampled and self.rate < MIN_RATE:
            raise ConfigError(
                f"Decision.rate is {self.rate!r} for a sampled record: its weight is 1 / rate"
            )

    @property
    def weight(self) -> float:
        """How many records this one stands for in a mean, ``1 / rate``.

        0 where it is not evaluated, and where it has no part in means.
        """
        return 1.0 / self.rate if self.sampled and self.counts else 0.0


@runtime_checkable
class Sampler(Protocol):
    """Decides, after the root of a record has ended, whether the record is evaluated."""

    def decide(self, facts: Facts) -> Decision:
        """Decide about a record. Runs on the worker's thread, so it must be quick.

        A sampler that has a ``first_judge`` and leaves records undecided is asked about those once
        more, on the judge's thread.
        """
        ...


class RateSampler:
    """Evaluates a fixed share of the records.

    The decision depends on the ids of the root span alone, so every process that sees the same
    record decides alike, and what a small rate takes, a larger rate takes too. The ids are hashed
    first. Without the hash the decision would depend on the head sampler's: ``TraceIdRatioBased``
    keeps the traces with the lowest ids, and a threshold rule on the same bits takes the highest.
    The span id is part of the hash because one trace may hold many records.
    """

    def __init__(self, rate: float) -> None:
        """Set the share.

        Args:
            rate: Between 0 (nothing) and 1 (everything).

        Raises:
            ConfigError: The rate is not a number between 0 and 1.
        """
        if not is_share(rate):
            hint = percent_hint(rate)
            raise ConfigError(f"sample is {rate!r}: give a share between 0.0 and 1.0{hint}")
        self.rate: Final = float(rate)

    def decide(self, facts: Facts) -> Decision:
        """Compare the hash of the ids with the rate's threshold."""
        return Decision(sampled=is_taken(facts, self.rate), rate=self.rate, reason="rate")

    def __repr__(self) -> str:
        return f"RateSampler({self.rate})"


def checked_decision(value: object) -> Decision:
    """Return what a sampler returned, with its reason cut to a bounded length.

    Raises:
        ConfigError: It is not a ``Decision``.
    """
    if not isinstance(value, Decision):
        raise ConfigError(f"the sampler returned a {type(value).__name__}: return a Decision")
    if len(value.reason) <= MAX_REASON:
        return value
    return replace(value, reason=value.reason[:MAX_REASON])


def first_judge_of(sampler: Sampler) -> Judge | None:
    """Return the first judge of a sampler, which it has as ``first_judge``; None where it has none.

    A sampler with a first judge may leave a record undecided. The judge then evaluates the record,
    and the sampler is asked once more, with ``Facts.first_scores``.

    Raises:
        ConfigError: The attribute is no judge.
    """
    judge: object = getattr(sampler, "first_judge", None)
    if judge is not None and not isinstance(judge, Judge):
        raise ConfigError(
            f"first_judge is of type {type(judge).__name__}:"
            " give an object with name, extract_claims "
            "and check"
        )
    return judge


def wants_feedback(sampler: Sampler) -> bool:
    """Whether a sampler decides on feedback of users, which it says by ``needs_feedback``."""
    return getattr(sampler, "needs_feedback", False) is True
