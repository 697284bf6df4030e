"""The ways in which scores come to a backend, over the wire, from real pipelines.

Each way asks one query through a driver, and returns the requests that arrived.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from opentelemetry.sdk.trace import TracerProvider

from claimspan_tracing import Monitor, configure

from otlp_receiver import Answer, Receiver, receiver
from pipelines import Driver, Passage, Recipe
from processes import run_python
from spool_jobs import rows
from support import ScriptedJudge

__all__ = [
    "DRIVERS",
    "LONG",
    "QUERY",
    "WAYS",
    "GatedJudge",
    "Way",
    "asked",
    "crash",
    "late",
    "sending",
]

QUERY: Final = "the question"


def _langchain() -> Driver:
    from lc_driver import LangChainDriver

    return LangChainDriver()


def _llama_index() -> Driver:
    from li_driver import LlamaIndexDriver

    return LlamaIndexDriver()


def _haystack() -> Driver:
    from hs_driver import HaystackDriver

    return HaystackDriver()


# Each loads its framework when it is called: a process that is killed needs one of them.
DRIVERS: Final[Sequence[Callable[[], Driver]]] = (_langchain, _llama_index, _haystack)

_CLAIMS: Final = tuple(f"Claim {n} über {'größe ' * 400}end" for n in range(4))
"""Each longer than Tempo's attributes, of characters that take two bytes."""

LONG: Final = Recipe(
    passages=[
        Passage(f"{_CLAIMS[n % 2]}. Passage {n}", f"a-document-with-a-long-id-{n:040}", 0.5)
        for n in range(90)
    ],
    answer=". ".join(_CLAIMS),
)
"""More chunks and longer claims than fit on a span; half of the claims are supported."""


class GatedJudge(ScriptedJudge):
    """A judge that waits until its gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.is_open = False

    async def _act(self) -> None:
        while not self.is_open:
            self.delay = 0.02
            await super()._act()
        self.delay = 0.0


@dataclass
class Sending:
    """A receiver with the provider that sends to it, and a place for files."""

    received: Receiver
    provider: TracerProvider
    folder: Path

    def monitor(
        self, judge: ScriptedJudge, *, hold_seconds: float = 60.0, spool: bool = False
    ) -> Monitor:
        """A monitor that evaluates everything."""
        return Monitor(
            judge,
            sample=1.0,
            tracer_provider=self.provider,
            hold_seconds=hold_seconds,
            spool=self.folder / "spool.db" if spool else None,
            max_cpu_share=1.0,
        )

    def until(self, is_true: Callable[[], bool]) -> None:
        """Wait for a condition; a minute at most."""
        deadline = time.monotonic() + 60
        while not is_true():
            assert time.monotonic() < deadline
            time.sleep(0.02)


@contextmanager
def sending(folder: Path, *, max_bytes: int | None = None) -> Generator[Sending]:
    """A receiver, and the provider that ``configure`` makes for it."""
    with receiver(max_bytes=max_bytes) as received:
        provider = configure(endpoint=received.url, service_name="by-rule")
        try:
            yield Sending(received, provider, folder)
        finally:
            provider.shutdown()


@contextmanager
def asked(driver: Driver, monitor: Monitor, recipe: Recipe = LONG) -> Generator[None]:
    """Ask the query through a pipeline with the monitor, and shut the monitor down afterwards."""
    detach = driver.attach(monitor)
    try:
        driver.build(recipe).run(QUERY)
        yield
        assert monitor.stats.faults == 0
    finally:
        detach()
        monitor.shutdown(5.0)


def inline(driver: Driver, at: Sending) -> None:
    """The scores are there before the hold is over: they are on the spans of the query."""
    monitor = at.monitor(ScriptedJudge())
    with asked(driver, monitor):
        assert monitor.flush(60)


def late(driver: Driver, at: Sending) -> None:
    """The spans have ended without scores, and the scores follow on a carrier."""
    judge = GatedJudge()
    # Long enough for the judge to begin: what waits for its turn until then is not evaluated.
    monitor = at.monitor(judge, hold_seconds=3.0)
    with asked(driver, monitor):
        at.until(lambda: monitor.stats.dropped.get("timeout") == 1)
        at.provider.force_flush()
        judge.is_open = True
        monitor.flush(60)
        at.until(lambda: monitor.stats.late == 1)


def sent_again(driver: Driver, at: Sending) -> None:
    """The backend has stored the spans and answered with an error: the spool sends them again."""
    at.received.answers.extend([Answer(500), Answer(500)])
    monitor = at.monitor(ScriptedJudge(), spool=True)
    with asked(driver, monitor):
        at.until(lambda: monitor.flush(1.0) and not rows(at.folder / "spool.db"))


def made_again(driver: Driver, at: Sending) -> None:
    """The process was killed while it held its spans: another one makes them again."""
    crash(driver, at.folder)
    monitor = at.monitor(ScriptedJudge(), spool=True)
    try:
        at.until(lambda: monitor.flush(0.5) and not rows(at.folder / "spool.db"))
        assert monitor.stats.recovered == 1
        assert monitor.stats.faults == 0
    finally:
        monitor.shutdown(5.0)


Way = Callable[[Driver, Sending], None]
WAYS: Final[Sequence[Way]] = (inline, late, sent_again, made_again)

_CRASH: Final = """
import os, signal, time
import claimspan_tracing.spool.spool as spool
spool.LEASE_SECONDS = 0.6
from sent_ways import DRIVERS, LONG, QUERY
driver = DRIVERS[int(os.environ["DRIVER"])]()
monitor = Monitor(
    ScriptedJudge(delay=600.0),
    sample=1.0,
    spool="spool.db",
    hold_seconds=600.0,
    tracer_provider=configure(file="never-written.jsonl", service_name="by-rule"),
)
driver.attach(monitor)
driver.build(LONG).run(QUERY)
while not monitor.stats.spooled:
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""


def crash(driver: Driver, folder: Path) -> None:
    """Ask the query in a process that is killed as soon as the spool has its record."""
    number = [make().name for make in DRIVERS].index(driver.name)
    ended = run_python(_CRASH, folder, DRIVER=str(number), HAYSTACK_TELEMETRY_ENABLED="False")
    assert ended.code == -signal.SIGKILL, ended.stderr
