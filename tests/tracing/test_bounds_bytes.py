"""How much memory records may keep alive: everything that goes into a run or comes out counts.

Rows L4, F14 and I1 of the reliability matrix.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest
from haystack.dataclasses import ChatMessage as HaystackMessage
from haystack.dataclasses import Document as HaystackDocument
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.prompt_values import ChatPromptValue, StringPromptValue
from langchain_core.runnables import RunnableConfig, RunnableLambda
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import NodeWithScore, TextNode

from claimspan_haystack._reader import HaystackReader
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_langchain._reader import LangChainReader
from claimspan_llama_index._reader import LlamaIndexReader
from claimspan_llama_index._snapshots import Call, taken
from claimspan_tracing.adapters import Reader
from claimspan_tracing.capture.weight import MAX_ITEMS, weigh

from lc_pipelines import Shelf, rag_chain
from support import MonitorFactory, Spans, attributes

SUPPORT: Final = Path(__file__).parents[1] / "support"
MIB: Final = 1024 * 1024
TEXT: Final = "x" * 100_000


def text(length: int = len(TEXT)) -> str:
    """A text that is an object of its own."""
    return "".join(["x"] * length)


# --- the measure ---


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        (LangChainReader(), TEXT),
        (LangChainReader(), {"question": TEXT}),
        (LangChainReader(), [Document(page_content=TEXT)]),
        (LangChainReader(), [Document(page_content="", metadata={"whole": TEXT})]),
        (LangChainReader(), {"documents": [Document(page_content=TEXT)]}),
        (LangChainReader(), [[HumanMessage(TEXT)]]),
        (LangChainReader(), StringPromptValue(text=TEXT)),
        (LangChainReader(), ChatPromptValue(messages=[HumanMessage(TEXT)])),
        (LangChainReader(), LLMResult(generations=[[ChatGeneration(message=AIMessage(TEXT))]])),
        (LlamaIndexReader(), taken([NodeWithScore(node=TextNode(text=TEXT))], {})),
        (LlamaIndexReader(), Call(object(), {"query": TEXT})),
        (LlamaIndexReader(), taken(ChatMessage(content=TEXT), {})),
        (LlamaIndexReader(), taken(CompletionResponse(text=TEXT), {})),
        (LlamaIndexReader(), taken(Response(response=TEXT), {})),
        (HaystackReader(), {"documents": [HaystackDocument(content=TEXT)]}),
        (HaystackReader(), {"replies": [HaystackMessage.from_assistant(TEXT)]}),
        (HaystackReader(), {"prompt": TEXT}),
    ],
)
def test_a_text_counts_wherever_it_is(reader: Reader, value: object) -> None:
    # LangChain keeps a second copy of what a chat model says, as the text of the generation.
    copies = 2 if isinstance(value, LLMResult) else 1
    assert len(TEXT) <= weigh([value], reader, set()) < 1.1 * copies * len(TEXT)


def test_the_object_that_llama_index_calls_is_not_the_records() -> None:
    engine = Response(response=TEXT)

    assert weigh([Call(engine, {})], LlamaIndexReader(), set()) < 1_000


def test_the_same_text_counts_once_for_each_query() -> None:
    seen: set[int] = set()
    reader, shared = LangChainReader(), text()

    sizes = [weigh([{"answer": shared}], reader, seen) for _ in range(3)]

    assert sizes[0] >= len(shared)
    assert max(sizes[1:]) < 1_000
    assert weigh([text()], reader, seen) >= len(shared)


@pytest.mark.parametrize(("letter", "width"), [("x", 1), ("ж", 2), ("語", 2), ("🗼", 4)])
def test_a_text_counts_with_the_bytes_that_python_keeps_for_it(letter: str, width: int) -> None:
    value = letter * 10_000

    assert weigh([value], LangChainReader(), set()) == pytest.approx(10_000 * width, rel=0.05)


def test_of_a_long_list_some_items_are_looked_at_and_stand_for_all() -> None:
    looked_at: list[object] = []

    class Watching(LangChainReader):
        def parts(self, value: object) -> Sequence[object]:
            looked_at.append(value)
            return super().parts(value)

    documents = [Document(page_content=text(1_000)) for _ in range(20 * MAX_ITEMS)]
    size = weigh([{"documents": documents}], Watching(), set())

    assert size == pytest.approx(len(documents) * 1_000, rel=0.5)
    assert len(looked_at) <= MAX_ITEMS


def test_a_value_that_holds_itself_is_weighed() -> None:
    loop: list[object] = [TEXT]
    loop.append(loop)
    nested: dict[str, object] = {}
    nested["self"] = nested

    assert weigh([loop], LangChainReader(), set()) >= len(TEXT)
    assert weigh([nested], LangChainReader(), set()) > 0


def test_a_run_whose_size_cannot_be_found_ends_all_the_same(
    make_monitor: MonitorFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(reader: LangChainReader, value: object) -> Sequence[object]:
        raise ZeroDivisionError

    monkeypatch.setattr(LangChainReader, "parts", fail)
    monitor = make_monitor()
    rag_chain().invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush()

    assert monitor.stats.evaluated == 1
    make_monitor.expected_faults = monitor.stats.faults
    assert make_monitor.expected_faults > 0


# --- the bound ---


def short_answer(query: str) -> str:
    return "fine"


def long_answer(query: str) -> str:
    return text(MIB)


def test_a_long_question_fills_the_queue_though_no_document_is_long(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(max_queue_bytes=4 * MIB)
    # The worker must not be faster than the application: it waits in the first record.
    all_are_asked = threading.Event()

    def waits(question: object) -> str:
        all_are_asked.wait(30)
        return "fine?"

    handler = ClaimspanCallbackHandler(monitor, query_key=waits)
    for i in range(8):
        RunnableLambda(short_answer).invoke(f"{i}{TEXT * 10}", {"callbacks": [handler]})

    assert monitor.stats.queued_bytes <= 4 * MIB
    all_are_asked.set()
    assert not monitor.flush(30)  # some were dropped
    assert set(monitor.stats.dropped) == {"queue_full"}
    assert 4 <= monitor.stats.dropped["queue_full"] < 8
    assert len(spans.roots) == 8


@pytest.mark.parametrize(
    ("sample", "status"), [(1.0, ["evaluated", "queue_full"]), (0.0, ["not_sampled"] * 2)]
)
def test_a_query_that_was_not_weighed_is_refused_only_where_it_is_to_be_evaluated(
    make_monitor: MonitorFactory, spans: Spans, sample: float, status: list[str]
) -> None:
    monitor = make_monitor(max_queue_bytes=2 * MIB, sample=sample)
    config: RunnableConfig = {"callbacks": [ClaimspanCallbackHandler(monitor)]}

    rag_chain().invoke("a first query, which is weighed", config)
    assert monitor.flush()
    heavy = [Document(page_content=text(60_000)) for _ in range(50)]
    rag_chain(Shelf(documents=heavy)).invoke("3 MB that nobody has weighed yet", config)
    monitor.flush()

    assert [attributes(each)["claimspan.evaluation.status"] for each in spans.roots] == status
    assert monitor.stats.queued_bytes == 0


def test_a_query_that_can_never_fit_lets_go_of_its_texts_while_it_runs(
    make_monitor: MonitorFactory, spans: Spans
) -> None:
    monitor = make_monitor(max_queue_bytes=2 * MIB)
    kept: list[int] = []

    def answer(query: str) -> str:
        step = RunnableLambda(long_answer)
        for _ in range(8):
            step.invoke(query)
        runs = list(monitor.engine.table.runs.values())
        kept.append(sum(len(run.outputs) for run in runs if isinstance(run.outputs, str)))
        return "fine"

    RunnableLambda(answer).invoke("q", {"callbacks": [ClaimspanCallbackHandler(monitor)]})

    assert kept[0] <= 2 * MIB
    assert attributes(spans.root)["claimspan.evaluation.status"] == "queue_full"


GROWTH: Final = """
import gc, json, os, sys, time, tracemalloc
from opentelemetry.sdk.trace import TracerProvider
from langchain_core.runnables import RunnableConfig, RunnableLambda
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Monitor
from lc_pipelines import Shelf, rag_chain
from langchain_core.documents import Document
from support import ScriptedJudge

kind, limit = sys.argv[1], int(sys.argv[2])
monitor = Monitor(judge=ScriptedJudge(delay=600), sample=1.0, tracer_provider=TracerProvider(),
                  max_queue_bytes=limit)
config = {"callbacks": [ClaimspanCallbackHandler(monitor)]}

def look_up(i):
    def search(query):
        Shelf(documents=[Document(page_content=f"{i}" + "x" * 800_000)]).invoke(query)
        return f"The answer to {i} is long. " + "y" * 100_000
    RunnableLambda(search).invoke(f"{i}", config)

def ask(i):
    rag_chain().invoke(f"{i} " + "z" * 1_000_000, config)

def small(i):
    rag_chain().invoke(f"question {i}", config)

run, n = {"look_ups": (look_up, 300), "questions": (ask, 150), "small": (small, 500)}[kind]
run("warm")
time.sleep(0.3)
tracemalloc.start()
before, _ = tracemalloc.get_traced_memory()
most = 0
for i in range(n):
    run(i)
    if i % 10 == 0:
        time.sleep(0.02)  # the worker reads; at once, so would it in production
        most = max(most, tracemalloc.get_traced_memory()[0] - before)
time.sleep(0.5)
gc.collect()
most = max(most, tracemalloc.get_traced_memory()[0] - before)
stats = monitor.stats
print(json.dumps([most, stats.queued, stats.queued_bytes, stats.produced, stats.dropped]))
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize(("kind", "limit_mib"), [("look_ups", 8), ("questions", 32), ("small", 4)])
def test_what_records_keep_alive_stays_within_a_small_factor_of_the_limit(
    tmp_path: Path, kind: str, limit_mib: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, kind, str(limit_mib * MIB)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(SUPPORT), "LANGSMITH_TRACING": "false"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    most, queued, queued_bytes, produced, dropped = json.loads(done.stdout)

    assert queued > 0
    assert queued_bytes <= limit_mib * MIB
    assert dropped["queue_full"] + queued <= produced
    assert dropped["queue_full"] > produced // 10
    # Beside the bound: the query that runs, and copies that last while one record is read.
    assert most < 2 * limit_mib * MIB + 8 * MIB
