"""Usage of judges in calls, tokens, price and time, and the meter that collects it per record."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from claimspan.errors import RecordLimitError

__all__ = [
    "Meter",
    "Usage",
    "add_note",
    "add_undecided",
    "add_usage",
    "current_meter",
    "lift_record_limits",
    "metered",
    "within_record_limits",
]


# Polled, as the requests may be in other threads; a call takes at least ten times as long.
_POLL_SECONDS: Final = 0.02

_ROUNDING: Final = 1e-9
"""In US dollars; a token of the cheapest model costs fifty times as much."""


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
        pairs = zip(dict(self).items(), dict(other).values(), strict=True)
        return Usage(**{name: mine + its for (name, mine), its in pairs})

    @property
    def is_nothing(self) -> bool:
        """Whether there is neither a call nor a token, nor a price but for the rounding of sums."""
        counts = self.calls + self.input_tokens + self.output_tokens
        return counts == 0 and self.cost_usd < _ROUNDING

    def beyond(self, other: Usage) -> Usage:
        """This usage less another, field by field; the time is left out."""
        return Usage(
            calls=max(0, self.calls - other.calls),
            input_tokens=max(0, self.input_tokens - other.input_tokens),
            output_tokens=max(0, self.output_tokens - other.output_tokens),
            cost_usd=max(0.0, self.cost_usd - other.cost_usd),
        )


class Meter:
    """Collects what judges report during the evaluation of one record, and limits it."""

    def __init__(self, max_calls: int | None = None, max_tokens: int | None = None) -> None:
        self.max_calls = max_calls
        """Requests of the record, retries included; None sets no limit."""
        self.max_tokens = max_tokens
        """Prompt and completion tokens of the record; None sets no limit."""
        self.tokens_under_way = 0
        """What the requests under way may use at most, by estimate."""
        self.usage = Usage()
        self.undecided: Counter[str] = Counter()
        """Number of undecided verdicts by reason."""
        self.notes: Counter[str] = Counter()
        """Number of verdicts that were decided in another way than usual, by note."""

    def has_room_for(self, tokens: int) -> bool:
        """Whether a request fits now; False if it may, once others have been reported.

        Raises:
            RecordLimitError: It exceeds the rest of the limit.
        """
        if self.max_tokens is None:
            return True
        used = self.usage.input_tokens + self.usage.output_tokens + tokens
        if used > self.max_tokens:
            raise RecordLimitError(
                f"token limit: the next call could take the record past {self.max_tokens:,} tokens"
            )
        return used + self.tokens_under_way <= self.max_tokens


_meter: Final[ContextVar[Meter | None]] = ContextVar("claimspan_usage_meter", default=None)


@contextmanager
def metered(max_calls: int | None = None, max_tokens: int | None = None) -> Generator[Meter]:
    """Collects what judges report inside the block, and in tasks that start there.

    Blocks nest: the outer meter also counts the inner one's usage. The meter limits the requests
    and the tokens of the judges, and is complete when the block has ended.
    """
    meter, outer = Meter(max_calls, max_tokens), _meter.get()
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
    """Reports the usage of a judge's request.

    Raises:
        RecordLimitError: The judge has made more calls than a record may have, and has to stop.
    """
    meter = _meter.get()
    if meter is not None:
        meter.usage += usage
        if usage.calls and meter.max_calls is not None and meter.usage.calls > meter.max_calls:
            raise _call_limit(meter.max_calls)


@asynccontextmanager
async def within_record_limits(tokens: int) -> AsyncGenerator[None]:
    """Surrounds a request, which counts against the tokens of its record until it is reported.

    Waits while other requests of the record leave no room for what it may use at most.

    Raises:
        RecordLimitError: The record has used up its calls or its tokens; the request is not made.
    """
    meter = _meter.get()
    if meter is None:
        yield
        return
    while not meter.has_room_for(tokens):
        await asyncio.sleep(_POLL_SECONDS)
    # Looked at last: nothing may come between this and the report of the request.
    if meter.max_calls is not None and meter.usage.calls >= meter.max_calls:
        raise _call_limit(meter.max_calls)
    meter.tokens_under_way += tokens
    try:
        yield
    finally:
        meter.tokens_under_way -= tokens


def lift_record_limits(calls: int | None, tokens: int | None) -> None:
    """Raises the limits of the record to the user's for the judge; None raises none."""
    meter = _meter.get()
    if meter is None:
        return
    if meter.max_calls is not None and calls is not None:
        meter.max_calls = max(meter.max_calls, calls)
    if meter.max_tokens is not None and tokens is not None:
        meter.max_tokens = max(meter.max_tokens, tokens)


def _call_limit(calls: int) -> RecordLimitError:
    return RecordLimitError(f"call limit: a record may have {calls} judge calls")


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
