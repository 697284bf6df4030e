"""The dashboard and the alert rules of examples/dashboards, on a real Prometheus."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from processes import PRELUDE, start
from prometheus_server import Prometheus, find_promtool, prometheus_server

FOLDER: Final = Path(__file__).parents[2] / "examples" / "dashboards"
ALERTS: Final = FOLDER / "alerts.yaml"
# Any: JSON of a program that is not here.
DASHBOARD: Final[dict[str, Any]] = json.loads((FOLDER / "claimspan.json").read_text("utf-8"))
PANELS: Final[list[dict[str, Any]]] = [p for p in DASHBOARD["panels"] if p["type"] != "row"]
EXPRESSIONS: Final = [
    pytest.param(target["expr"], id=f"{panel['title']} {target['refId']}")
    for panel in PANELS
    for target in panel["targets"]
]
VARIABLES: Final[dict[str, dict[str, Any]]] = {
    variable["name"]: variable for variable in DASHBOARD["templating"]["list"]
}

APPLICATION: Final = """
from opentelemetry import metrics
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from claimspan_tracing.trace_file.writing import OtlpFileExporter
from prometheus_client import start_http_server
from claimspan.cost.usage import Usage, add_usage
from claimspan_langchain import ClaimspanCallbackHandler
from lc_pipelines import rag_chain

class Paid(ScriptedJudge):
    async def extract_claims(self, text, *, question=None):
        add_usage(Usage(calls=1, input_tokens=100, output_tokens=20, cost_usd=0.01))
        return await super().extract_claims(text, question=question)

metrics.set_meter_provider(MeterProvider([PrometheusMetricReader()]))
provider = TracerProvider(shutdown_on_exit=False)
provider.add_span_processor(BatchSpanProcessor(OtlpFileExporter("traces.jsonl")))
monitor = Monitor(Paid(), sample=1.0, tracer_provider=provider)
server, _ = start_http_server(0, "127.0.0.1")
chain = rag_chain().with_config(callbacks=[ClaimspanCallbackHandler(monitor)])
print(server.server_port, flush=True)
deadline = time.monotonic() + 80
while os.getppid() == int(os.environ["PARENT"]) and time.monotonic() < deadline:
    chain.invoke("the question")
    time.sleep(0.05)
"""
"""Answers a query twenty times a second; half of the claims of each answer are not supported."""


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    application = start(["-c", PRELUDE + APPLICATION], folder, PARENT=str(os.getpid()))
    try:
        assert application.stdout is not None
        port = int(application.stdout.readline())
        with prometheus_server(folder, port, ALERTS) as server:
            # Enough scrapes for rates, and enough answers for the alert on scores.
            within(60, lambda: server.query("claimspan_records_total >= 60") != [])
            yield server
    finally:
        application.kill()
        application.communicate(timeout=10)


def within(seconds: float, is_true: Callable[[], bool]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def filled_in(expression: str) -> str:
    """An expression as Grafana sends it with all variables at their defaults."""
    ranges = {"$__rate_interval": "1m", "$__range": "5m"}
    for name, value in (ranges | {f"${n}": v["allValue"] for n, v in selectable().items()}).items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


def selectable() -> dict[str, dict[str, Any]]:
    return {name: v for name, v in VARIABLES.items() if v["type"] == "query"}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_expression_of_the_dashboard_returns_numbers(
    prometheus: Prometheus, expression: str
) -> None:
    within(30, lambda: prometheus.query(filled_in(expression)) != [])

    values = [value for _, value in prometheus.query(filled_in(expression))]
    assert values
    assert all(map(math.isfinite, values))


@pytest.mark.parametrize("name", selectable())
def test_every_variable_of_the_dashboard_offers_values(prometheus: Prometheus, name: str) -> None:
    found = re.fullmatch(r"label_values\((.+), (\w+)\)", VARIABLES[name]["query"]["query"])

    assert found is not None
    expected = {"service": "shop", "metric": "faithfulness"}[name]
    assert expected in prometheus.label_values(*found.groups())


def test_the_panels_of_scores_show_what_was_scored(prometheus: Prometheus) -> None:
    by_title = {panel["title"]: panel["targets"][0]["expr"] for panel in PANELS}

    for title, expected in {"Mean score": 0.5, "Share of answers at 0.5 or below": 1.0}.items():
        samples = prometheus.query(filled_in(by_title[title]))
        found = {labels["claimspan_metric"]: value for labels, value in samples}
        assert found["faithfulness"] == pytest.approx(expected)


def test_every_alert_rule_is_evaluated_and_low_scores_raise_theirs(prometheus: Prometheus) -> None:
    def states() -> dict[str, str]:
        return {rule["name"]: rule["state"] for rule in prometheus.rules()}

    within(30, lambda: states().get("ClaimspanScoresLow") == "firing")

    names = re.findall(r"- alert: (\w+)", ALERTS.read_text("utf-8"))
    within(30, lambda: all(rule["health"] == "ok" for rule in prometheus.rules()))
    assert states() == dict.fromkeys(names, "inactive") | {"ClaimspanScoresLow": "firing"}


def test_prometheus_has_nothing_to_say_against_the_alert_rules() -> None:
    checked = subprocess.run(
        [find_promtool(), "check", "rules", str(ALERTS)], capture_output=True, text=True
    )

    assert checked.returncode == 0, checked.stdout + checked.stderr


# --- what Grafana wants of a dashboard ---


def test_the_ids_of_panels_and_the_names_of_queries_are_unique() -> None:
    assert max(Counter(panel["id"] for panel in DASHBOARD["panels"]).values()) == 1
    for panel in PANELS:
        assert max(Counter(target["refId"] for target in panel["targets"]).values()) == 1


def test_every_panel_asks_the_data_source_that_its_user_chooses() -> None:
    assert VARIABLES["datasource"]["type"] == "datasource"
    source = {"type": "prometheus", "uid": "${datasource}"}
    for asking in (*PANELS, *(t for p in PANELS for t in p["targets"]), *selectable().values()):
        assert asking["datasource"] == source


def test_panels_do_not_overlap_and_stay_within_the_grid() -> None:
    taken: Counter[tuple[int, int]] = Counter()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        columns = range(place["x"], place["x"] + place["w"])
        taken.update((x, y) for x in columns for y in range(place["y"], place["y"] + place["h"]))

    assert max(taken.values()) == 1


def test_a_dashboard_is_imported_without_an_id_of_another_grafana() -> None:
    assert "id" not in DASHBOARD
    assert DASHBOARD["uid"] == "claimspan"
    assert DASHBOARD["schemaVersion"] >= 36
    assert all(panel["description"] for panel in PANELS)
    assert any(t.get("exemplar") for panel in PANELS for t in panel["targets"])
