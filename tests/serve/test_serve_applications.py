"""An application that is pointed at the service is judged, and does not know of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from otlp_receiver import receiver
from served import run_app, scored, serving, until


@pytest.mark.parametrize("transport", ["http", "gzip", "grpc"])
def test_each_query_of_an_application_gets_its_scores_beside_its_service(
    tmp_path: Path, transport: str
) -> None:
    with receiver() as backend:
        export = backend.url.removesuffix("/v1/traces")
        with serving(tmp_path, "--export", export) as served:
            app = run_app(
                tmp_path, transport, served.grpc if transport == "grpc" else served.url, 2
            )
            until(lambda: len(scored(backend)) == 2)
            counts = served.health()
            ended = served.stop()

    assert (app.code, app.stdout) == (0, "True\n")
    assert {service for _, service in scored(backend)} == {"shop"}
    assert len({trace for trace, _ in scored(backend)}) == 2
    assert counts["records"]["evaluated"] == 2
    assert (ended.code, ended.stderr) == (0, "")


@pytest.mark.parametrize("transport", ["http", "gzip", "grpc"])
def test_a_forwarded_application_has_its_spans_in_the_backend_and_scores_beside_them(
    tmp_path: Path, transport: str
) -> None:
    with receiver() as behind, receiver() as scores:
        export = scores.url.removesuffix("/v1/traces")
        with serving(tmp_path, "--export", export, quiet=60) as sink:
            forward = behind.url.removesuffix("/v1/traces")
            forward = f"grpc://{sink.grpc}" if transport == "grpc" else forward
            with serving(tmp_path, "--forward", forward, "--export", export) as served:
                endpoint = served.grpc if transport == "grpc" else served.url
                app = run_app(tmp_path, transport, endpoint)
                until(lambda: len(scored(scores)) == 1)
                n_read = served.health()["spans"]["joined"]
            waiting = sink.health()["requests"]["taken"]

    assert (app.code, app.stdout) == (0, "True\n")
    arrived = waiting > 0 if transport == "grpc" else len(behind.spans) == n_read
    assert arrived
    assert {service for _, service in scored(scores)} == {"shop"}
