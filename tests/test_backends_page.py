"""The page about backends says what is true: its code sends scores where it says."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Final

import pytest

from contract_server import contract_server
from contracts import LangfuseApi, MLflowApi, PhoenixApi
from otlp_receiver import receiver
from processes import run_python

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "backends.md"
TEXT: Final = PAGE.read_text(encoding="utf-8")
BLOCKS: Final[list[str]] = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)

RUN_BLOCKS: Final = """
import json, re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from opentelemetry import metrics
from opentelemetry._logs import get_logger_provider
from claimspan_langchain import ClaimspanCallbackHandler
from lc_pipelines import rag_chain

names = {}
page = Path(os.environ["PAGE"]).read_text(encoding="utf-8")
for block in re.findall(r"^```python\\n(.*?)^```", page, re.M | re.S):
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(block, "backends.md", "exec"), names)
        monitor = names.pop("monitor")
        # The block leaves the judge to the environment; what matters here is where scores go.
        config = {"callbacks": [ClaimspanCallbackHandler(monitor)]}
        rag_chain().invoke("Is it?", config | {"metadata": {"claimspan.sample": True}})
        is_flushed = monitor.flush(30)
    stats = monitor.stats
    print(json.dumps([is_flushed, stats.evaluated, stats.faults, printed.getvalue()]), flush=True)
    monitor.shutdown(5)
get_logger_provider().force_flush()
metrics.get_meter_provider().force_flush()
"""


class _EveryTrace(defaultdict[str, list[object]]):
    """An MLflow that has every trace."""

    def __contains__(self, key: object) -> bool:
        return True


class Sent:
    """What became of the queries of all blocks, and what arrived where."""

    def __init__(self, folder: Path) -> None:
        phoenix, mlflow, langfuse = PhoenixApi(), MLflowApi(), LangfuseApi()
        mlflow.assessments = _EveryTrace(list)  # type: ignore[assignment] # pyright: ignore[reportAttributeAccessIssue] - its values are lists of what the contract stores
        with (
            receiver() as received,
            contract_server(phoenix) as to_phoenix,
            contract_server(mlflow) as to_mlflow,
            contract_server(langfuse) as to_langfuse,
        ):
            ended = run_python(
                RUN_BLOCKS,
                folder,
                PAGE=str(PAGE),
                CLAIMSPAN_JUDGE="lexical",
                OTEL_EXPORTER_OTLP_ENDPOINT=received.url.removesuffix("/v1/traces"),
                PHOENIX_ENDPOINT=to_phoenix.url,
                MLFLOW_TRACKING_URI=to_mlflow.url,
                LANGFUSE_HOST=to_langfuse.url,
                LANGFUSE_PUBLIC_KEY=LangfuseApi.PUBLIC_KEY,
                LANGFUSE_SECRET_KEY=LangfuseApi.SECRET_KEY,
            )
        assert (ended.code, ended.stderr) == (0, "")
        self.runs: list[list[object]] = [json.loads(line) for line in ended.stdout.splitlines()]
        self.roots = [span for span in received.spans if not span.parent_span_id]
        self.metrics = [
            metric
            for request in received.metrics
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]
        self.events = {record.event_name for record in received.logs}
        self.phoenix = {name for name, _, _ in phoenix.spans}
        self.mlflow = len(mlflow.assessments)
        self.langfuse = {score.name for score in langfuse.scores.values()}


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory) -> Sent:
    return Sent(tmp_path_factory.mktemp("backends"))


def test_every_block_runs_and_the_scores_of_its_monitor_arrive(sent: Sent) -> None:
    assert len(sent.runs) == len(sent.roots) == len(BLOCKS) > 8
    for is_flushed, evaluated, faults, _ in sent.runs:
        assert (is_flushed, evaluated, faults) == (True, 1, 0)
    for root in sent.roots:
        assert "claimspan.score.faithfulness" in {pair.key for pair in root.attributes}


def test_each_writer_reaches_the_api_of_its_backend(sent: Sent) -> None:
    assert "faithfulness" in sent.phoenix
    assert "faithfulness" in sent.langfuse
    assert sent.mlflow == 1


def test_the_exemplars_of_scores_are_the_ids_of_roots(sent: Sent) -> None:
    scores = [metric.histogram for metric in sent.metrics if metric.name == "claimspan.score"]
    points = [point for histogram in scores for point in histogram.data_points]
    exemplars = {(e.trace_id, e.span_id) for point in points for e in point.exemplars}

    assert exemplars
    assert exemplars <= {(root.trace_id, root.span_id) for root in sent.roots}


def test_metrics_and_log_events_arrive_and_low_results_are_printed(sent: Sent) -> None:
    assert {"claimspan.score", "claimspan.records"} <= {each.name for each in sent.metrics}
    assert "gen_ai.evaluation.result" in sent.events
    assert "faithfulness" in str(sent.runs[-1][3])
