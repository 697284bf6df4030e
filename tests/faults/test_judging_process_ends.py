"""The judging process ends with its application, also where that is killed or has forked."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from portable_judges import is_alive, pid_in

from processes import run_python, start, statuses_in

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="reads the state of processes from /proc"
)

HANGS = """
import time
from claimspan_tracing import Monitor
from exit_judges import ask
from portable_judges import Obeys
monitor = Monitor(Obeys("."), sample=1.0, worker="process")
ask(monitor, "it {does}")
time.sleep(60)
"""

FORKED = """
import os, time
from claimspan_tracing import Monitor
from exit_judges import ask
from portable_judges import Obeys
os.mkdir("child")
monitor = Monitor(Obeys("."), sample=1.0, worker="process")
ask(monitor, "before")
assert monitor.flush(60)
pid = os.fork()
if pid == 0:
    os.chdir("child")  # where its judging process starts, and leaves its id
    ask(monitor, "in the child")
    print("child", monitor.flush(60), monitor.stats.evaluated, os.getpid(), flush=True)
    time.sleep(60)
    os._exit(0)
while not os.path.exists("child/pid"):
    time.sleep(0.01)
ask(monitor, "in the parent")
print("parent", monitor.flush(60), monitor.stats.evaluated, os.getpid(), flush=True)
time.sleep(60)
"""


def ends(pid: int, seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not is_alive(pid)


@pytest.mark.parametrize("does", ["hangs", "blocks"])
def test_no_process_is_left_when_the_application_is_killed(does: str, tmp_path: Path) -> None:
    with start(["-c", HANGS.replace("{does}", does)], tmp_path) as app:
        judging = pid_in(tmp_path)
        assert is_alive(judging)
        app.kill()

        assert ends(judging)


def test_a_fork_has_a_judging_process_of_its_own_and_keeps_none_alive(tmp_path: Path) -> None:
    with start(["-c", FORKED], tmp_path) as app:
        assert app.stdout is not None
        said = dict(app.stdout.readline().split(" ", 1) for _ in range(2))
        forked = int(said["child"].split()[-1])
        judging, judging_for_fork = pid_in(tmp_path), pid_in(tmp_path / "child")
        app.kill()
        try:
            # The fork lives, and has inherited whatever its parent had open.
            assert is_alive(forked)
            assert ends(judging)
            assert is_alive(judging_for_fork)
        finally:
            os.kill(forked, signal.SIGKILL)
        assert ends(judging_for_fork)

    assert said["child"].startswith("True 1 ")
    assert said["parent"].startswith("True 2 ")


def test_an_application_that_ends_has_its_last_records_judged(tmp_path: Path) -> None:
    code = """
from portable_judges import Obeys
monitor = Monitor(Obeys("."), sample=1.0, worker="process", exit_timeout=60)
ask(monitor, "one", "two")
"""
    ended = run_python(code, tmp_path)

    assert (ended.code, ended.stderr) == (0, "")
    assert statuses_in(tmp_path) == {"evaluated": 2}
    assert ends(pid_in(tmp_path))


def test_an_application_whose_judge_hangs_ends_in_its_time(tmp_path: Path) -> None:
    code = """
from portable_judges import Obeys, pid_in
from pathlib import Path
monitor = Monitor(Obeys("."), sample=1.0, worker="process", exit_timeout=1.0)
ask(monitor, "it blocks")
pid_in(Path("."))
says_bye()
"""
    ended = run_python(code, tmp_path)

    assert ended.code == 0
    assert ended.seconds_to_end < 10
    assert statuses_in(tmp_path) == {"shutdown": 1}
    assert ends(pid_in(tmp_path))


def test_a_signal_to_the_whole_group_leaves_the_last_records_to_be_judged(tmp_path: Path) -> None:
    code = """
from portable_judges import Obeys
install_sigterm()
monitor = Monitor(Obeys("."), sample=1.0, worker="process", exit_timeout=60)
ask(monitor, "one")
monitor.flush(60)
judging = int(open("pid").read())
ask(monitor, "two")
os.kill(judging, signal.SIGTERM)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)
"""
    ended = run_python(code, tmp_path)

    assert ended.code == -signal.SIGTERM
    assert statuses_in(tmp_path) == {"evaluated": 2}
