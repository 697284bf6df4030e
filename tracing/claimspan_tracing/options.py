"""The options of a monitor, and the checks that they have to pass."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from opentelemetry.trace import TracerProvider

from claimspan import GroundTruth
from claimspan.cost.budget import Budget
from claimspan.errors import ConfigError, MissingExtraError
from claimspan.files.ground_truth import Lookup
from claimspan.judges import Judge, default_judge
from claimspan_tracing.decide.sampling import RateSampler, Sampler
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.pacing import CpuShare
from claimspan_tracing.redact.redaction import Audience, Redaction, Redactor
from claimspan_tracing.write.sinks import Sink

__all__ = [
    "GroundTruthLike",
    "MonitorOptions",
    "checked_cpu_share",
    "checked_ground_truth",
    "checked_judge",
    "checked_path",
    "checked_positive",
    "checked_provider",
    "checked_redaction",
    "checked_sampler",
    "checked_sinks",
]

GroundTruthLike = str | Path | Mapping[str, str] | Lookup | GroundTruth
"""What ``Monitor`` takes as ground truth."""


class MonitorOptions(TypedDict, total=False):
    """The keyword options of ``Monitor``, as an integration takes them."""

    judge: Judge | str | None
    ground_truth: GroundTruthLike | None
    sample: float | Sampler
    hold_seconds: float
    tracer_provider: TracerProvider | None
    max_queue_records: int
    max_queue_bytes: int
    sinks: Sequence[Sink]
    redact: Redactor | None
    redact_for: Collection[Audience]
    capture_content: bool
    budget: Budget | None
    spool: str | Path | None
    dispatch: Dispatcher | None
    serverless: bool
    max_cpu_share: float


def checked_ground_truth(value: GroundTruthLike | None) -> GroundTruth | None:
    """Return what the option ``ground_truth`` stands for.

    Raises:
        GroundTruthError: The file cannot be read.
    """
    return None if value is None else GroundTruth.of(value)


def checked_sampler(value: float | Sampler) -> Sampler:
    """Return the sampler that the option ``sample`` stands for.

    Raises:
        ConfigError: It is neither a share nor a sampler.
    """
    return value if isinstance(value, Sampler) else RateSampler(_number(value))


def checked_redaction(
    redact: Redactor | None, redact_for: Collection[Audience]
) -> Redaction | None:
    """Return what the options ``redact`` and ``redact_for`` stand for; None without a redactor."""
    return None if redact is None else Redaction(redact, frozenset(redact_for))


def checked_path(value: str | Path | None) -> Path | None:
    """Return the path that an option stands for."""
    return None if value is None else Path(value)


def checked_judge(judge: Judge | str | None) -> Judge:
    """Return the judge that the option ``judge`` stands for.

    Raises:
        ConfigError: It is no judge, or the name of none.
    """
    if judge is None:
        return default_judge()
    if isinstance(judge, str):
        return _named_judge(judge)
    if not isinstance(judge, Judge):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
        raise ConfigError(
            f"judge is a {type(judge).__name__}: give an object with name, extract_claims and check"
        )
    return judge


def checked_provider(provider: TracerProvider | None) -> TracerProvider | None:
    """Return the tracer provider.

    Raises:
        ConfigError: It is none.
    """
    # By its method: providers of other packages need not inherit from the API's class.
    if provider is not None and not callable(getattr(provider, "get_tracer", None)):
        raise ConfigError(
            f"tracer_provider is a {type(provider).__name__}: give an OpenTelemetry TracerProvider"
        )
    return provider


def _named_judge(name: str) -> Judge:
    try:
        return default_judge(name)
    except MissingExtraError:
        raise
    except ConfigError as error:
        raise ConfigError(f"judge is a str that cannot be used: {error}") from None


def checked_sinks(sinks: Sequence[Sink]) -> tuple[Sink, ...]:
    """Return the sinks.

    Raises:
        ConfigError: One of them is none.
    """
    if not isinstance(sinks, list | tuple):
        raise ConfigError(f"sinks is a {type(sinks).__name__}: give a list of sinks")
    for sink in sinks:
        if not isinstance(sink, Sink):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(
                f"sinks has a {type(sink).__name__}: give objects with write(finished)"
            )
    return tuple(sinks)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigError(f"sample is {value!r}: give a share between 0.0 and 1.0, or a sampler")
    return float(value)


def checked_cpu_share(value: float) -> float:
    """Return the share of a core that evaluating may take.

    Raises:
        ConfigError: It is not above 0 and at most 1.
    """
    CpuShare(value)
    return value


def checked_positive(name: str, value: object) -> float:
    """Return a number that has to be positive.

    Raises:
        ConfigError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ConfigError(f"{name} is {value!r}: give a positive number")
    return value
