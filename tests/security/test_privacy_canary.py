"""One canary, searched in everything that leaves the pipeline. Rows P1, P2 and P3."""

from __future__ import annotations

import base64
import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from langchain_core.documents import Document
from opentelemetry import metrics
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from claimspan.errors import JudgeError
from claimspan.judges import OpenAIJudge
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import Finished, Monitor, scope
from claimspan_tracing.monitor import MonitorOptions
from claimspan_tracing.trace_file.writing import OtlpFileExporter

from hs_driver import HaystackDriver
from judge_server import JudgeServer, judge_server
from lc_driver import LangChainDriver
from lc_pipelines import Shelf, rag_chain
from li_driver import LlamaIndexDriver
from pipelines import AppError, Driver, Passage, Recipe
from support import MonitorFactory, ScriptedJudge, Spans, attributes

HEADER: Final = base64.urlsafe_b64encode(json.dumps({"alg": "HS256"}).encode()).decode().strip("=")
SECRETS: Final[Mapping[str, str]] = {
    "email": "canary.bird@example.org",
    "phone": "+44 20 7946 0958",
    "card": "4111 1111 1111 1111",
    "iban": "DE89 3704 0044 0532 0130 00",
    "jwt": f"{HEADER}.eyJzdWIiOiJjYW5hcnkifQ.c2lnbmF0dXJlLWNhbmFyeQ",
    "key": "sk-canary-4711-abcdef",
}
CANARY: Final = "Write to " + " or ".join(SECRETS.values()) + " today"
QUERY: Final = f"Whose library is it? {CANARY}"
RECIPE: Final = Recipe(
    passages=[
        Passage(f"The library stands beside the river. {CANARY}.", SECRETS["email"], 0.5),
        Passage(f"Workers finished building the library quickly. {CANARY}.", CANARY),
    ],
    answer=f"The library stands beside the river. {CANARY}.",
)

DRIVERS: Final[list[Callable[[], Driver]]] = [LangChainDriver, LlamaIndexDriver, HaystackDriver]


def in_memory(folder: Path) -> MonitorOptions:
    return {}


WAYS: Final[Mapping[str, Callable[[Path], MonitorOptions]]] = {"memory": in_memory}
"""How records get to the judge; every file in the folder is searched afterwards."""

FRAMEWORKS: Final = ("haystack", "langchain", "llama_index", "asyncio")
"""Loggers of the application's own pipeline, which nobody asked us to redact."""

JUDGES_CLIENT: Final = ("openai", "httpx", "httpcore")


class Kept:
    """A sink of the user's, which keeps what it gets."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []

    def write(self, finished: Finished) -> None:
        self.finished.append(finished)


class Outputs:
    """Everything that may have got the canary."""

    def __init__(self, folder: Path, spans: Spans, caplog: pytest.LogCaptureFixture) -> None:
        self.folder = folder
        self.spans = spans
        self.caplog = caplog
        self.sink = Kept()
        self.logs = InMemoryLogRecordExporter()  # type: ignore[no-untyped-call]  # as it is
        self.reader = InMemoryMetricReader()
        self.monitors: list[Monitor] = []

    def texts(self, *, but: tuple[str, ...] = ()) -> dict[str, str]:
        """Name of the output to all that it holds."""
        data = self.reader.get_metrics_data()
        logged = [r for r in self.caplog.records if not r.name.startswith((*FRAMEWORKS, *but))]
        return {
            "spans": "\n".join(span.to_json() for span in self.spans.all),
            "files": "\n".join(
                path.read_bytes().decode("utf-8", "replace")
                for path in sorted(self.folder.rglob("*"))
                if path.is_file()
            ),
            "events": "\n".join(log.to_json() for log in self.logs.get_finished_logs()),
            "metrics": data.to_json() if data is not None else "",
            "logs": "\n".join(f"{r.name}: {r.getMessage()} {r.exc_text}" for r in logged),
            "sinks": "\n".join(
                f"{each.job.to_json()} {each.outcome.to_json()} {each!r}"
                for each in self.sink.finished
            ),
            "monitors": "\n".join(f"{m!r} {m} {m.stats!r} {vars(m)!r}" for m in self.monitors),
        }


def found_in(text: str) -> set[str]:
    """The kinds of secrets in a text, however their characters are grouped or escaped."""
    bare = re.sub(r"[^0-9A-Za-z@.+_-]", "", text)
    return {kind for kind, s in SECRETS.items() if s in text or s.replace(" ", "") in bare}


def leaks(texts: Mapping[str, str]) -> dict[str, set[str]]:
    return {name: found for name, text in texts.items() if (found := found_in(text))}


@pytest.fixture
def outputs(
    tmp_path: Path,
    spans: Spans,
    provider: TracerProvider,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Outputs]:
    caplog.set_level(logging.DEBUG)
    found = Outputs(tmp_path, spans, caplog)
    provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(tmp_path / "traces.jsonl")))
    logs = LoggerProvider(shutdown_on_exit=False)
    logs.add_log_record_processor(SimpleLogRecordProcessor(found.logs))
    meters = MeterProvider([found.reader], shutdown_on_exit=False)
    monkeypatch.setattr(scope, "get_logger", logs.get_logger)
    monkeypatch.setattr(metrics, "get_meter", meters.get_meter)
    yield found
    meters.shutdown()
    logs.shutdown()


@pytest.fixture
def server() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, tmp_path: Path) -> MonitorOptions:
    return WAYS[str(request.param)](tmp_path)


def canary_for(query: str, metadata: Mapping[str, object]) -> str:
    """Look up a ground truth."""
    return CANARY


def judged_by(server: JudgeServer) -> MonitorOptions:
    judge = OpenAIJudge("stub", base_url=server.url, api_key="none")
    return {"judge": judge, "ground_truth": canary_for}


def ask(driver: Driver, monitor: Monitor, recipe: Recipe = RECIPE) -> None:
    """Run a query in a pipeline, and wait for its record."""
    detach = driver.attach(monitor)
    try:
        pipeline = driver.build(recipe)
        if recipe.retriever_error is None:
            assert CANARY in pipeline.run(QUERY)
        else:
            with suppress(Exception):
                pipeline.run(QUERY)
    finally:
        detach()
    monitor.flush()  # False where the judge failed
    assert monitor.stats.pending == 0


def asked_of(server: JudgeServer) -> str:
    return "\n".join(exchange.text for exchange in server.exchanges)


@pytest.mark.parametrize("make", DRIVERS, ids=lambda make: make().name)
def test_a_redacted_canary_is_nowhere(
    make: Callable[[], Driver],
    make_monitor: MonitorFactory,
    outputs: Outputs,
    server: JudgeServer,
    way: MonitorOptions,
) -> None:
    options: MonitorOptions = {**judged_by(server), "redact": "pii", "sinks": [outputs.sink]}
    monitor = make_monitor(**(options | way))
    outputs.monitors.append(monitor)

    ask(make(), monitor)

    texts = outputs.texts() | {"judge": asked_of(server)}
    assert leaks(texts) == {}
    # The search would find it: where the texts went, the marks are.
    for name in ("spans", "files", "sinks", "judge"):
        assert {kind for kind in SECRETS if f"[{kind}]" in texts[name]} == set(SECRETS), name
    assert attributes(outputs.spans.root)["claimspan.evaluation.status"] == "evaluated"
    assert "claimspan.score.faithfulness" in attributes(outputs.spans.root)


@pytest.mark.parametrize("make", DRIVERS, ids=lambda make: make().name)
def test_with_redaction_for_export_alone_only_the_judge_gets_the_canary(
    make: Callable[[], Driver],
    make_monitor: MonitorFactory,
    outputs: Outputs,
    server: JudgeServer,
) -> None:
    options: MonitorOptions = {
        **judged_by(server),
        "redact": "pii",
        "redact_for": {"export"},
        "sinks": [outputs.sink],
    }
    monitor = make_monitor(**options)
    outputs.monitors.append(monitor)

    ask(make(), monitor)

    assert leaks(outputs.texts(but=JUDGES_CLIENT)) == {}
    assert found_in(asked_of(server)) == set(SECRETS)
    assert attributes(outputs.spans.root)["claimspan.evaluation.status"] == "evaluated"


@pytest.mark.parametrize("make", DRIVERS, ids=lambda make: make().name)
def test_without_captured_content_only_the_judge_gets_any_text(
    make: Callable[[], Driver],
    make_monitor: MonitorFactory,
    outputs: Outputs,
    server: JudgeServer,
) -> None:
    recipe = Recipe(
        passages=[Passage(p.text, f"doc-{n}") for n, p in enumerate(RECIPE.passages or ())],
        answer=RECIPE.answer,
    )
    options: MonitorOptions = {
        **judged_by(server),
        "capture_content": False,
        "sinks": [outputs.sink],
    }
    monitor = make_monitor(**options)
    outputs.monitors.append(monitor)

    ask(make(), monitor, recipe)

    texts = outputs.texts(but=JUDGES_CLIENT)
    assert leaks(texts) == {}
    for word in ("library", "river", "Workers", "Whose"):
        assert [name for name, text in texts.items() if word in text] == []
    assert found_in(asked_of(server)) == set(SECRETS)
    root = attributes(outputs.spans.root)
    assert root["claimspan.evaluation.status"] == "evaluated"
    assert isinstance(root["claimspan.score.faithfulness"], float)
    assert root["claimspan.claims.response.count"] == 2
    retriever = attributes(outputs.spans.one("RETRIEVER"))
    assert retriever["retrieval.documents.0.document.id"] == "doc-0"
    claims = attributes(outputs.spans.one("EVALUATOR"))
    assert claims["claimspan.claim.0.label"] == "entailed"
    assert "claimspan.claim.0.text" not in claims


@pytest.mark.parametrize("make", DRIVERS, ids=lambda make: make().name)
def test_an_exception_of_the_application_is_written_without_its_message(
    make: Callable[[], Driver], make_monitor: MonitorFactory, outputs: Outputs
) -> None:
    monitor = make_monitor(redact="pii", sinks=[outputs.sink])
    outputs.monitors.append(monitor)

    ask(make(), monitor, Recipe(retriever_error=AppError(CANARY)))

    assert leaks(outputs.texts()) == {}
    assert attributes(outputs.spans.root)["claimspan.evaluation.status"] == "app_error"


@pytest.mark.parametrize("error", [ValueError(CANARY), JudgeError(CANARY), KeyError(CANARY)])
def test_an_exception_of_the_judge_shows_nothing(
    error: Exception, make_monitor: MonitorFactory, outputs: Outputs
) -> None:
    judge = ScriptedJudge(error=error)
    monitor = make_monitor(judge=judge, redact="pii", sinks=[outputs.sink])
    outputs.monitors.append(monitor)

    ask(LangChainDriver(), monitor)

    assert leaks(outputs.texts()) == {}
    assert attributes(outputs.spans.root)["claimspan.evaluation.status"] == "judge_error"


def test_a_canary_in_metadata_is_nowhere(make_monitor: MonitorFactory, outputs: Outputs) -> None:
    hidden = {"author": CANARY, CANARY: [{"deep": (CANARY, 4111111111111111)}], "n": 7}
    monitor = make_monitor(redact="pii", sinks=[outputs.sink])
    outputs.monitors.append(monitor)
    shelf = Shelf(documents=[Document(id="a", page_content="The river.", metadata=hidden)])

    rag_chain(retriever=shelf).invoke(
        "q",
        {"callbacks": [ClaimspanCallbackHandler(monitor)], "metadata": {"id": CANARY, **hidden}},
    )
    assert monitor.flush()

    assert leaks(outputs.texts()) == {}
    (finished,) = outputs.sink.finished
    assert finished.job.record.metadata["n"] == 7
    assert "[card]" in str(finished.job.record.chunks[0].metadata)
    assert finished.job.record.id is not None
    assert "[email]" in finished.job.record.id
