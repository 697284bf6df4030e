"""Detaching while other threads run pipelines: never an error in them, and no run is left open.

Row F11 of the reliability matrix; LangChain's own race is in ``test_lc_process.py``.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from hs_driver import HaystackDriver
from lc_driver import LangChainDriver
from li_driver import LlamaIndexDriver
from pipelines import Driver, Recipe, answer_to
from support import MonitorFactory

SECONDS: Final = 2.0
THREADS: Final = 4


@pytest.mark.parametrize("driver", [LlamaIndexDriver(), HaystackDriver(), LangChainDriver()])
def test_attaching_and_detaching_while_others_run_is_not_seen_by_them(
    make_monitor: MonitorFactory, driver: Driver
) -> None:
    monitor, done = make_monitor(sample=0.0), threading.Event()

    def ask(worker: int) -> int:
        n = 0
        while not done.is_set():
            query = f"question {worker} {n}"
            assert driver.build(Recipe()).run(query) == answer_to(query)
            n += 1
        return n

    def switch() -> int:
        n, until = 0, time.monotonic() + SECONDS
        while time.monotonic() < until:
            undo = driver.attach(monitor)
            time.sleep(0.002)
            undo()
            undo()
            n += 1
        return n

    with ThreadPoolExecutor(THREADS + 2) as pool:
        asked = [pool.submit(ask, i) for i in range(THREADS)]
        switches = [pool.submit(switch) for _ in range(2)]
        switched = sum(each.result() for each in switches)
        done.set()
        queries = sum(each.result() for each in asked)
    monitor.flush()

    assert switched > 10
    assert queries > THREADS
    # Some were asked while we were attached, and none of those is left open.
    assert monitor.stats.produced > 0
    assert monitor.stats.pending == 0
    assert len(monitor.engine.table.runs) == 0
