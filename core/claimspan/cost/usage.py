"""Usage of judges in calls, tokens, price and time, and the meter that collects it per record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Meter", "Usage", "add_note", "add_undecided", "add_usage", "current_meter", "metered"]


class Usage(BaseModel):
    """Calls, tokens, price and time spent on judging; ``+`` adds field by field."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: int = Field(default=0, ge=0)
    """Requests sent to a model; 0 for a judge without a model behind an endpoint."""

    input_tokens: int = Field(default=0, ge=0)
    """Prompt tokens as counted by the endpoint."""

    output_tokens: int = Field(default=0, ge=0)
    """Completion tokens as counted by the endpoint."""

    cost_usd: float = Field(default=0.0, ge=0.0)
    """Price of the tokens in US dollars."""

    seconds: float = Field(default=0.0, ge=0.0)
    """Wall-clock time of the evaluation in seconds."""

    def __add__(self, other: Usage) -> Usage:
        """The sum, field by field."""
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=self.cost_usd + other.cost_usd,
            seconds=self.seconds + other.seconds,
        )


class Meter:
    """Collects what judges report during the evaluation of one record."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.undecided: Counter[str] = Counter()
        """Number of undecided verdicts by reason."""
        self.notes: Counter[str] = Counter()
        """Number of verdicts that were decided in another way than usual, by note."""


_meter: Final[ContextVar[Meter | None]] = ContextVar("claimspan_usage_meter", default=None)


@contextmanager
def metered() -> Generator[Meter]:
    """Collects what judges report inside the block, and in tasks that start there.

    Blocks nest: the outer meter also counts what an inner one has collected.

    Yields:
        The meter; complete when the block has ended.
    """
    meter, outer = Meter(), _meter.get()
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)
        if outer is not None:
            outer.usage += meter.usage
            outer.undecided += meter.undecided
            outer.notes += meter.notes


def add_usage(usage: Usage) -> None:
    """Reports what a request of a judge has used."""
    meter = _meter.get()
    if meter is not None:
        meter.usage += usage


def add_undecided(reason: str, verdicts: int) -> None:
    """Reports that a judge has left so many verdicts undecided, and why."""
    meter = _meter.get()
    if meter is not None:
        meter.undecided[reason] += verdicts


def add_note(note: str, verdicts: int) -> None:
    """Reports that a judge has decided so many verdicts in another way than usual."""
    meter = _meter.get()
    if meter is not None:
        meter.notes[note] += verdicts


def current_meter() -> Meter | None:
    """The meter of the innermost block, which stands for the record under evaluation."""
    return _meter.get()
