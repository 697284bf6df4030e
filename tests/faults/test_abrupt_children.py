"""Children that end by ``os._exit`` right after their job, and spools that no traffic empties.

Row F19 of the reliability matrix.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import run
from processes import environment, run_python, statuses_in

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

SECONDS = 60.0
"""No test waits for longer."""

JOB = """
import os, sys
{before}
def work(number):
    from claimspan.judges import LexicalJudge
    from claimspan_tracing import Monitor, current_record, observe
    from claimspan_tracing.spool import spool
    spool.LEASE_SECONDS = 1.0  # so that nobody waits for long until it counts as dead
    global monitor
    if "monitor" not in globals():
        monitor = Monitor(LexicalJudge(), {options})
    @observe(monitor=monitor)
    def answer(question):
        current_record().retrieved(["The Drava is 725 km long."])
        return "The Drava is 725 km long."
    answer(f"How long is it? {{number}}")

for number in range(3):
    pid = os.fork()
    if pid == 0:
        work(number)
        os._exit(0)
    os.waitpid(pid, 0)
print("done", flush=True)
"""
"""As RQ's worker does: a child for each job, which imports what the job needs, and ends at once."""


def rows(file: Path) -> dict[str, int]:
    """What `claimspan spool` says of a file."""
    states: dict[str, int] = json.loads(run("spool", str(file), "--json"))["states"]
    return states


@pytest.mark.parametrize("before", ["", "import claimspan_tracing"])
def test_with_a_spool_a_child_that_ends_at_once_leaves_its_record_on_disk(
    tmp_path: Path, before: str
) -> None:
    code = JOB.format(before=before, options='spool="spool.db"')

    ended = run_python(code, tmp_path)

    assert ended.words == ["done"], ended.stderr
    assert sum(rows(tmp_path / "spool.db").values()) == 3


def test_the_command_judges_what_is_left_in_a_spool_and_empties_it(tmp_path: Path) -> None:
    run_python(JOB.format(before="", options='spool="spool.db"'), tmp_path)

    shown = subprocess.run(
        [sys.executable, "-m", "claimspan", "spool", "spool.db", "--judge", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=90,
        check=True,
    )

    assert json.loads(shown.stdout)["judged"] == {"evaluated": 3}
    assert rows(tmp_path / "spool.db") == {}
    assert statuses_in(tmp_path) == {"evaluated": 3}


def test_a_monitor_with_a_spool_takes_over_without_a_query_of_its_own(tmp_path: Path) -> None:
    run_python(JOB.format(before="", options='spool="spool.db"'), tmp_path)
    code = """
monitor = Monitor("lexical", spool="spool.db")
deadline = time.monotonic() + 60
while monitor.stats.evaluated < 3 and time.monotonic() < deadline:
    time.sleep(0.1)
print(monitor.stats.recovered, monitor.stats.evaluated)
"""

    ended = run_python(code, tmp_path)

    assert ended.words == ["3", "3"], ended.stderr
    assert rows(tmp_path / "spool.db") == {}


def test_a_worker_of_a_spool_judges_what_comes_until_it_is_stopped(tmp_path: Path) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-m", "claimspan", "worker", "--spool", "spool.db", "--judge", "lexical"],
        cwd=tmp_path,
        env=environment(),
    )
    try:
        run_python(JOB.format(before="", options='spool="spool.db"'), tmp_path)
        deadline = time.monotonic() + SECONDS
        while statuses_in(tmp_path) != {"evaluated": 3} and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        worker.send_signal(signal.SIGTERM)
        code = worker.wait(30)

    assert code == 0
    assert rows(tmp_path / "spool.db") == {}


def test_without_a_spool_one_line_says_what_to_do(tmp_path: Path) -> None:
    ended = run_python(JOB.format(before="", options=""), tmp_path)

    lines = [line for line in ended.stderr.splitlines() if "os._exit" in line or "RQ" in line]
    assert len(lines) == 3, "one for each child"
    assert "serverless=True" in lines[0]
    assert "spool=FILE" in lines[0]


def test_a_pool_that_is_terminated_is_warned_of_and_one_that_is_joined_is_served(
    tmp_path: Path,
) -> None:
    code = """
import multiprocessing
from claimspan_tracing import current_record, observe
monitor = Monitor("lexical")
@observe(monitor=monitor)
def answer(question):
    current_record().retrieved(["The Drava is 725 km long."])
    return "The Drava is 725 km long."
with multiprocessing.get_context("fork").Pool(1) as pool:
    pool.map(answer, ["a", "b"])
"""
    ended = run_python(code, tmp_path)

    assert ended.stderr.count("with multiprocessing.Pool") == 1, ended.stderr


def test_a_process_that_was_not_forked_is_not_warned(tmp_path: Path) -> None:
    # As the reloaders of Flask and Django do: the same program once more, by the same command.
    code = """
import subprocess
if "AGAIN" not in os.environ:
    again = subprocess.run(sys.orig_argv, env={**os.environ, "AGAIN": "1"})
    sys.exit(again.returncode)
ask(Monitor(ScriptedJudge()), "a")
"""
    ended = run_python(code, tmp_path)

    assert (ended.code, ended.stderr) == (0, "")
