"""The command: what its options may say, how it begins, and how it ends."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from claimspan.errors import ConfigError
from claimspan_serve._options import options_from, read_config
from claimspan_tracing import Alert, semconv
from claimspan_tracing.adapters import MonitorOptions

from otlp_receiver import Answer, receiver, spans_in
from processes import start, wait_for
from served import PROTOBUF, asked, body_of, scored, serving, until

YAML = """
http_port: 0
forward: http://backend:6006
quiet: 2.5
judge: lexical
sample: 0.5
metrics: [faithfulness]
thresholds: {faithfulness: 0.9}
budget: {per_day: 2.0, calls_per_record: 10}
alerts:
  - {metric: faithfulness, below: 0.8}
redact: pii
redact_for: [export]
on_result: "mine.py:got"
sinks: [phoenix, "mine.py:sink"]
"""


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction] - pytest uses it
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "class Sink:\n    def write(self, finished): ...\nsink = Sink()\ndef got(finished): ...\n"
    )


def test_a_file_of_yaml_has_the_options_of_the_service_and_of_its_monitor(tmp_path: Path) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(YAML)

    options, monitor = options_from(read_config(file) | {"quiet": 7})

    assert (options.http_port, options.quiet, options.forward) == (0, 7, ("http://backend:6006",))
    assert monitor.get("sample") == 0.5
    assert monitor.get("alerts") == [Alert("faithfulness", below=0.8)]
    assert [type(each).__name__ for each in monitor.get("sinks", ())] == ["PhoenixWriter", "Sink"]
    assert callable(monitor.get("on_result"))
    assert monitor.get("exit_timeout") == options.exit_timeout


def test_every_option_of_a_monitor_can_be_given_but_those_that_make_no_sense_here() -> None:
    ours = {"tracer_provider", "serverless", "sinks", "exit_timeout"}

    for name in MonitorOptions.__annotations__.keys() - ours:
        assert name not in options_from({name: None})[1]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"smple": 0.1}, "did you mean sample?"),
        ({"htp_port": 1}, "did you mean http_port?"),
        ({"tracer_provider": 1}, "no option 'tracer_provider'"),
        ({"xyzzy": 1}, "docs/beside.md"),
        ({"http_port": "many"}, "http_port: "),
        ({"http_port": 70_000}, "http_port: "),
        ({"quiet": 0}, "quiet: "),
        ({"host": "0.0.0.0"}, "CLAIMSPAN_SERVE_TOKEN"),  # noqa: S104 - refused
        ({"host": "example.org"}, "mTLS"),
        ({"host": "::"}, "mTLS"),
        ({"tls_cert": "a.pem"}, "tls_cert and tls_key"),
        ({"client_ca": "a.pem"}, "tls_cert and tls_key"),
        ({"forward": "backend:4318"}, "correct it"),
        ({"forward": ["http://a", "https://b"]}, "one of each"),
        ({"export": "grpc://a:4317"}, "export is no http://"),
        ({"export_signals": "spans"}, "export_signals"),
        ({"sinks": "phonix"}, "did you mean phoenix?"),
        ({"sinks": "mine.py:none"}, "has no 'none'"),
        ({"budget": {"per_week": 1}}, "budget"),
        ({"budget": 5}, "budget is no table"),
        ({"alerts": [{"below": 1}]}, "alerts"),
        ({"token": ""}, "token"),
    ],
)
def test_an_option_that_cannot_work_is_told_by_its_name(
    given: dict[str, object], told: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(told)):
        options_from(given)


@pytest.mark.parametrize("text", ["- a list", "a: [", "just text", "\x00"])
def test_a_file_that_is_no_table_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "serve.yaml"
    file.write_text(text)

    with pytest.raises(ConfigError, match=r"serve\.yaml"):
        read_config(file)


def test_an_error_of_the_token_does_not_show_it() -> None:
    with pytest.raises(ConfigError) as raised:
        options_from({"token": ["secret"]})

    assert "secret" not in str(raised.value)


def test_a_port_that_is_taken_is_one_line_that_says_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = ["-m", "claimspan", "serve", "--judge", "lexical"]
        http, rpc = (
            wait_for(start([*command, "--http-port", one, "--grpc-port", other], tmp_path))
            for one, other in ((port, "0"), ("0", port))
        )

    for ended, option in ((http, "http_port"), (rpc, "grpc_port")):
        assert ended.code == 2
        assert f"cannot listen at 127.0.0.1:{port}" in ended.stderr
        assert f"give another {option}" in ended.stderr
        assert "Traceback" not in ended.stderr


def test_sigterm_judges_the_traces_whose_root_has_come(tmp_path: Path) -> None:
    with receiver() as backend:
        export = backend.url.removesuffix("/v1/traces")
        with serving(tmp_path, "--export", export, "--exit-timeout", "20", quiet=600) as served:
            assert served.post(body_of(asked())).status_code == 200
            assert served.post(body_of(asked()[:1])).status_code == 200
            ready = httpx.get(f"{served.url}/readyz")
            ended = served.stop()

    assert ready.status_code == 200
    assert (ended.code, ended.stderr) == (0, "")
    assert len(scored(backend)) == 1


def written_names(folder: Path) -> list[str]:
    """Names of the spans in the file of a service, by whole lines."""
    file = folder / "claimspan-traces.jsonl"
    lines = file.read_text().splitlines(keepends=True) if file.exists() else []
    return [
        span["name"]
        for line in lines
        if line.endswith("\n")
        for resource in json.loads(line)["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def test_scores_go_to_a_file_where_nothing_says_where_else_and_all_counts_outlast_a_process(
    tmp_path: Path,
) -> None:
    with serving(tmp_path) as served:
        before = served.health()
        served.post(body_of(asked()))
        until(lambda: served.health()["records"]["evaluated"] == 1)
        until(lambda: "claimspan.evaluate" in written_names(tmp_path))
        os.kill(served.health()["judge"]["pid"], SIGKILL)
        until(lambda: served.health()["judge"]["restarts"] == 1)
        after = served.health()
        until(lambda: bool(served.health()["judge"]["pid"]))
        served.stop()

    # From the first, and while another process starts.
    assert {"requests", "spans", "records", "waiting"} <= before.keys() & after.keys()
    assert after["records"]["evaluated"] == 1
    gauges = {"pending", "queued", "queued_bytes"}
    assert before["records"].keys() - after["records"].keys() <= gauges


def test_events_and_metrics_go_to_the_same_place_and_a_weight_counts_what_the_head_left_out(
    tmp_path: Path,
) -> None:
    config = tmp_path / "serve.yaml"
    config.write_text("export_signals: [traces, logs, metrics]\n")
    request = ExportTraceServiceRequest.FromString(body_of(asked()))
    for span in spans_in(request):
        span.trace_state = "ot=th:c"
    with receiver() as backend:
        export = backend.url.removesuffix("/v1/traces")
        with serving(tmp_path, "--config", str(config), "--export", export) as served:
            served.post(request.SerializeToString())
            until(lambda: len(scored(backend)) == 1)
            assert served.stop().code == 0

        assert backend.logs
        names = {
            metric.name
            for exported in backend.metrics
            for resource in exported.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }
    assert {"claimspan.serve.spans", "claimspan.serve.requests", "claimspan.records"} <= names
    weights = {
        attribute.value.double_value
        for span in backend.spans
        for attribute in span.attributes
        if attribute.key == semconv.SAMPLE_WEIGHT
    }
    assert weights == {4.0}


def test_mtls_lets_in_who_has_a_certificate(tmp_path: Path) -> None:
    made = certificates(tmp_path)
    config = tmp_path / "serve.yaml"
    config.write_text(
        f"tls_cert: {made}/server.pem\ntls_key: {made}/server.key\nclient_ca: {made}/ca.pem\n"
    )
    with serving(tmp_path, "--config", str(config)) as served:
        tls = ssl.create_default_context(cafile=str(made / "ca.pem"))
        with httpx.Client(verify=tls) as stranger, pytest.raises(httpx.HTTPError):
            stranger.post(f"{served.url}/v1/traces", content=b"", headers=PROTOBUF)
        tls.load_cert_chain(made / "client.pem", made / "client.key")
        with httpx.Client(verify=tls) as known:
            answer = known.post(f"{served.url}/v1/traces", content=b"", headers=PROTOBUF)

    assert served.url.startswith("https://")
    assert answer.status_code == 200


def certificates(folder: Path) -> Path:
    """Make an authority, a server and a client of it."""
    new = ["openssl", "req", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-x509"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1"]
    quietly = {"check": True, "cwd": folder, "capture_output": True}
    subprocess.run([*new, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=ca"], **quietly)  # type: ignore[call-overload] # one table for all
    for name in ("server", "client"):
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key"]
        files = ["-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}"]
        subprocess.run([*new, *files, *names, *signed], **quietly)  # type: ignore[call-overload] # as above
    return folder


WAITS = """
import time
from pathlib import Path
from signal import SIGKILL
from claimspan.judges import LexicalJudge

class Waits(LexicalJudge):
    def extract_claims(self, *given, **named):
        while not Path("go").exists():
            time.sleep(0.05)
        return super().extract_claims(*given, **named)

judge = Waits()
"""


def test_a_record_in_the_spool_has_its_score_once_after_the_service_was_killed(
    tmp_path: Path,
) -> None:
    (tmp_path / "waits.py").write_text(WAITS)
    with receiver() as backend:
        where = backend.url.removesuffix("/v1/traces")
        options = ("--export", where, "--spool", "spool.db", "--judge", "waits.py:judge")
        with serving(tmp_path, *options) as served:
            served.post(body_of(asked()))
            until(lambda: served.health()["records"]["spooled"] == 1)
            served.stop(SIGKILL)
        assert not scored(backend)
        (tmp_path / "go").touch()
        with serving(tmp_path, *options) as served:
            until(lambda: len(scored(backend)) == 1)
            counts = served.health()["records"]
            served.stop()

    assert (counts["recovered"], len(scored(backend))) == (1, 1)


@contextmanager
def silent() -> Generator[str]:
    """A target that takes connections, reads nothing, and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@contextmanager
def unavailable() -> Generator[str]:
    """A target that says 503 to each request."""
    with receiver() as backend:
        backend.answers.extend([Answer(503, keeps=False)] * 1_000)
        yield backend.url.removesuffix("/v1/traces")


def test_what_no_target_takes_is_kept_while_more_is_taken_and_has_its_score_once_from_one_that_does(
    tmp_path: Path,
) -> None:
    options = ("--spool", "spool", "--exit-timeout", "3")
    n_sent = 0
    for bad in (silent, unavailable):
        with bad() as where, serving(tmp_path, *options, "--export", where) as served:
            for _ in range(3):
                assert served.post(body_of(asked())).status_code == 200
                n_sent += 1
            until(lambda: served.health()["records"]["evaluated"] >= 3)
            assert served.post(body_of(asked()[:2])).status_code == 200
            began = time.monotonic()
            ended = served.stop()
        assert ended.code == 0
        assert ended.ended_at - began < 6
    with receiver() as backend:
        where = backend.url.removesuffix("/v1/traces")
        with serving(tmp_path, *options, "--export", where) as served:
            until(lambda: len(scored(backend)) >= n_sent)
            assert served.health()["waiting"]["traces"] == 2
            served.stop()

    assert len(scored(backend)) == len({trace for trace, _ in scored(backend)}) == n_sent
