"""One canary in all that a query has beside its texts, searched in all that leaves the process.

Session, user, tags, metadata, system message, question, chunks, answer and ground truth. Rows P1
and P2 of the matrix, for every integration and every writer.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from langchain_core.documents import Document
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableParallel, RunnablePassthrough
from openinference.instrumentation import using_attributes
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import metrics
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from pydantic import JsonValue

import claimspan_openinference
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_langfuse import LangfuseWriter
from claimspan_mlflow import MLflowWriter
from claimspan_phoenix import PhoenixWriter
from claimspan_tracing import Monitor, scope
from claimspan_tracing.monitor import MonitorOptions

from contract_server import ContractServer, Request, contract_server
from contracts import LangfuseApi
from hs_driver import HaystackDriver
from lc_pipelines import Echo, Shelf
from li_driver import LlamaIndexDriver
from pipelines import Passage, Recipe
from support import MonitorFactory, Spans, attributes

# OpenInference calls LangChain's texts like functions, which LangChain deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")

CANARY: Final = "Quetzalcoatlus"
CHUNKS: Final = (f"{CANARY} flies over rivers.", f"Nothing else that {CANARY} does is known.")
ANSWER: Final = f"{CANARY} flies over rivers. {CANARY} sings at night. {CANARY} sleeps at noon."
TRUTH: Final = f"{CANARY} flies over rivers. {CANARY} is old."
QUESTION: Final = f"What does {CANARY} do?"
WAIT: Final = 30.0
PUBLIC, SECRET = LangfuseApi.PUBLIC_KEY, LangfuseApi.SECRET_KEY


def ask_langchain(monitor: Monitor) -> None:
    config = {
        "callbacks": [ClaimspanCallbackHandler(monitor)],
        "tags": [f"tag {CANARY}"],
        "metadata": {"thread_id": CANARY, "user_id": CANARY, CANARY: [{"deep": CANARY}]},
    }
    chain().invoke(QUESTION, config)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - a config may be any mapping


def chain() -> Runnable[str, str]:
    """A chain whose prompt has a system message, and whose chunks have metadata."""
    documents = [
        Document(id=f"d{n}", page_content=text, metadata={"author": CANARY})
        for n, text in enumerate(CHUNKS)
    ]
    prompt = ChatPromptTemplate(
        [("system", f"You are {CANARY}."), ("human", "{context}\n{question}")]
    )
    inputs: RunnableParallel[str] = RunnableParallel(
        context=Shelf(documents=documents), question=RunnablePassthrough[str]()
    )
    return inputs | prompt | _Says() | StrOutputParser()


class _Says(Echo):
    def _answer(self, messages: object) -> str:
        return ANSWER


def ask_with(driver: LlamaIndexDriver | HaystackDriver, monitor: Monitor) -> None:
    detach = driver.attach(monitor)
    passages = [Passage(text, f"d{n}") for n, text in enumerate(CHUNKS)]
    try:
        driver.build(Recipe(passages=passages, answer=ANSWER)).run(QUESTION)
    finally:
        detach()


def ask_traced(monitor: Monitor, provider: TracerProvider) -> None:
    undo = claimspan_openinference.instrument(monitor, tracer_provider=provider)
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    try:
        chain().invoke(QUESTION)
    finally:
        instrumentor.uninstrument()
        undo()


ASK: Final[dict[str, Callable[[Monitor, TracerProvider], None]]] = {
    "langchain": lambda monitor, _: ask_langchain(monitor),
    "llama_index": lambda monitor, _: ask_with(LlamaIndexDriver(), monitor),
    "haystack": lambda monitor, _: ask_with(HaystackDriver(), monitor),
    "openinference": ask_traced,
}

HIDDEN: Final[dict[str, MonitorOptions]] = {
    "not-captured": {"capture_content": False},
    "redacted": {"redact": lambda text: text.replace(CANARY, "[bird]")},
}


class Outputs:
    """All that leaves the process."""

    def __init__(self, folder: Path, spans: Spans, caplog: pytest.LogCaptureFixture) -> None:
        self._folder = folder
        self._spans = spans
        self._caplog = caplog
        self.logs = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # as it is
        self.reader = InMemoryMetricReader()

    def texts(self, server: ContractServer) -> dict[str, str]:
        """Name of the output to all that it holds; of the spans only ours."""
        data = self.reader.get_metrics_data()
        ours = [s for s in self._spans.all if s.instrumentation_scope.name == "claimspan"]  # type: ignore[union-attr] # pyright: ignore[reportOptionalMemberAccess] - every span here has a scope
        said = [r for r in self._caplog.records if r.name.startswith("claimspan")]
        files = (path for path in sorted(self._folder.rglob("*")) if path.is_file())
        return {
            "spans": "\n".join(span.to_json() for span in ours),
            "events": "\n".join(log.to_json() for log in self.logs.get_finished_logs()),
            "metrics": data.to_json() if data is not None else "",
            "logs": "\n".join(f"{r.getMessage()} {r.exc_text}" for r in said),
            "files": "\n".join(path.read_bytes().decode("utf-8", "replace") for path in files),
            "requests": "\n".join(f"{r.path} {r.query} {r.text}" for r in server.requests),
        }


@pytest.fixture
def outputs(
    tmp_path: Path,
    spans: Spans,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Outputs]:
    found = Outputs(tmp_path, spans, caplog)
    logs = LoggerProvider(shutdown_on_exit=False)
    logs.add_log_record_processor(SimpleLogRecordProcessor(found.logs))
    meters = MeterProvider([found.reader], shutdown_on_exit=False)
    monkeypatch.setattr(scope, "get_logger", logs.get_logger)
    monkeypatch.setattr(metrics, "get_meter", meters.get_meter)
    yield found
    meters.shutdown()
    logs.shutdown()


def take(request: Request) -> JsonValue:
    """Answer every route of the three backends."""
    trace: JsonValue = {"trace_info": {"assessments": []}}
    return {"trace": trace, "assessment": {"assessment_id": "any"}, "data": [], "id": "any"}


@contextmanager
def backends() -> Generator[tuple[ContractServer, MonitorOptions]]:
    """One server that takes what all three writers send, and these."""
    with contract_server(take) as server:
        writers = [
            PhoenixWriter(server.url),
            MLflowWriter(server.url),
            LangfuseWriter(server.url, public_key=PUBLIC, secret_key=SECRET),
        ]
        yield server, {"sinks": writers}


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("ask", ASK)
def test_what_is_hidden_leaves_the_process_nowhere(
    ask: str,
    hidden: str,
    make_monitor: MonitorFactory,
    provider: TracerProvider,
    outputs: Outputs,
    tmp_path: Path,
) -> None:
    with backends() as (server, sinks):
        truth: MonitorOptions = {"ground_truth": lambda query, metadata: TRUTH}
        options = truth | sinks | HIDDEN[hidden]
        # The database has the texts where a judge of another process may have to read them.
        if hidden == "redacted":
            options |= {"spool": tmp_path / "spool.db"}
        monitor = make_monitor(**options)
        attached = {"k": CANARY, CANARY: "v"}
        with using_attributes(session_id=CANARY, user_id=CANARY, metadata=attached, tags=[CANARY]):
            ASK[ask](monitor, provider)
        assert monitor.flush(WAIT)

        texts = outputs.texts(server)

    assert [name for name, text in texts.items() if CANARY.lower() in text.lower()] == []
    # The search would find it: scores with their reasons are in each of them.
    for name in ("spans", "events", "requests"):
        assert "of 3 claims are in no chunk" in texts[name], name
    assert monitor.stats.evaluated == 1
    marked = "[bird]" in texts["files"]
    assert marked == (hidden == "redacted")


def test_what_is_not_hidden_is_on_our_spans_under_openinferences_names(
    make_monitor: MonitorFactory, provider: TracerProvider, spans: Spans
) -> None:
    monitor = make_monitor()

    ask_langchain(monitor)
    assert monitor.flush(WAIT)

    root = attributes(spans.root)
    assert (root["session.id"], root["user.id"]) == (CANARY, CANARY)
    assert root["tag.tags"] == (f"tag {CANARY}",)
    assert CANARY in str(root["metadata"])
    assert CANARY in str(attributes(spans.one("LLM"))["llm.input_messages.0.message.content"])
