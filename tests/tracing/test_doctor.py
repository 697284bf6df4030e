"""``Monitor.check`` and ``claimspan doctor``: what is wrong with a set-up, and what to do."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterable, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Final

import pytest
from haystack.tracing.tracer import NullTracer, enable_tracing, tracer
from openai import AsyncOpenAI
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from pydantic import JsonValue

from claimspan import Claim, VerdictMatrix
from claimspan.errors import JudgeUnavailableError
from claimspan.judges import OpenAIJudge
from claimspan_haystack import Instrumentation, instrument
from claimspan_haystack.checks import check_slot
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_openinference import ClaimspanSpanProcessor
from claimspan_tracing import Diagnosis, Finding, Monitor, configure
from claimspan_tracing.health import CHECKS

from command_line import invoke
from exit_judges import Hanging
from judge_server import Exchange, judge_server
from lc_pipelines import rag_chain
from otlp_receiver import Answer, receiver
from support import ScriptedJudge


@pytest.fixture(autouse=True)
def _no_tracer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]  # pytest uses it
    """What other tests have attached to Haystack is not told."""
    monkeypatch.setattr("claimspan_haystack._instrument._attached", list[Instrumentation]())


def provider(*, sampler: object = None) -> TracerProvider:
    made = TracerProvider() if sampler is None else TracerProvider(sampler=ALWAYS_OFF)
    made.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    return made


def of(findings: Iterable[Finding], check: str) -> Finding:
    """The last finding of a check."""
    return [each for each in findings if each.check == check][-1]


def checked(monitor: Monitor, timeout: float = 20.0) -> Diagnosis:
    try:
        return monitor.check(timeout)
    finally:
        monitor.shutdown()


def test_a_set_up_that_works_has_nothing_to_be_done() -> None:
    with receiver() as received:
        monitor = Monitor(tracer_provider=configure(endpoint=received.url))
        diagnosis = checked(monitor)

    assert diagnosis.ok
    assert [each.remedy for each in diagnosis if each.remedy] == []
    assert [span.name for span in received.spans] == ["claimspan.doctor"]


def test_an_endpoint_that_refuses_spans_is_a_failure_of_the_export() -> None:
    with receiver() as received:
        received.answers.append(Answer(status=401, keeps=False))
        found = of(checked(Monitor(tracer_provider=configure(endpoint=received.url))), "export")

    assert found.state == "failed"
    assert "OTEL_EXPORTER_OTLP_HEADERS" in found.remedy


def test_an_endpoint_that_nobody_listens_on_is_told_within_the_time() -> None:
    dead = TracerProvider(shutdown_on_exit=False)
    exporter = OTLPSpanExporter(endpoint="http://127.0.0.1:9/v1/traces", timeout=1)
    dead.add_span_processor(BatchSpanProcessor(exporter))

    assert of(checked(Monitor(tracer_provider=dead), 5), "export").state == "failed"


def test_every_exporter_of_a_provider_has_to_take_the_span() -> None:
    both = provider()
    with receiver() as received:
        received.answers.extend([Answer(status=400, keeps=False)] * 3)
        exporter = OTLPSpanExporter(endpoint=received.url)
        both.add_span_processor(SimpleSpanProcessor(exporter))

        assert of(checked(Monitor(tracer_provider=both)), "export").state == "failed"


def test_a_provider_without_an_exporter_is_told_with_the_way_out() -> None:
    monitor = Monitor(tracer_provider=(bare := TracerProvider()))
    bare.add_span_processor(ClaimspanSpanProcessor(monitor))
    found = of(checked(monitor), "provider")

    assert found.state == "failed"
    assert "BatchSpanProcessor" in found.remedy


def test_an_exporter_that_is_not_installed_is_a_failure_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    diagnosis = checked(Monitor())

    assert of(diagnosis, "provider").state == "failed"
    assert "pip install 'claimspan[otlp]'" in of(diagnosis, "provider").remedy
    assert "export" not in [each.check for each in diagnosis]  # nothing can be sent
    assert "Set OTEL_EXPORTER_OTLP_ENDPOINT" not in caplog.text  # it is set


def test_the_clock_is_compared_where_no_package_brings_httpx(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with receiver() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url.removesuffix("/v1/traces"))
        found = of(checked(Monitor()), "clock")

    assert found.state == "ok"


def test_a_sampler_that_drops_the_trace_is_a_warning() -> None:
    found = of(checked(Monitor(tracer_provider=provider(sampler=ALWAYS_OFF))), "export")

    assert found.state == "warning"
    assert "sampler" in found.found


def test_a_judge_that_is_away_is_told_with_its_reason() -> None:
    judge = ScriptedJudge(error=JudgeUnavailableError("the endpoint answered with status 401"))
    found = of(checked(Monitor(judge, tracer_provider=provider())), "judge")

    assert found.state == "failed"
    assert "status 401" in found.found
    assert "key" in found.remedy


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        (401, {"message": "Incorrect API key provided"}, "Incorrect API key provided: check the"),
        (404, {"message": "gone", "code": "model_not_found"}, "code model_not_found"),
        (429, {"message": "You exceeded your current quota"}, "see the billing page"),
        (400, {"message": "no", "param": "user"}, "(param user): no: give other options="),
    ],
)
def test_a_judge_that_fails_is_told_in_its_own_words_without_other_advice(
    status: int, error: dict[str, JsonValue], words: str
) -> None:
    async def behave(exchange: Exchange) -> None:
        await exchange.send(json.dumps({"error": error}).encode(), status=status)

    with judge_server() as server:
        server.behave = behave
        judge = OpenAIJudge("m", base_url=server.url, options={"user": "u"})
        found = of(checked(Monitor(judge, tracer_provider=provider())), "judge")

    assert found.state == "failed"
    assert f"HTTP {status}" in found.found
    assert words in found.found
    assert found.remedy == ""


def test_a_judge_that_cannot_be_reached_is_told_what_to_check() -> None:
    judge = OpenAIJudge("m", base_url="http://127.0.0.1:9/v1", call_seconds=1)
    found = of(checked(Monitor(judge, tracer_provider=provider())), "judge")

    assert "the connection failed" in found.found
    assert found.remedy == (
        "check that its endpoint is up, its base URL, its key and its model's name"
    )


def test_what_a_judge_has_learned_of_its_model_is_told() -> None:
    class Learning(ScriptedJudge):
        learned = ("asked without temperature", "reply form: words")

    monitor = Monitor(Learning(), tracer_provider=provider())

    assert "; asked without temperature, reply form: words" in of(checked(monitor), "judge").found


# --- proxies ---

PROXY: Final = "http://user:s3cret@proxy.example:3128"
FAR: Final = "https://models.invalid/v1"


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("https_proxy", "http_proxy", "all_proxy", "no_proxy", "claimspan_trust_env"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def proxy_findings(judge: object) -> list[Finding]:
    monitor = Monitor(judge, tracer_provider=provider())
    return [each for each in checked(monitor, 1.0) if "proxies" in each.found]


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_that_the_judge_ignores_is_told_with_the_ways_to_allow_it(
    proxies: pytest.MonkeyPatch, variable: str
) -> None:
    proxies.setenv(variable, PROXY)
    (found,) = proxy_findings(OpenAIJudge("m", base_url=FAR))

    assert found.state == "warning"
    assert found.found.startswith(f"{variable} is set, and the judge ignores proxies")
    for way in ("CLAIMSPAN_TRUST_ENV=1", "trust_env=true", "OpenAIJudge(trust_env=True)"):
        assert way in found.remedy
    assert "s3cret" not in str(found)
    assert "proxy.example" not in str(found)


def test_a_proxy_that_the_judge_would_not_take_anyway_is_no_matter(
    proxies: pytest.MonkeyPatch,
) -> None:
    proxies.setenv("HTTPS_PROXY", PROXY)
    proxies.setenv("ALL_PROXY", PROXY)
    assert proxy_findings(OpenAIJudge("m", base_url="http://127.0.0.1:9/v1")) == []
    assert proxy_findings(OpenAIJudge("m", base_url="http://vllm:9/v1")) == []
    assert proxy_findings(ScriptedJudge()) == []

    proxies.setenv("NO_PROXY", "models.invalid")
    assert proxy_findings(OpenAIJudge("m", base_url=FAR)) == []


def test_a_judge_that_is_told_to_trust_proxies_is_not_told_of_them(
    proxies: pytest.MonkeyPatch,
) -> None:
    proxies.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    proxies.setenv("CLAIMSPAN_TRUST_ENV", "1")

    assert proxy_findings(OpenAIJudge("m", base_url=FAR)) == []


def test_a_client_of_the_users_decides_on_proxies_itself(proxies: pytest.MonkeyPatch) -> None:
    proxies.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    client = AsyncOpenAI(api_key="k", base_url=FAR)

    assert proxy_findings(OpenAIJudge("m", client=client)) == []


def test_a_judge_that_raises_anything_ends_no_other_check() -> None:
    judge = ScriptedJudge(error=RuntimeError("secret text"))
    diagnosis = checked(Monitor(judge, tracer_provider=provider()))

    assert of(diagnosis, "judge").state == "failed"
    assert "secret text" not in str(diagnosis)
    assert of(diagnosis, "records").state == "ok"


def test_a_judge_that_hangs_is_given_up_after_the_time() -> None:
    monitor = Monitor(Hanging(), tracer_provider=provider())
    began = time.monotonic()
    found = of(monitor.check(1.0), "judge")

    assert found.state == "failed"
    assert "within 1 s" in found.found
    assert time.monotonic() - began < 30


def test_a_judge_that_decides_nothing_has_failed() -> None:
    judge = ScriptedJudge(undecided="Danube")
    found = of(checked(Monitor(judge, tracer_provider=provider())), "judge")

    assert found.state == "failed"
    assert "without a verdict" in found.found


def test_a_judge_that_misses_a_copied_sentence_is_a_warning() -> None:
    class Blind(ScriptedJudge):
        async def check(
            self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
        ) -> VerdictMatrix:
            other = ["about something else"] * len(references)
            return await super().check(claims, other, question=question)

    found = of(checked(Monitor(Blind(), tracer_provider=provider())), "judge")

    assert found.state == "warning"
    assert "copied sentence" in found.found


def test_a_check_works_inside_of_an_event_loop() -> None:
    async def check() -> Diagnosis:
        monitor = Monitor(tracer_provider=provider())
        inside = monitor.check()  # as a cell of a notebook calls it
        assert (await monitor.acheck()).ok
        return inside

    assert asyncio.run(check()).ok


def test_queries_that_match_no_ground_truth_are_told_from_those_that_do() -> None:
    monitor = Monitor(
        ScriptedJudge(), sample=1.0, tracer_provider=provider(), ground_truth={"other": "an answer"}
    )
    rag_chain().invoke("question", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush(30)
    found = of(checked(monitor), "ground truth")

    assert found.state == "warning"
    assert "0 of 1" in found.found
    assert "similarity" in found.remedy


def test_matches_of_ground_truths_are_counted() -> None:
    monitor = Monitor(
        ScriptedJudge(), sample=1.0, tracer_provider=provider(), ground_truth={"question": "answer"}
    )
    rag_chain().invoke("question", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    assert monitor.flush(30)

    assert monitor.stats.with_ground_truth == 1
    assert "1 of 1" in of(checked(monitor), "ground truth").found


def test_a_mapping_without_ground_truths_is_a_failure() -> None:
    found = of(checked(Monitor(tracer_provider=provider(), ground_truth={})), "ground truth")

    assert found.state == "failed"
    assert found.remedy


def test_records_that_failed_outweigh_those_that_were_evaluated() -> None:
    judge = ScriptedJudge(error=RuntimeError())
    monitor = Monitor(judge, sample=1.0, tracer_provider=provider())
    rag_chain().invoke("question", {"callbacks": [ClaimspanCallbackHandler(monitor)]})
    monitor.flush(30)
    found = of(checked(monitor), "records")

    assert found.state == "failed"
    assert "judge_error" in found.found


@pytest.mark.parametrize(
    ("variable", "value", "state"),
    [
        ("OTEL_SDK_DISABLED", "true", "failed"),
        ("OTEL_TRACES_SAMPLER", "parentbased_always_off", "failed"),
        ("OTEL_TRACES_EXPORTER", "none", "warning"),
    ],
)
def test_variables_that_keep_spans_back_are_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, state: str
) -> None:
    monitor = Monitor(tracer_provider=provider())
    monkeypatch.setenv(variable, value)
    found = of(checked(monitor), "environment")

    assert found.state == state
    assert variable in found.found


def test_a_value_by_which_the_sdk_is_not_switched_off_is_no_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monitor = Monitor(tracer_provider=provider())
    monkeypatch.setenv("OTEL_SDK_DISABLED", "1")  # the SDK reads no other value than "true"

    assert not any(each.check == "environment" for each in checked(monitor))


def test_a_check_of_an_integration_that_cannot_be_loaded_ends_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = EntryPoint("haystack", "claimspan_haystack.no_such_module:check", CHECKS)

    def installed(*, group: str) -> list[EntryPoint]:
        return [broken] if group == CHECKS else []

    monkeypatch.setattr("claimspan_tracing.health.entry_points", installed)
    diagnosis = checked(Monitor(tracer_provider=provider()))

    assert of(diagnosis, "haystack").found.startswith("the check could not be made")
    assert of(diagnosis, "records").state == "ok"


def test_replaced_methods_of_haystacks_tracer_are_a_failure_until_ours_is_undone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    undo = instrument(Monitor(tracer_provider=provider()))
    try:
        assert [each.state for each in check_slot()] == ["ok"]
        enable_tracing(NullTracer())
        assert [each.state for each in check_slot()] == ["ok"]
        monkeypatch.setattr(tracer, "trace", NullTracer().trace)
        (found,) = check_slot()
        assert found.state == "failed"
        assert "another package" in found.found
    finally:
        undo()
    assert list(check_slot()) == []


APP = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from claimspan_tracing import Monitor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
monitor = Monitor(tracer_provider=provider, ground_truth={truths})
"""


def test_the_command_checks_the_monitor_of_an_application(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP.replace("{truths}", "{'q': 'a'}"))
    result = invoke("doctor", f"{tmp_path}/app.py:monitor", "--json")

    assert result.exit_code == 0, result.output
    shown = json.loads(result.output)
    assert shown["ok"]
    assert (
        of([Finding(**each) for each in shown["findings"]], "ground truth").found == "1 are known"
    )


def test_the_command_fails_where_a_check_fails_and_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP.replace("{truths}", "{}"))
    result = invoke("doctor", f"{tmp_path}/app.py:monitor")

    assert result.exit_code == 1
    assert "failed   ground truth" in result.output
    assert "-> give JSON lines" in result.output


def test_the_command_without_a_monitor_checks_what_the_environment_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    result = invoke("doctor", "--judge", "lexical")

    assert result.exit_code == 0, result.output
    assert "claimspan-traces.jsonl" in result.output
    assert (tmp_path / "claimspan-traces.jsonl").is_file()


def test_options_that_cannot_be_used_end_no_other_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = invoke("doctor", "--judge", "gpt5", "--ground-truth", "none.csv", "--json")

    assert result.exit_code == 1
    found = [Finding(**each) for each in json.loads(result.stdout)["findings"]]
    assert of(found, "judge").state == of(found, "ground truth").state == "failed"
    assert "gpt5" in of(found, "judge").found
    assert "none.csv" in of(found, "ground truth").found
    assert of(found, "export").state == "ok"
    assert len({each.check for each in found}) == len(found)


def test_the_command_checks_a_judge_with_its_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with judge_server() as server:
        options = (f"base_url={server.url}", "seed=7")
        given = [part for each in options for part in ("--judge-option", each)]
        result = invoke("doctor", "--judge", "openai:m", *given)

        assert result.exit_code == 0, result.output
        assert "openai evaluated a record" in result.output
        assert server.sent("seed") == {7}


def test_options_beside_a_monitor_are_refused_as_it_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("monitor = 1\n")
    given = ("--judge", "lexical", "--judge-option", "seed=1")

    error = invoke("doctor", f"{tmp_path}/app.py:monitor", *given).exception
    assert "a monitor has its own judge" in str(error)


def test_an_object_that_is_no_monitor_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("monitor = 1\n")

    assert "name a Monitor" in str(invoke("doctor", f"{tmp_path}/app.py:monitor").exception)
