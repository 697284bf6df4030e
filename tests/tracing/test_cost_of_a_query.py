"""What claimspan takes of the processor. Rows L1 and L6 of the reliability matrix, in short form.

Processor time alone is asserted, which does not grow with what else a machine does, and with room
for slow ones. ``tests/benchmarks`` measures what a user waits for.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from claimspan import RagRecord
from claimspan.evaluation.evaluate import aevaluate_many

from judged import RECORD, make_judge
from processes import environment

TESTS: Final = Path(__file__).parents[1]
CALLER_MILLISECONDS: Final = 0.3
"""What a query may cost its caller."""

CALL_MILLISECONDS: Final = 2.5
"""What a call of the judge may cost this process, with all that is around it."""

ROOM: Final = 10
"""How much slower the machine of a test may be."""


def test_the_callback_takes_little_of_the_callers_time(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            TESTS / "benchmarks" / "overhead.py",
            "--rounds=3",
            "--queries=60",
            "--json",
        ],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )

    for subject, figures in json.loads(done.stdout).items():
        assert figures["caller +ms"] < ROOM * CALLER_MILLISECONDS, subject


@pytest.fixture
def url() -> Iterator[str]:
    """A judge's server in a process of its own, so that its work is not counted as ours."""
    command = [sys.executable, str(TESTS / "support" / "judge_server.py"), "--latency=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def test_a_judge_call_takes_little_of_the_processor(url: str) -> None:
    # No text twice, as the judge asks about none again.
    records = [changed(number) for number in range(40)]
    judge = make_judge(url)
    asyncio.run(aevaluate_many(records[:5], judge=judge, progress=False))  # connections, imports

    started = time.process_time()
    done = asyncio.run(aevaluate_many(records[5:], judge=judge, progress=False))
    milliseconds = 1e3 * (time.process_time() - started)

    assert [each.error for each in done if each.error] == []
    assert milliseconds / sum(each.usage.calls for each in done) < ROOM * CALL_MILLISECONDS


def changed(number: int) -> RagRecord:
    """The record with a sentence of its own."""
    return RECORD.model_copy(
        update={
            "response": f"{RECORD.response} It has {number} rooms.",
            "ground_truth": f"{RECORD.ground_truth} It has {number} rooms.",
        }
    )
