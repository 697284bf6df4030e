"""OpenInference's spans on the providers of others get scores, and no exporter is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from provider_apps import OPENINFERENCE, Arrived, run_app, values

PHOENIX = """
from phoenix.otel import register
provider = register(endpoint=f"{url}/v1/traces", OPTIONS)
"""

SETUPS = {
    "phoenix": PHOENIX.replace("OPTIONS", ""),
    "phoenix-batch": PHOENIX.replace("OPTIONS", "batch=True"),
    "phoenix-not-global": PHOENIX.replace("OPTIONS", "set_global_tracer_provider=False"),
    "logfire": """
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = url
import logfire
from opentelemetry import trace
logfire.configure(send_to_logfire=False, console=False)
provider = trace.get_tracer_provider()
""",
    "langfuse": """
from langfuse import Langfuse
from opentelemetry import trace
Langfuse(public_key="pk-lf-test", secret_key="sk-lf-test", base_url=url)
provider = trace.get_tracer_provider()
""",
    "traceloop": """
from opentelemetry import trace
from traceloop.sdk import Traceloop
Traceloop.init(app_name="app", api_endpoint=url, api_key="key", instruments=set())
provider = trace.get_tracer_provider()
""",
}

ATTACH = "undo = claimspan_openinference.instrument(used, tracer_provider=provider)"
ADD = "provider.add_span_processor(claimspan_openinference.ClaimspanSpanProcessor(used)KEEP)"


def query(setup: str, attach: str = ATTACH) -> str:
    """An application: a set-up, and one query that OpenInference traces."""
    return setup + OPENINFERENCE.replace("ATTACH", attach)


def assert_scored(arrived: Arrived) -> None:
    """Their trace is there as a whole, with the two carriers of ours."""
    assert arrived.told == ("True", "1", "0", "0"), arrived.printed
    assert set(arrived.ours) == {"claimspan.evaluate", "claimspan.annotations"}
    carrier = arrived.ours["claimspan.evaluate"]
    (root,) = [span for span in arrived.theirs if not span.parent_span_id]
    assert values(carrier)["claimspan.score.faithfulness"].double_value == 0.5
    assert [link.span_id for link in carrier.links] == [root.span_id]
    assert {span.trace_id for span in arrived.theirs} == {carrier.trace_id}
    kinds = [values(span)["openinference.span.kind"].string_value for span in arrived.theirs]
    assert {"RETRIEVER", "LLM", "CHAIN"} <= set(kinds)
    assert arrived.files == []


@pytest.mark.parametrize("setup", SETUPS)
def test_instrument_scores_each_trace_and_keeps_the_exporter(setup: str, tmp_path: Path) -> None:
    assert_scored(run_app(query(SETUPS[setup]), tmp_path))


def test_it_finds_the_global_provider_and_makes_its_own_monitor(tmp_path: Path) -> None:
    attach = """
undo = claimspan_openinference.instrument(judge=ScriptedJudge(), sample=1.0)
used = provider._active_span_processor._span_processors[-1].monitor
"""
    assert_scored(run_app(query(SETUPS["phoenix"], attach), tmp_path))


def test_phoenixs_auto_instrument_is_scored_too(tmp_path: Path) -> None:
    setup = PHOENIX.replace("OPTIONS", "auto_instrument=True")
    arrived = run_app(query(setup).replace("LangChainInstrumentor().instrument", "dict"), tmp_path)

    assert_scored(arrived)


def test_a_processor_that_is_told_to_keep_phoenixs_exporter_writes_to_it(tmp_path: Path) -> None:
    # Neither the monitor nor the processor was told of the provider, and it is not the global one.
    attach = ADD.replace("KEEP", ", replace_default_processor=False")

    assert_scored(run_app(query(SETUPS["phoenix-not-global"], attach), tmp_path))


@pytest.mark.parametrize("setup", ["phoenix", "phoenix-not-global"])
def test_a_processor_that_took_the_place_of_phoenixs_exporter_says_so_and_what_to_do(
    setup: str, tmp_path: Path
) -> None:
    arrived = run_app(query(SETUPS[setup], ADD.replace("KEEP", "")), tmp_path)

    assert arrived.spans == []
    assert arrived.told == ("False", "1", "0", "0")
    assert arrived.printed.count("no span of claimspan leaves this process") == 1
    assert "claimspan_openinference.instrument(tracer_provider=provider)" in arrived.printed


def test_traceloops_processor_argument_takes_the_place_of_its_exporter_and_we_say_so(
    tmp_path: Path,
) -> None:
    setup = """
from opentelemetry import trace
from traceloop.sdk import Traceloop
import claimspan_openinference
mine = claimspan_openinference.ClaimspanSpanProcessor(judge=ScriptedJudge(), sample=1.0)
Traceloop.init(app_name="app", api_endpoint=url, processor=mine, instruments=set())
provider = trace.get_tracer_provider()
"""
    arrived = run_app(query(setup, "used = mine.monitor"), tmp_path)

    assert arrived.spans == []
    assert arrived.told[0] == "False"
    assert arrived.printed.count("no span of claimspan leaves this process") == 1


def test_a_processor_among_logfires_additional_ones_scores_and_is_no_replacement(
    tmp_path: Path,
) -> None:
    setup = """
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = url
import logfire
from opentelemetry import trace
import claimspan_openinference
mine = claimspan_openinference.ClaimspanSpanProcessor(judge=ScriptedJudge(), sample=1.0)
logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[mine])
provider = trace.get_tracer_provider()
"""
    # Logfire suppresses instrumentation around the processors given to it.
    assert_scored(run_app(query(setup, "used = mine.monitor"), tmp_path))


def test_undone_it_evaluates_nothing_and_leaves_the_spans_alone(tmp_path: Path) -> None:
    code = query(SETUPS["phoenix"]) + "undo()\nundo()\nrag_chain().invoke('q')\n"

    arrived = run_app(code + "told(used)", tmp_path)

    assert arrived.told == ("True", "1", "0", "0") * 2
    assert len({span.trace_id for span in arrived.theirs}) == 2
    assert set(arrived.ours) == {"claimspan.evaluate", "claimspan.annotations"}


def test_attached_twice_it_scores_each_trace_once(tmp_path: Path) -> None:
    assert_scored(run_app(query(SETUPS["logfire"], f"{ATTACH}\n{ATTACH}"), tmp_path))
