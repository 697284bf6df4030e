"""Judges for a process of their own: each leaves its process id, and does what a question says."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue

from claimspan import Claim, VerdictMatrix
from claimspan.cost import Usage
from claimspan.cost.budget import current_budget
from claimspan.cost.usage import add_usage, within_record_limits
from claimspan.testing import ScriptedJudge

__all__ = ["Obeys", "Reserves", "Spends", "asked", "is_alive", "pid_in"]

COST = Usage(calls=1, input_tokens=10, output_tokens=2, cost_usd=0.01)


class Obeys(ScriptedJudge):
    """Entails what a reference contains; a word of the question may have it do something else.

    ``waits``: sleep until the process is killed, the first time. ``hangs``: sleep for good.
    ``blocks``: the same, without leaving the event loop. ``dies``: end the process. ``says``: print
    and log something. ``is held``: wait for a file ``go``.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder

    def arguments(self) -> dict[str, JsonValue]:
        return {"folder": self._folder}

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        wanted = question or ""
        pid = Path(self._folder) / "pid"
        again = pid.exists()
        pid.write_text(str(os.getpid()), encoding="utf-8")
        with (pid.parent / "asked").open("a", encoding="utf-8") as asked:
            asked.write(f"{wanted}\n")
        if "hangs" in wanted or ("waits" in wanted and not again):
            await asyncio.sleep(3_600)
        if "blocks" in wanted:
            time.sleep(3_600)
        if "dies" in wanted:
            os._exit(3)
        while "is held" in wanted and not (pid.parent / "go").exists():
            await asyncio.sleep(0.01)
        if "says" in wanted:
            print("printed by the judge", flush=True)
            logging.getLogger("a.judge").warning("logged by the judge")
        return await super().extract_claims(text, question=question)


class Spends(Obeys):
    """Reports what its calls cost, after them."""

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        add_usage(COST)
        return await super().check(claims, references, question=question)


class Reserves(Obeys):
    """Reserves what each call can cost, makes it, and says what it has cost."""

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        budget = current_budget()
        assert budget is not None
        async with within_record_limits(12), budget.reserve(COST) as reservation:
            reservation.spent = COST
            add_usage(COST)
        return await super().check(claims, references, question=question)


def pid_in(folder: Path, seconds: float = 30.0) -> int:
    """The process id of the judge that was asked last, once one was."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        file = folder / "pid"
        if file.exists() and (text := file.read_text(encoding="utf-8")):
            return int(text)
        time.sleep(0.01)
    raise TimeoutError("no judge was asked")


async def asked(folder: Path, question: str, times: int, seconds: float = 60.0) -> None:
    """Wait until the judge was asked a question so many times, in whichever processes."""
    file = folder / "asked"
    async with asyncio.timeout(seconds):
        while not file.exists() or file.read_text("utf-8").splitlines().count(question) < times:
            await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not reaped does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in {"Z", "X"}
