"""Samplers: on which facts it is decided which records are evaluated. All records are traced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Final, Protocol, runtime_checkable

from pydantic import JsonValue

from claimspan.errors import ConfigError
from claimspan.judges import Judge
from claimspan.text.percentages import percent_hint
from claimspan_tracing.decide.status import Status

__all__ = [
    "MIN_RATE",
    "NUMBER",
    "Decision",
    "Facts",
    "RateSampler",
    "Sampler",
    "checked_decision",
    "checked_first_judge",
    "checked_share",
    "first_judge_of",
    "is_share",
    "is_taken",
    "thinned",
    "wants_feedback",
]

MIN_RATE: Final = 1e-12
"""Smallest rate of a sampled record; below, one record would outweigh all others."""

MAX_REASON: Final = 256
"""Characters of a decision's reason that are kept; it becomes a span attribute."""

NUMBER: Final = "a number from 0.0 to 1.0"
"""The valid range that a message names for a score or a rate."""

_BITS: Final = 56
"""Number of random bits in OpenTelemetry's threshold rule (``tracestate`` probability sampling)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a sampler may decide on. Read from the finished record."""

    trace_id: int
    """Trace id of the root span, 128 bits."""

    span_id: int
    """Span id of the root span, 64 bits."""

    route: str = ""
    """Name of the root run, as the framework shows it: which chain or pipeline answered."""

    latency_seconds: float = 0.0
    """From the start of the root to its end, or to the end of its stream."""

    has_answer: bool = True
    """Whether there is a response that is not blank."""

    has_context: bool = True
    """Whether at least one chunk was retrieved or read."""

    abstained: bool = False
    """Whether the response declines to answer."""

    failed: bool = False
    """Whether the pipeline itself raised an exception."""

    had_error: bool = False
    """Whether the pipeline, or a retriever or generator in it, raised; also if the pipeline
    recovered and answered all the same."""

    empty_retrieval: bool = False
    """Whether a retriever came back without a chunk; another one may have found some."""

    can_be_evaluated: bool = True
    """Whether the pipeline's own result allows an evaluation. If it does not, such as after an
    exception, the decision is noted on the span and has no other effect."""

    retrieval_scores: tuple[float, ...] = ()
    """The scores of the chunks on the retriever's own scale, without those that have none."""

    attributes: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What the application attached to the run (``metadata``), as JSON values."""

    feedback: float | None = None
    """What a user said about the response, 0 (bad) to 1 (good); None if no user has yet."""

    first_scores: Mapping[str, float] | None = None
    """The metrics by the sampler's first judge; None before it was asked, empty if it could
    decide nothing."""


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
    """Whether the record has a weight. False if it was chosen after others like it had been left
    out, because of feedback: in a mean it would stand for itself alone."""

    undecided: bool = False
    """Whether the sampler has to see the scores of its first judge before it can decide. Then
    ``sampled`` is True, and the rate is that of everything that was decided so far."""

    def __post_init__(self) -> None:
        """Refuse a decision without a usable weight, by a ``ConfigError``."""
        if not isinstance(self.sampled, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for samplers that are not type-checked
            raise ConfigError(f"Decision.sampled is {self.sampled!r}: give True or False")
        checked_share("Decision.rate", self.rate, NUMBER)
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

        0 if it is not evaluated, and if it has no part in means.
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
        self.rate: Final = checked_share("sample", rate)

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
    """Return the first judge of a sampler, which it has as ``first_judge``; None if it has none.

    A sampler with a first judge may leave a record undecided. The judge then evaluates the record,
    and the sampler is asked once more, with ``Facts.first_scores``.

    Raises:
        ConfigError: The attribute is no judge.
    """
    return checked_first_judge(getattr(sampler, "first_judge", None))


def checked_first_judge(judge: object) -> Judge | None:
    """Return a first judge, or None.

    Raises:
        ConfigError: It is another object.
    """
    if judge is not None and not isinstance(judge, Judge):
        raise ConfigError(
            f"first_judge is of type {type(judge).__name__}: give an object with name, "
            "extract_claims and check"
        )
    return judge


def wants_feedback(sampler: Sampler) -> bool:
    """Whether a sampler decides on feedback of users, which it says by ``needs_feedback``."""
    return getattr(sampler, "needs_feedback", False) is True


# --- shares ---------------------------------------------------------------------------------------


def is_share(value: object) -> bool:
    """Whether a value is a number from 0 to 1; a bool is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(0.0 <= value <= 1.0)  # False for NaN


def checked_share(name: str, value: float, wanted: str = "a share between 0.0 and 1.0") -> float:
    """Return a number from 0 to 1 that was given as ``name``.

    Raises:
        ConfigError: It is none; says to give what is ``wanted``.
    """
    if not is_share(value):
        raise ConfigError(f"{name} is {value!r}: give {wanted}{percent_hint(value)}")
    return float(value)


def is_taken(facts: Facts, rate: float, salt: bytes = b"") -> bool:
    """Whether a record is in the share that a rate takes.

    A larger rate takes all that a smaller one with the same salt takes. Two salts decide
    independently of each other, so that the rates of two steps multiply.

    Args:
        facts: Of these the ids of the root span count, and nothing else.
        rate: The share to take, 0 to 1.
        salt: Names the step that decides, at most 16 bytes.
    """
    # BLAKE2 is uniform, the same in every process and version, and takes about a microsecond.
    ids = facts.trace_id.to_bytes(16, "big") + facts.span_id.to_bytes(8, "big")
    randomness = int.from_bytes(blake2b(ids, digest_size=_BITS // 8, salt=salt).digest(), "big")
    # As in OpenTelemetry's threshold rule: what is at least the threshold is taken.
    return randomness >= (1 << _BITS) - round(rate * (1 << _BITS))


def thinned(decision: Decision, facts: Facts, share: float, salt: bytes, mark: str) -> Decision:
    """Return a decision at a share of its rate, so that its weight stays right.

    Args:
        decision: The earlier decision.
        facts: Of the record.
        share: The probability with which a step takes the record; it may depend on the records
            before it, and not on the record itself.
        salt: Names the step.
        mark: Stands at the end of the reason, once.
    """
    rate = decision.rate * share
    # What a throttle has refused is not thinned: its rate stays the one that it was refused at.
    if share == 1.0 or rate < MIN_RATE or decision.status is not None:
        return decision
    sampled = decision.sampled and is_taken(facts, share, salt)
    return replace(
        decision,
        sampled=sampled,
        rate=rate,
        reason=f"{decision.reason.removesuffix(mark)}{mark}",
        undecided=decision.undecided and sampled,
    )
