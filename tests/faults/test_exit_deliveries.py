"""The end of the process, and forks, while results are still to be delivered.

Each case is a process of its own, with the real hooks of the interpreter.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Final

import pytest

from processes import run_python

SET_UP: Final = """
import os, threading, time
from opentelemetry.sdk.trace import TracerProvider
from claimspan_tracing import Alert, Monitor
from claimspan_tracing.adapters import Delivery
from exit_judges import ask
from support import ScriptedJudge

def say(*words):  # in one write, so that no other comes in between
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

class Writer:
    def __init__(self, send):
        self.delivery = Delivery("writer", send)
        self.start, self.flush = self.delivery.start, self.delivery.flush
    @property
    def lost(self):
        return self.delivery.lost
    def write(self, finished):
        self.delivery.put(finished.job.record.query)

def monitor_with(**options):
    provider = TracerProvider(shutdown_on_exit=False)
    return Monitor(ScriptedJudge(), sample=1.0, tracer_provider=provider, **options)
"""


def test_the_end_of_the_process_delivers_what_is_left(tmp_path: Path) -> None:
    code = """
def send(items):
    time.sleep(0.3)
    say("sent", *items)
    return ()

async def on_result(finished):
    say("result", finished.job.record.query)

monitor = monitor_with(
    sinks=[Writer(send)],
    on_result=on_result,
    alerts=[Alert("faithfulness", below=0.8, min_records=10)],
    on_alert=lambda event: say(event.state.value),
)
for _ in range(12):
    ask(monitor, "q")
"""
    ended = run_python(SET_UP + code, tmp_path)

    assert ended.code == 0
    assert ended.stdout.split().count("result") == 12
    words = ended.stdout.split()
    assert words.count("q") == 24
    assert words.count("firing") == 1


@pytest.mark.parametrize("option", ["sinks", "on_result", "on_alert"])
def test_what_hangs_adds_nothing_to_the_time_of_the_exit(tmp_path: Path, option: str) -> None:
    code = f"""
hang = lambda *_: threading.Event().wait()
alerts = [Alert("faithfulness", below=0.8, min_records=10)]
options = {{
    "sinks": {{"sinks": [Writer(hang), Writer(hang)]}},
    "on_result": {{"on_result": hang}},
    "on_alert": {{"alerts": alerts, "on_alert": hang}},
}}["{option}"]
monitor = monitor_with(exit_timeout=2.0, **options)
for _ in range(12):
    ask(monitor, "q")
while monitor.stats.evaluated < 12:
    time.sleep(0.01)
print(time.time(), flush=True)
"""
    ended = run_python(SET_UP + code, tmp_path)
    took = time.time() - float(ended.stdout)

    assert ended.code == 0
    # The one deadline of 2 s, and what a busy machine needs to take the interpreter apart.
    assert took < 2.0 + 4.0


def test_a_backend_that_refuses_at_the_end_is_not_waited_for_longer(tmp_path: Path) -> None:
    code = """
def send(items):
    raise ConnectionError

monitor = monitor_with(exit_timeout=2.0, sinks=[Writer(send)])
ask(monitor, "q")
while monitor.stats.evaluated < 1:
    time.sleep(0.01)
print(time.time(), flush=True)
"""
    ended = run_python(SET_UP + code, tmp_path)
    took = time.time() - float(ended.stdout)

    assert ended.code == 0
    assert took < 2.0 + 4.0


def test_sigterm_delivers_the_results_of_what_is_still_evaluated(tmp_path: Path) -> None:
    code = """
from pathlib import Path

def send(items):
    with Path("delivered.txt").open("a") as file:
        file.writelines(f"{query}\\n" for query in items)

install_sigterm()
monitor = Monitor(Slow(), sample=1.0, sinks=[Writer(send)])
for number in range(8):
    ask(monitor, str(number))
print("asked", flush=True)
time.sleep(60)
"""
    ended = run_python(SET_UP + code, tmp_path, kill=signal.SIGTERM)

    assert ended.code == -signal.SIGTERM
    delivered = (tmp_path / "delivered.txt").read_text(encoding="utf-8").split()
    assert sorted(delivered) == sorted(map(str, range(8)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_delivers_its_own_results_alone(tmp_path: Path) -> None:
    code = """
gate, took = threading.Event(), []

def on_result(finished):
    gate.wait(60)
    say(os.getpid() == parent, finished.job.record.query)

def send(items):
    gate.wait(60)
    say("sent", os.getpid() == parent, *items)
    return ()

parent = os.getpid()
monitor = monitor_with(sinks=[Writer(send)], on_result=on_result)
ask(monitor, "parent")
while monitor.stats.evaluated < 1:
    time.sleep(0.01)
pid = os.fork()
gate.set()
if pid == 0:
    ask(monitor, "child")
    os._exit(0 if monitor.flush(30) and monitor.stats.undelivered == 0 else 1)
_, status = os.waitpid(pid, 0)
say("status", os.waitstatus_to_exitcode(status), monitor.flush(30))
"""
    ended = run_python(SET_UP + code, tmp_path)

    assert sorted(ended.stdout.splitlines()) == [
        "False child",
        "True parent",
        "sent False child",
        "sent True parent",
        "status 0 True",
    ]
