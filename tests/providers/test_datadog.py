"""Datadog's tracer behind OpenTelemetry's API: a provider that is not the SDK's, and no OTLP."""

from __future__ import annotations

from pathlib import Path

from datadog_agent import agent
from provider_apps import CALLBACK, run_app

SETUP = "import ddtrace.auto\n"
VARIABLES = {"DD_TRACE_OTEL_ENABLED": "true", "DD_TRACE_API_VERSION": "v0.4"}
SCORE = b"claimspan.score.faithfulness"


def query(options: str = "") -> str:
    return SETUP + CALLBACK.replace("OPTIONS", f"dict({options})")


def test_spans_and_scores_of_a_query_reach_the_agent(tmp_path: Path) -> None:
    with agent() as datadog:
        arrived = run_app(query(), tmp_path, DD_TRACE_AGENT_URL=datadog.url, **VARIABLES)
        (body,) = [each for each in datadog.bodies if b"claimspan" in each]

    assert arrived.told == ("True", "1", "0", "0"), arrived.printed
    assert all(name in body for name in (b"invoke_workflow", b"retrieval", b"claimspan.evaluate"))
    # On the root, and on the generator; a third one would be a carrier's.
    assert body.count(SCORE) == 2
    assert arrived.files == []


def test_late_scores_reach_the_agent_on_a_carrier(tmp_path: Path) -> None:
    code = query("judge=LateJudge(), hold_seconds=2.0")
    with agent() as datadog:
        arrived = run_app(code, tmp_path, DD_TRACE_AGENT_URL=datadog.url, **VARIABLES)
        bodies = [each for each in datadog.bodies if SCORE in each]

    assert arrived.told[1:] == ("0", "1", "0"), arrived.printed
    assert len(bodies) == 1
    assert bodies[0].count(SCORE) == 1
    assert b"claimspan.evaluate" in bodies[0]


def test_instrument_says_that_the_provider_takes_no_span_processors(tmp_path: Path) -> None:
    code = """
import claimspan_openinference
from claimspan.errors import ConfigError
try:
    claimspan_openinference.instrument(judge=ScriptedJudge())
except ConfigError as error:
    print(error)
"""
    with agent() as datadog:
        arrived = run_app(SETUP + code, tmp_path, DD_TRACE_AGENT_URL=datadog.url, **VARIABLES)

    assert "takes no span processors" in arrived.printed
    assert "use the integration of your framework" in arrived.printed
