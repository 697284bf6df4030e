"""What an evaluation has cost: calls, tokens, money, time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Meter", "Usage", "add_note", "add_undecided", "add_usage", "current_meter", "metered"]


class Usage(BaseModel):
    """What was spent on judging; usages add up with ``+``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    calls: int = Field(default=0, ge=0)
    """Requests sent to a model; 0 for a judge that needs none."""

    input_tokens: int = Field(default=0, ge=0)
    """Prompt tokens, as the endpoint counted them."""

    output_tokens: int = Field(default=0, ge=0)
    """Completion tokens, as the endpoint counted them."""

    cost_usd: float = Field(default=0.0, ge=0.0)
    """Price of the tokens in US dollars."""

    seconds: float = Field(default=0.0, ge=0.0)
    """Wall-clock time from start to end of the evaluation."""

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
    """Adds up what the judge reports while it is in force."""

    def __init__(self) -> None:
        self.usage = Usage()
        self.undecided: Counter[str] = Counter()
        """Verdicts that were left undecided, by reason."""
        self.notes: Counter[str] = Counter()
        """Verdicts that came about otherwise than usual, by how."""


_meter: Final[ContextVar[Meter | None]] = ContextVar("claimspan_usage_meter", default=None)


@contextmanager
def metered() -> Generator[Meter]:
    """Collect what judges report with ``add_usage`` inside the block, tasks included.

    Blocks nest: what an inner one has collected counts in the outer one too.
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
    """Called by a judge after each request, so that the evaluation knows what it has cost."""
    meter = _meter.get()
    if meter is not None:
        meter.usage += usage


def add_undecided(reason: str, verdicts: int) -> None:
    """Called by a judge that leaves verdicts undecided, so that the evaluation can say why."""
    meter = _meter.get()
    if meter is not None:
        meter.undecided[reason] += verdicts


def add_note(note: str, verdicts: int) -> None:
    """Called by a judge that decides otherwise than it usually does, so that the scores say so."""
    meter = _meter.get()
    if meter is not None:
        meter.notes[note] += verdicts


def current_meter() -> Meter | None:
    """The innermost meter in force, which stands for the record under evaluation."""
    return _meter.get()
