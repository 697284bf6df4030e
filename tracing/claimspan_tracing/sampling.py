"""Which records are evaluated. All are traced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from claimspan.errors import ConfigError

__all__ = ["Decision", "RateSampler", "Sampler"]

_BITS: Final = 56
"""OpenTelemetry's threshold rule looks at the 56 least significant bits of a trace id."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a sampler said about one record."""

    sampled: bool
    """Whether to evaluate it."""

    rate: float
    """Probability with which a record like this one is evaluated."""

    reason: str
    """Which rule decided."""

    @property
    def weight(self) -> float:
        """How many records this one stands for in a mean; 0 where it is not evaluated."""
        return 1.0 / self.rate if self.sampled else 0.0


@runtime_checkable
class Sampler(Protocol):
    """Decides when the root of a record ends."""

    def decide(self, trace_id: int) -> Decision:
        """Decide about a record; called on the caller's thread, so it must be quick."""
        ...


class RateSampler:
    """Evaluates a fixed share of the records, the same ones everywhere.

    The decision depends on the trace id alone, by OpenTelemetry's threshold rule
    (``tracestate`` probability sampling): a record is taken when the low 56 bits of its trace id
    are at least ``2**56 * (1 - rate)``. So every process decides alike, and what a small rate
    takes, a larger one takes too.
    """

    def __init__(self, rate: float) -> None:
        """Take the share.

        Args:
            rate: Between 0 (nothing) and 1 (everything).

        Raises:
            ConfigError: The rate is not a number between 0 and 1.
        """
        if not 0.0 <= rate <= 1.0:
            raise ConfigError(f"sample is {rate!r}: give a share between 0.0 and 1.0")
        self.rate: Final = float(rate)
        self._threshold: Final = (1 << _BITS) - round(rate * (1 << _BITS))

    def decide(self, trace_id: int) -> Decision:
        """Decide by the trace id."""
        sampled = (trace_id & ((1 << _BITS) - 1)) >= self._threshold
        return Decision(sampled=sampled, rate=self.rate, reason="rate")

    def __repr__(self) -> str:
        return f"RateSampler({self.rate})"
