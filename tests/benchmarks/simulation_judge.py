"""What a simulated day is made of: virtual time, traffic, and a judge behind an endpoint."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import Final, TypeVarTuple
from unittest.mock import patch

from claimspan import Claim, Verdict, VerdictMatrix
from claimspan.cost.budget import current_budget
from claimspan.cost.pricing import Price
from claimspan.cost.usage import Usage, add_usage
from claimspan.errors import JudgeUnavailableError
from claimspan.verdicts import Label

__all__ = ["DAY", "HOUR", "Endpoint", "SimulatedJudge", "Traffic", "VirtualLoop", "virtual_threads"]

HOUR: Final = 3600
DAY: Final = 24 * HOUR
CLAIMS: Final = (2, 3, 4, 5, 6, 7, 8)

_Ts = TypeVarTuple("_Ts")


class _Leap(selectors.SelectSelector):
    """Waits for nothing: where the loop would wait, its time goes on."""

    def __init__(self, leap: Callable[[float], None]) -> None:
        super().__init__()
        self._leap = leap

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("the simulation waits for something that never comes")
        self._leap(max(0.0, timeout))
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes as fast as its tasks get done."""

    def __init__(self, start: float = 0.0) -> None:
        """Begin at a time, in seconds."""
        self.now = start
        super().__init__(_Leap(self._leap))

    def time(self) -> float:
        """Seconds of virtual time."""
        return self.now

    def _leap(self, seconds: float) -> None:
        self.now += seconds


class _VirtualThread:
    """Stands for a thread with a loop of its own: its callbacks run on the simulation's loop."""

    def __init__(self, *_: object) -> None:
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Nothing is to be started."""

    def call(self, callback: Callable[[*_Ts], object], *args: *_Ts) -> None:
        """Run a callback soon, in an empty context."""
        self._loop.call_soon(callback, *args, context=Context())

    def stop(self, timeout: float) -> None:
        """Nothing is to be stopped."""


@contextmanager
def virtual_threads() -> Generator[None]:
    """Let workers and judges that are made inside the block run on the simulation's loop."""
    dispatch = "claimspan_tracing.dispatch"
    with (
        patch(f"{dispatch}.judging.LoopThread", _VirtualThread),
        patch(f"{dispatch}.loop_thread.LoopThread", _VirtualThread),
    ):
        yield


@dataclass(frozen=True, slots=True)
class Traffic:
    """How many queries come, and how good their answers are, second by second."""

    queries: float
    """A second, on the average of a day."""

    swing: float = 0.6
    """The busiest hour has so much more than the average, and the quietest so much less."""

    burst: tuple[float, float] = (15.0 * HOUR, 15.0 * HOUR + 600)
    """When a burst comes, from and to."""

    burst_factor: float = 8.0
    """How many times the queries of an ordinary minute."""

    def rate(self, second: float) -> float:
        """Queries a second."""
        usual = self.queries * (1 + self.swing * math.sin(2 * math.pi * (second / DAY - 0.3)))
        return usual * (self.burst_factor if self.is_burst(second) else 1.0)

    def is_burst(self, second: float) -> bool:
        """Whether the burst is on."""
        return self.burst[0] <= second < self.burst[1]

    def quality(self, second: float) -> float:
        """Mean faithfulness: it moves with the day, and what comes in a burst is worse."""
        usual = 0.8 + 0.08 * math.sin(2 * math.pi * (second / DAY + 0.1))
        return usual - (0.25 if self.is_burst(second) else 0.0)

    def answer(self, second: float, drawn: Random) -> str:
        """An answer: a sign for each of its claims, 1 for what a chunk entails.

        Long answers are worse than short ones, and take longer to judge: what is lost because the
        judge is slow is not lost by chance.
        """
        claims = drawn.choice(CLAIMS)
        entailed = self.quality(second) - 0.03 * (claims - CLAIMS[len(CLAIMS) // 2])
        return "".join("1" if drawn.random() < entailed else "0" for _ in range(claims))

    def true_mean(self, start: float, end: float) -> float:
        """Mean faithfulness of all queries that come in a time."""
        seconds = range(int(start), int(end))
        weights = [self.rate(second) for second in seconds]
        return math.fsum(
            w * self.quality(s) for w, s in zip(weights, seconds, strict=True)
        ) / math.fsum(weights)


class Endpoint:
    """A model behind an endpoint: so many calls at once, a price, and hours in which it is away."""

    def __init__(self, concurrency: int, outages: Sequence[tuple[float, float]] = ()) -> None:
        """Set what it can do.

        Args:
            concurrency: Calls that it answers at once; others wait for their turn.
            outages: When it refuses connections, from and to.
        """
        self.usage = Usage()
        """What all calls have cost."""
        self._turns = asyncio.Semaphore(concurrency)
        self._outages = outages

    async def call(self, seconds: float, usage: Usage) -> None:
        """Answer one call.

        Raises:
            JudgeUnavailableError: It is away.
        """
        now = asyncio.get_running_loop().time()
        if any(start <= now < end for start, end in self._outages):
            await asyncio.sleep(0.1)
            raise JudgeUnavailableError("the judge refused the connection")
        async with self._turns:
            await asyncio.sleep(seconds)
        self.usage += usage


class SimulatedJudge:
    """Judges by the signs of an answer, at the price and the pace of a small model.

    It reserves each call on the budget, and reports it, as ``OpenAIJudge`` does.
    """

    name = "simulated"

    def __init__(self, endpoint: Endpoint, seconds: float, price: Price) -> None:
        """Set the endpoint.

        Args:
            endpoint: Answers the calls.
            seconds: For each claim of a call.
            price: Of its tokens.
        """
        self._endpoint = endpoint
        self._seconds = seconds
        self._price = price

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """One call; each sign is a claim."""
        await self._call(len(text), prompt=700)
        return [Claim(text=sign) for sign in text]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """One call; a claim of 1 is entailed."""
        await self._call(len(claims), prompt=3000)
        rows = [[_VERDICTS[claim.text]] * len(references) for claim in claims]
        return VerdictMatrix.of(rows, len(references))

    async def _call(self, claims: int, prompt: int) -> None:
        most, used = self._usage(prompt, 800), self._usage(prompt, 40 * claims)
        budget = current_budget()
        if budget is None:
            await self._endpoint.call(self._seconds * claims, used)
        else:
            async with budget.reserve(most) as reservation:
                reservation.spent = Usage(calls=1)  # what is refused costs nothing
                await self._endpoint.call(self._seconds * claims, used)
                reservation.spent = used
        add_usage(used)

    def _usage(self, prompt: int, completion: int) -> Usage:
        return Usage(
            calls=1,
            input_tokens=prompt,
            output_tokens=completion,
            cost_usd=self._price.of(prompt, completion),
        )


_VERDICTS: Final = {"1": Verdict(label=Label.ENTAILED), "0": Verdict(label=Label.NEUTRAL)}
