"""A script that ends right after its first query gets its scores. Rows F7 and F13 of the matrix."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from claimspan.concurrency import DaemonPool
from claimspan_tracing.dispatch.daemon_executor import SPARE_THREADS, DaemonExecutor

from judge_server import JudgeServer, judge_server

SUPPORT: Final = Path(__file__).parents[1] / "support"

# The spans are exported one by one, so that the only thing that can be late is the judge.
SCRIPT: Final = """
import asyncio, atexit, json, sys, threading

sys.path.insert(0, sys.argv[1])
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from claimspan.judges import LexicalJudge
from claimspan_tracing import Monitor
from exit_judges import ask


class Printing(SpanExporter):
    def export(self, spans):
        for span in spans:
            if "claimspan.evaluation.status" in span.attributes:
                print(json.dumps(dict(span.attributes)), flush=True)
        return SpanExportResult.SUCCESS


class ThreadedJudge(LexicalJudge):
    async def check(self, claims, references, *, question=None):
        await asyncio.to_thread(len, "")
        return await super().check(claims, references, question=question)


def refuse(self):
    raise RuntimeError("can't create new thread at interpreter shutdown")


if sys.argv[2] == "threads":
    judge = ThreadedJudge()
else:
    from claimspan.judges import OpenAIJudge
    judge = OpenAIJudge("stub", base_url=sys.argv[2])
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(SimpleSpanProcessor(Printing()))
monitor = Monitor(judge=judge, sample=1.0, tracer_provider=provider)
ask(monitor, "q")
if sys.argv[3] == "no threads":
    # What Python does from 3.12 on; registered last, so that it runs before the monitor's own.
    atexit.register(lambda: setattr(threading.Thread, "start", refuse))
"""


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


def root_of_script(*arguments: str) -> dict[str, object]:
    """The attributes of the root span of a script that ends after its first query."""
    command = [sys.executable, "-c", SCRIPT, str(SUPPORT), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    root: dict[str, object] = json.loads(line)
    return root


@pytest.mark.parametrize("threads", ["threads", "no threads"])
def test_a_judge_finds_its_endpoint_by_name_while_the_interpreter_shuts_down(
    server: JudgeServer, threads: str
) -> None:
    root = root_of_script(server.url.replace("127.0.0.1", "localhost"), threads)

    assert root["claimspan.evaluation.status"] == "evaluated"
    assert "claimspan.score.faithfulness" in root
    assert server.calls > 0


def test_a_judge_that_works_on_threads_works_while_the_interpreter_shuts_down() -> None:
    root = root_of_script("threads", "no threads")

    assert root["claimspan.evaluation.status"] == "evaluated"


# --- the parts ---


def refuse(_: threading.Thread) -> None:
    raise RuntimeError("can't create new thread at interpreter shutdown")


def test_the_spare_threads_take_over_where_none_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    executor = DaemonExecutor()
    try:
        monkeypatch.setattr(threading.Thread, "start", refuse)
        results = [executor.submit(pow, 2, i) for i in range(2 * SPARE_THREADS)]

        assert [each.result(10) for each in results] == [2**i for i in range(2 * SPARE_THREADS)]
    finally:
        executor.shutdown()


def test_the_spare_threads_end_with_their_executor() -> None:
    before = set(threading.enumerate())
    executor = DaemonExecutor()
    spare = set(threading.enumerate()) - before

    executor.shutdown()
    for thread in spare:
        thread.join(10)

    assert len(spare) == SPARE_THREADS
    assert not any(thread.is_alive() for thread in spare)
    assert all(thread.daemon for thread in spare)


async def test_a_pool_without_threads_runs_its_functions_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = DaemonPool(2, name="never-started")
    monkeypatch.setattr(threading.Thread, "start", refuse)

    power, thread = await asyncio.gather(pool.run(pow, 2, 3), pool.run(threading.get_ident))

    assert (power, thread) == (8, threading.get_ident())
