"""Judges that are slow, hang or block, for processes that end while they are asked."""

from __future__ import annotations

import asyncio
import time

from claimspan import Claim
from claimspan_tracing import Monitor

from pipelines import answer_to, passages_for
from support import ScriptedJudge

__all__ = ["Blocking", "Hanging", "Slow", "ask"]


class Slow(ScriptedJudge):
    """Takes some tenths of a second for each call."""

    def __init__(self, delay: float = 0.3) -> None:
        super().__init__(delay=delay)


class Hanging(ScriptedJudge):
    """Never answers, and does not heed its cancellation either."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                continue


class Blocking(ScriptedJudge):
    """Blocks the thread that it is called on."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        time.sleep(3600)
        return []


def ask(monitor: Monitor, *queries: str) -> None:
    """Answer each query, without a framework, whose import takes longer than most scripts."""
    for query in queries:
        with monitor.record(query) as record:
            record.retrieved([passage.text for passage in passages_for(query)])
            record.answered(answer_to(query))
