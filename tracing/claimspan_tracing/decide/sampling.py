"""Samplers: which records are evaluated. All records are traced."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, Protocol, runtime_checkable

from claimspan.errors import ConfigError
from claimspan_tracing.decide.facts import Facts

__all__ = ["Decision", "RateSampler", "Sampler", "checked_decision"]

_BITS: Final = 56
"""Number of random bits in OpenTelemetry's threshold rule (``tracestate`` probability sampling)."""

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

    def __post_init__(self) -> None:
        """Refuse what would leave a record without a usable weight.

        Raises:
            ConfigError: A field has the wrong type, or the rate does not fit the decision.
        """
        if not isinstance(self.sampled, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for samplers that are not type-checked
            raise ConfigError(f"Decision.sampled is {self.sampled!r}: give True or False")
        if not _is_share(self.rate):
            raise ConfigError(f"Decision.rate is {self.rate!r}: give a number from 0.0 to 1.0")
        if self.sampled and self.rate < MIN_RATE:
            raise ConfigError(
                f"Decision.rate is {self.rate!r} for a sampled record: its weight is 1 / rate"
            )

    @property
    def weight(self) -> float:
        """How many records this one stands for in a mean, ``1 / rate``; 0 where not evaluated."""
        return 1.0 / self.rate if self.sampled else 0.0


@runtime_checkable
class Sampler(Protocol):
    """Decides, after the root of a record has ended, whether the record is evaluated."""

    def decide(self, facts: Facts) -> Decision:
        """Decide about a record. Runs on the worker's thread, so it must be quick."""
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
        if not _is_share(rate):
            raise ConfigError(f"sample is {rate!r}: give a share between 0.0 and 1.0")
        self.rate: Final = float(rate)
        # As in OpenTelemetry's threshold rule: what is at least the threshold is taken.
        self._threshold: Final = (1 << _BITS) - round(rate * (1 << _BITS))

    def decide(self, facts: Facts) -> Decision:
        """Compare the hash of the ids with the rate's threshold."""
        sampled = _randomness(facts) >= self._threshold
        return Decision(sampled=sampled, rate=self.rate, reason="rate")

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
    return Decision(value.sampled, value.rate, value.reason[:MAX_REASON])


def _randomness(facts: Facts) -> int:
    """56 uniformly distributed bits that depend on trace id and span id alone."""
    # BLAKE2 is uniform, the same in every process and version, and takes about a microsecond.
    ids = facts.trace_id.to_bytes(16, "big") + facts.span_id.to_bytes(8, "big")
    return int.from_bytes(blake2b(ids, digest_size=_BITS // 8).digest(), "big")


def _is_share(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(0.0 <= value <= 1.0)  # False for NaN
