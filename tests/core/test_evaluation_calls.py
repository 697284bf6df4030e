"""What the synchronous calls promise beside their result: nothing is paid for in vain."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import cast

import pytest

from claimspan import RagRecord, aevaluate, aevaluate_many, evaluate, evaluate_many
from claimspan.errors import ConfigError
from claimspan.metrics import Undefined
from claimspan.verdicts import Claim, VerdictMatrix

RECORD = RagRecord(query="q", chunks=(), response="The Drava is long.")

# As in a notebook: a loop runs, and the synchronous call waits inside it for the thread of another.
NOTEBOOK = """
import asyncio, signal
from claimspan import RagRecord, evaluate_many
from claimspan.verdicts import VerdictMatrix

class Slow:
    name = "slow"

    async def extract_claims(self, text, *, question=None):
        print("call", flush=True)
        await asyncio.sleep(0.2)
        return []

    async def check(self, claims, references, *, question=None):
        return VerdictMatrix.of([[] for _ in claims], len(references))

async def cell():
    records = [RagRecord(query="q", chunks=(), response="It is.") for _ in range(600)]
    try:
        evaluate_many(records, judge=Slow(), concurrency=1)
    except KeyboardInterrupt:
        print("interrupted", flush=True)

# A kernel of Jupyter runs its loop so; asyncio.run would keep the first interrupt for itself.
signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.new_event_loop().run_until_complete(cell())
"""


class CountingJudge:
    """Counts its calls, and finds no claims."""

    name = "counting"

    def __init__(self) -> None:
        self.calls = 0

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        self.calls += 1
        return []

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        self.calls += 1
        return VerdictMatrix.of([[] for _ in claims], len(references))


def test_a_wrong_option_is_found_before_the_judge_is_paid() -> None:
    judge, wrong = CountingJudge(), cast("Undefined", "zeros")

    with pytest.raises(ConfigError, match="undefined is 'zeros'"):
        evaluate(RECORD, judge=judge, undefined=wrong)
    with pytest.raises(ConfigError, match="undefined is 'zeros'"):
        evaluate_many([RECORD], judge=judge, undefined=wrong)
    with pytest.raises(ConfigError, match="undefined is 'zeros'"):
        asyncio.run(aevaluate_many([], judge=judge, undefined=wrong))
    with pytest.raises(ConfigError, match="max_claims"):
        asyncio.run(aevaluate(RECORD, judge=judge, max_claims=0))
    assert judge.calls == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
def test_an_interrupted_call_in_a_notebook_stops_paying() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", NOTEBOOK], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        # The first call is under way: 600 records of 0.2 s, one after the other, take two minutes.
        assert process.stdout.readline() == "call\n"
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)

    assert "interrupted" in rest
    # What came after it is the judge's last words, not another two minutes of calls.
    assert rest.count("call") < 100
    assert rest.strip().endswith("interrupted")
