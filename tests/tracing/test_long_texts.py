"""Texts that are too long for a short step are judged in a process of their own.

Row F20 of the reliability matrix.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from claimspan.judges import LexicalJudge
from claimspan.text.sentences import split_prose
from claimspan_tracing.dispatch.judging import STEP_CHARACTERS
from claimspan_tracing.testing import CapturedRecord, InMemoryMonitor
from portable_judges import Obeys, pid_in

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="a process of its own is not supported here"
)

SECONDS = 60.0
HOSTILE = "“!" * 32_000
"""Of all texts, native code reads this the slowest; other threads wait for each of its steps."""


def ask(monitor: InMemoryMonitor, answer: str, *chunks: str) -> None:
    with monitor.record("How long is it?") as record:
        record.retrieved(list(chunks))
        record.answered(answer)


def test_a_short_text_is_judged_in_this_process_and_a_long_one_in_another(tmp_path: Path) -> None:
    with InMemoryMonitor(judge=Obeys(str(tmp_path))) as monitor:
        ask(monitor, "one", "It is 725 km long.")
        monitor.records(SECONDS)
        assert pid_in(tmp_path) == os.getpid()

        ask(monitor, "one", "It is 725 km long. " * STEP_CHARACTERS)
        monitor.records(SECONDS)
        assert pid_in(tmp_path) != os.getpid()


def test_the_scores_of_a_long_text_are_those_of_a_thread() -> None:
    found: list[CapturedRecord] = []
    for worker in (None, "thread"):
        with InMemoryMonitor(judge=LexicalJudge(), worker=worker) as monitor:
            ask(monitor, "It is 725 km long.", "The Drava is 725 km long. " * 400)
            found.append(monitor.only_record(SECONDS))

    assert found[0].scores == found[1].scores
    assert found[0].status == "evaluated"


def longest_pause(seconds: float) -> float:
    """The longest that a thread waits beyond the millisecond it sleeps, for so many seconds."""
    longest, begin = 0.0, time.monotonic()
    while time.monotonic() - begin < seconds:
        before = time.monotonic()
        time.sleep(0.001)
        longest = max(longest, time.monotonic() - before)
    return longest


def test_one_hostile_text_keeps_neither_other_threads_nor_other_records_waiting() -> None:
    with InMemoryMonitor(judge=LexicalJudge(), hold_seconds=20.0) as monitor:
        ask(monitor, "It is 1 km long.", "It is 725 km long.")
        monitor.records(SECONDS)

        began = time.monotonic()
        list(split_prose(HOSTILE, "en"))
        reads = time.monotonic() - began

        idle = longest_pause(3.0)
        ask(monitor, "It is 725 km long.", HOSTILE + "1", HOSTILE + "2")
        longest = longest_pause(3.0)
        for number in range(5):
            ask(monitor, f"It is 72{number} km long.", "It is 725 km long.")
        deadline = time.monotonic() + SECONDS
        while monitor.stats.evaluated < 6 and time.monotonic() < deadline:
            time.sleep(0.05)

        assert monitor.stats.evaluated >= 6
        # Not even for one reading of it, of which judging takes many, beyond what a busy machine
        # keeps a thread waiting anyway: a reading takes 5 ms on a fast one.
        assert longest < idle + reads


def test_where_no_process_can_be_started_a_long_text_is_judged_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "no python"))
    with InMemoryMonitor(judge=LexicalJudge()) as monitor:
        ask(monitor, "It is 725 km long.", "The Drava is 725 km long. " * 400)

        assert monitor.only_record(SECONDS).status == "evaluated"
