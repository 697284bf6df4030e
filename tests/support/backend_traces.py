"""Traces that an application writes to a backend without claimspan, and the command that judges."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from subprocess import PIPE, CompletedProcess, Popen, run
from typing import Any, Final

from haystack import Pipeline, component
from openinference.instrumentation.haystack import HaystackInstrumentor
from openinference.instrumentation.langchain import LangChainInstrumentor
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from hs_pipelines import Echo as HaystackEcho
from hs_pipelines import Shelf as HaystackShelf
from hs_pipelines import prompt
from lc_pipelines import rag_chain
from li_pipelines import Echo, Shelf, engine_of
from oi_spans import Instrumentor

__all__ = ["FAITHFULNESS", "QUESTIONS", "ask_all", "backfill", "killed", "slow_judge", "started"]

QUESTIONS: Final = tuple(
    f"Where is {place}?" for place in ("the tower", "the mill", "the well", "the barn")
)

FAITHFULNESS: Final = 1.0
"""Of every answer by the lexical judge."""

WATCHDOG_SECONDS: Final = 120.0


@component
class EchoChatGenerator(HaystackEcho):
    """OpenInference knows what a component does by its name."""


@component
class ShelfRetriever(HaystackShelf):
    """As above."""


def _pipeline() -> Pipeline:
    made = Pipeline()
    made.add_component("retriever", ShelfRetriever())
    made.add_component("prompt", prompt())
    made.add_component("llm", EchoChatGenerator())
    made.connect("retriever.documents", "prompt.documents")
    made.connect("prompt.prompt", "llm.messages")
    return made


def ask_all(provider: TracerProvider) -> int:
    """Ask each framework each question, traced by OpenInference; returns the number of traces."""
    pipeline = _pipeline()

    def in_langchain(query: str) -> object:
        return rag_chain().invoke(query)

    def in_llama_index(query: str) -> object:
        return engine_of(Shelf(), Echo()).query(query)

    def in_haystack(query: str) -> object:
        return pipeline.run({"retriever": {"query": query}, "prompt": {"question": query}})

    asked: list[tuple[Instrumentor, Callable[[str], object]]] = [
        (LangChainInstrumentor(), in_langchain),
        (LlamaIndexInstrumentor(), in_llama_index),
        (HaystackInstrumentor(), in_haystack),
    ]
    for instrumentor, ask in asked:
        instrumentor.instrument(tracer_provider=provider)
        for question in QUESTIONS:
            ask(question)
        instrumentor.uninstrument()
    assert provider.force_flush()
    return len(asked) * len(QUESTIONS)


def _command(arguments: tuple[str, ...]) -> list[str]:
    judge = () if "--judge" in arguments else ("--judge", "lexical")
    return [sys.executable, "-m", "claimspan", "backfill", *arguments, *judge]


def _environment(variables: Mapping[str, str] | None) -> dict[str, str]:
    theirs = ("PHOENIX_", "MLFLOW_", "LANGFUSE_", "OTEL_", "CLAIMSPAN_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(theirs)}
    return {**kept, **(variables or {})}


def backfill(
    *arguments: str, folder: Path, variables: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run the command in a process of its own, and return what it says at its end."""
    done: CompletedProcess[str] = run(
        _command((*arguments, "--json")),
        cwd=folder,
        env=_environment(variables),
        capture_output=True,
        text=True,
        timeout=WATCHDOG_SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def killed(*arguments: str, folder: Path, state: str = "claimspan-backfill.db") -> None:
    """Start the command, and kill it as soon as it has noted what it has judged."""
    process = started(*arguments, "--state", state, folder=folder)
    deadline = time.monotonic() + WATCHDOG_SECONDS
    while not _n_judged(folder / state):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.communicate()


def _n_judged(state: Path) -> int:
    if not state.exists():
        return 0
    with closing(sqlite3.connect(state)) as database:
        try:
            return int(database.execute("SELECT count(*) FROM judged").fetchone()[0])
        except sqlite3.OperationalError:  # the table is not there yet
            return 0


def slow_judge(folder: Path, seconds: float = 0.2) -> tuple[str, str]:
    """The option for a judge that takes its time."""
    file = folder / "slow.py"
    file.write_text(
        "from claimspan.testing import ScriptedJudge\n"
        f"judge = ScriptedJudge(delay_seconds={seconds})\n"
    )
    return "--judge", f"{file}:judge"


def started(
    *arguments: str, folder: Path, variables: Mapping[str, str] | None = None
) -> Popen[bytes]:
    """Start the command in a process of its own."""
    environment = _environment(variables)
    return Popen(_command(arguments), cwd=folder, env=environment, stdout=PIPE, stderr=PIPE)
