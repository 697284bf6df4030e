"""Applications whose threads gevent has made greenlets, which all run on one thread of the system.

What gunicorn's workers do with them is in ``test_exit_sigterm.py``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from claimspan.errors import ConfigError
from claimspan_tracing import Monitor

from processes import start, statuses_in, wait_for

GREENED = """
from gevent import monkey
monkey.patch_all()
import asyncio, json, sys
import gevent
from claimspan.errors import ConfigError
from claimspan_tracing import Monitor
from exit_judges import ask
"""

ASKING = """
taken = []

async def on_result(finished):
    await asyncio.sleep(0)
    taken.append(finished)

async def runs():
    await asyncio.sleep(0)
    return True

if sys.argv[1] == "plain":  # and by a framework, which has locks and threads of its own
    from claimspan_langchain import ClaimspanCallbackHandler
    from lc_pipelines import rag_chain
    def ask(monitor, query):
        rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})

options = {"plain": {}, "serverless": {"serverless": True}, "redact": {"redact": str.upper},
           "on_result": {"on_result": on_result}, "spool": {"spool": "spool.db"}}[sys.argv[1]]
monitor = Monitor(**options)
greenlets = [gevent.spawn(ask, monitor, str(number)) for number in range(30)]
gevent.joinall(greenlets, raise_error=True)
free = asyncio.run(runs())  # raises where a loop of ours runs on the application's thread
flushed = monitor.flush(60)
print(json.dumps([free, flushed, monitor.stats.evaluated, monitor.stats.faults, len(taken)]))
"""

REFUSING = """
try:
    Monitor(judge="lexical", worker="process")
except ConfigError as error:
    print(error)
"""


@pytest.mark.parametrize("option", ["plain", "serverless", "redact", "on_result", "spool"])
def test_queries_in_greenlets_are_evaluated_and_the_application_keeps_its_thread(
    tmp_path: Path, option: str
) -> None:
    ended = wait_for(start(["-c", GREENED + ASKING, option], tmp_path))

    assert ended.code == 0, ended.stderr
    taken = 30 if option == "on_result" else 0
    assert json.loads(ended.stdout) == [True, True, 30, 0, taken]
    assert statuses_in(tmp_path) == {"evaluated": 30}


def test_a_process_of_its_own_is_refused_where_gevent_starts_processes(tmp_path: Path) -> None:
    ended = wait_for(start(["-c", GREENED + REFUSING], tmp_path))

    assert "gevent has patched subprocess: leave it out" in ended.stdout


def test_threads_that_eventlet_has_replaced_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    patcher = ModuleType("eventlet.patcher")
    vars(patcher)["is_monkey_patched"] = ["thread"].__contains__
    monkeypatch.setitem(sys.modules, "eventlet.patcher", patcher)

    with pytest.raises(ConfigError, match=r"with threads or with gevent, such as by gunicorn"):
        Monitor()
