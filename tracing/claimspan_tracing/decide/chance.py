"""Chance: a number per record that is the same in every process, and thresholds on it."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from claimspan_tracing.decide.facts import Facts

__all__ = ["is_share", "is_taken"]

_BITS: Final = 56
"""Number of random bits in OpenTelemetry's threshold rule (``tracestate`` probability sampling)."""


def is_taken(facts: Facts, rate: float, salt: bytes = b"") -> bool:
    """Whether a record is in the share that a rate takes.

    What a small rate takes, a larger rate with the same salt takes too. Two salts decide
    independently of each other, so that the rates of two steps multiply.

    Args:
        facts: Of these the ids of the root span count, and nothing else.
        rate: The share to take, 0 to 1.
        salt: Names the step that decides, at most 16 bytes.
    """
    # As in OpenTelemetry's threshold rule: what is at least the threshold is taken.
    return _randomness(facts, salt) >= (1 << _BITS) - round(rate * (1 << _BITS))


def is_share(value: object) -> bool:
    """Whether a value is a number from 0 to 1; a bool is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(0.0 <= value <= 1.0)  # False for NaN


def _randomness(facts: Facts, salt: bytes) -> int:
    """56 uniformly distributed bits that depend on trace id, span id and salt alone."""
    # BLAKE2 is uniform, the same in every process and version, and takes about a microsecond.
    ids = facts.trace_id.to_bytes(16, "big") + facts.span_id.to_bytes(8, "big")
    return int.from_bytes(blake2b(ids, digest_size=_BITS // 8, salt=salt).digest(), "big")
