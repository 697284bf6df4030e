"""LangGraph's own development server, which makes every call raise that blocks its event loops."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from pydantic import JsonValue

from claimspan.report import ReportEntry
from claimspan_tracing.trace_file.records import read_trace_file

from environments import ROOT, SOURCES, environment
from pipelines import answer_to, passages_for
from processes import TRACES
from redis_server import free_port
from web_server import WebServer

SUPPORT = ROOT / "tests" / "support"
AT_ONCE = 4

WEB = """
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from langgraph_monitor import monitor

@asynccontextmanager
async def lifespan(app):
    yield
    await monitor.aflush(timeout=10)

app = Starlette(lifespan=lifespan)
"""
"""The application's own part of the server, as its documentation adds one."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[WebServer]:
    """The server with our graph, as its documentation sets one up."""
    python = environment("langgraph", ROOT / "requirements" / "langgraph.txt")
    agent = SUPPORT / "langgraph_agent.py"
    (tmp_path / "web.py").write_text(WEB, encoding="utf-8")
    settings = {
        "dependencies": ["."],
        "graphs": {"agent": f"{agent}:graph"},
        "http": {"app": "./web.py:app"},
    }
    (tmp_path / "langgraph.json").write_text(json.dumps(settings), encoding="utf-8")
    port = free_port()
    server = WebServer(f"http://127.0.0.1:{port}", tmp_path)
    options = ["--no-browser", "--no-reload", "--port", str(port), "--n-jobs-per-worker", "4"]
    try:
        server.start(
            [str(python.with_name("langgraph")), "dev", *options],
            "/ok",
            PYTHONPATH=os.pathsep.join((SOURCES, str(SUPPORT))),
            LANGSMITH_TRACING="false",
            LANGGRAPH_CLI_NO_ANALYTICS="1",
        )
        yield server
    finally:
        server.kill()


def ask(server: WebServer, question: str, how: str = "wait", **options: str) -> str:
    body: dict[str, JsonValue] = {"assistant_id": "agent", "input": {"question": question}}
    return server.post(f"/runs/{how}", body | options)


def traced(server: WebServer) -> dict[str, ReportEntry]:
    """The records in its trace file by what was asked; each question was asked once."""
    entries = read_trace_file(server.folder / TRACES)
    by_query = {entry.query: entry for entry in entries}
    assert len(by_query) == len(entries)
    return by_query


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM], ids=lambda each: each.name)
def test_every_run_has_its_scores_in_its_trace_however_the_server_is_ended(
    server: WebServer, end: signal.Signals
) -> None:
    asked = ["waited", *(f"at once {number}" for number in range(AT_ONCE)), "values", "messages"]

    answers = [ask(server, "waited")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers += pool.map(partial(ask, server), asked[1 : AT_ONCE + 1])
    answers += [ask(server, mode, "stream", stream_mode=mode) for mode in ("values", "messages")]
    server.stop(end)

    entries = traced(server)
    assert set(entries) == set(asked)
    for query, answer in zip(asked, answers, strict=True):
        entry = entries[query]
        assert answer_to(query) in answer
        assert entry.response == answer_to(query)
        assert [each.text for each in entry.chunks] == [each.text for each in passages_for(query)]
        assert entry.scores["faithfulness"] == 0.5
    assert "Blocking call" not in server.log
    assert "claimspan failed" not in server.log


def test_a_node_that_blocks_is_caught_as_without_us(server: WebServer) -> None:
    ask(server, "asked before")
    ask(server, "blocks the loop")

    assert "Blocking call to time.sleep" in server.log
    server.stop(signal.SIGINT)
    assert traced(server)["asked before"].scores["faithfulness"] == 0.5
