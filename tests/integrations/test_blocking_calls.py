"""Records where each call raises that blocks an event loop, as LangGraph's development server does.

Blockbuster sees to that; here it watches everything that it knows of. The newest version keeps its
switch on the thread, and the one of the oldest environment in a context variable.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from judge_server import judge_server
from processes import SUPPORT, WATCHDOG_SECONDS, environment, statuses_in

QUERIES = 6
"""What the application asks: one after the other, as a stream, and four at once."""

OPTIONS = ["child", "endpoint", "files", "calls", "feedback"]
if find_spec("onnxruntime") is not None:  # the oldest environment has none
    OPTIONS.append("local")


@dataclass(frozen=True)
class Told:
    """What the application has seen."""

    complete: bool
    """Whether ``aflush`` has found everything written."""

    checked: bool
    """Whether ``acheck`` has found everything right."""

    raised: list[bool]
    """What its own calls that block did, whatever else ran in their task."""

    evaluated: int
    faults: int
    undelivered: int
    spooled: int
    truths: int
    taken: int
    log: str


@pytest.fixture
def judge_url() -> Iterator[str]:
    with judge_server() as server:
        yield server.url


def run(folder: Path, framework: str, when: str, option: str, **variables: str) -> Told:
    """Run the application to its end, and see that nothing of ours was in its way."""
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "watched_app.py"), framework, when, option],
        cwd=folder,
        env=environment(HAYSTACK_TELEMETRY_ENABLED="False", **variables),
        capture_output=True,
        text=True,
        timeout=WATCHDOG_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = Told(**json.loads(done.stdout.splitlines()[-1]), log=done.stderr)
    assert "Blocking call" not in told.log
    assert told.faults == 0, told.log
    return told


@pytest.mark.parametrize("when", ["before", "within"])
@pytest.mark.parametrize("framework", ["lc", "li", "hs"])
def test_an_asynchronous_pipeline_is_scored_and_its_own_blocking_calls_still_raise(
    framework: str, when: str, tmp_path: Path
) -> None:
    told = run(tmp_path, framework, when, "words")

    assert (told.complete, told.checked, told.evaluated) == (True, True, QUERIES)
    assert statuses_in(tmp_path) == {"evaluated": QUERIES}
    assert told.raised == [True]


@pytest.mark.parametrize("option", OPTIONS)
def test_what_a_monitor_reads_writes_and_calls_may_block_its_own_threads(
    option: str, tmp_path: Path, judge_url: str
) -> None:
    told = run(tmp_path, "lc", "within", option, JUDGE_URL=judge_url)

    assert (told.complete, told.evaluated, told.undelivered) == (True, QUERIES, 0)
    assert told.truths == (QUERIES if option in {"files", "calls"} else 0)
    assert told.spooled == (QUERIES if option == "files" else 0)
    assert told.taken == (2 * QUERIES if option == "calls" else 0)
    assert told.raised == [True]
