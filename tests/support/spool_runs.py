"""Kills a service again and again, and reads what is left of its records."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from claimspan_tracing.job import JobKey
from claimspan_tracing.trace_file.spans import Skipped, TraceSpan, read_spans

from spool_victim import FILE, LEASE_SECONDS, TRACES, WHOLE

__all__ = ["WHOLE", "Aftermath", "Victim", "kill_and_restart", "read_aftermath"]

VICTIM = Path(__file__).parent / "spool_victim.py"


class Victim:
    """A running service, whose lines go to a file, as a pipe would be cut by its end."""

    def __init__(
        self,
        folder: Path,
        *,
        seconds: float = 30.0,
        queries: int = 0,
        judge_seconds: float = 0.0,
        hold_seconds: float = 30.0,
        pipeline: str = "by hand",
    ) -> None:
        self._said = folder / f"said-{time.monotonic_ns()}.txt"
        numbers = (seconds, queries, judge_seconds, hold_seconds)
        arguments = [str(folder), *map(str, numbers), pipeline]
        with self._said.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, str(VICTIM), *arguments], stdout=out, stderr=subprocess.STDOUT
            )

    @property
    def lines(self) -> list[str]:
        return self._said.read_text(encoding="utf-8").splitlines()

    def wait_for(self, word: str, seconds: float = 60.0) -> str:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = [line for line in self.lines if line.startswith(word)]
            if found:
                return found[0]
            assert self.process.poll() is None or time.monotonic() < deadline, self.lines
            time.sleep(0.01)
        raise AssertionError(f"no {word!r} within {seconds:g} s: {self.lines[-20:]}")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def end(self, seconds: float = 60.0) -> int:
        return self.process.wait(seconds)

    @property
    def acknowledged(self) -> set[JobKey]:
        said = self._said.read_text(encoding="utf-8")
        whole = said[: said.rfind("\n") + 1].splitlines()
        words = [line.split() for line in whole if line.startswith("acknowledged")]
        return {(trace_id, span_id) for _, trace_id, span_id in words}


@dataclass
class Aftermath:
    """What a backend shows that keeps one span for each id, and what the spool still has."""

    traces: dict[str, dict[str, TraceSpan]] = field(default_factory=dict[str, dict[str, TraceSpan]])
    conflicting: list[JobKey] = field(default_factory=list[JobKey])
    left: dict[str, int] = field(default_factory=dict[str, int])
    integrity: str = ""

    def scored(self, key: JobKey) -> list[TraceSpan]:
        """The spans that show the scores of a record as a whole: the root, or a carrier."""
        spans = self.traces.get(key[0], {}).values()
        name = "claimspan.score.faithfulness"
        return [s for s in spans if name in s.attributes and s.name != "chat"]

    def names(self, key: JobKey) -> set[str]:
        return {span.name for span in self.traces.get(key[0], {}).values()}


def kill_and_restart(
    folder: Path,
    kills: int,
    *,
    rng: random.Random,
    judge_seconds: float,
    hold_seconds: float = 30.0,
    pipeline: str = "by hand",
) -> set[JobKey]:
    """Kill a service at random moments, let the last one finish, and return all acknowledged."""
    acknowledged: set[JobKey] = set()
    for _ in range(kills):
        victim = Victim(
            folder,
            queries=60,
            judge_seconds=judge_seconds,
            hold_seconds=hold_seconds,
            pipeline=pipeline,
        )
        victim.wait_for("acknowledged")
        time.sleep(rng.uniform(0.0, 1.2))
        victim.kill()
        acknowledged |= victim.acknowledged
    survivor = Victim(folder, seconds=3 * LEASE_SECONDS, judge_seconds=0.0)
    survivor.wait_for("idle")
    assert survivor.end() == 0, survivor.lines
    return acknowledged


def read_aftermath(folder: Path) -> Aftermath:
    result = Aftermath()
    traces: defaultdict[str, dict[str, TraceSpan]] = defaultdict(dict)
    for span in read_spans(folder / TRACES, Skipped(folder / TRACES)):
        trace_id, span_id = span.key
        first = traces[trace_id].setdefault(span_id, span)
        if first != span:
            result.conflicting.append(span.key)
    result.traces = dict(traces)
    with sqlite3.connect(folder / FILE) as database:
        result.integrity = str(database.execute("PRAGMA integrity_check").fetchone()[0])
        states = database.execute("SELECT state, count(*) FROM records GROUP BY state")
        result.left = dict(states.fetchall())
    database.close()
    return result
