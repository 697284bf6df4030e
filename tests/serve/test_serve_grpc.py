"""What OTLP over gRPC is answered: the same as over HTTP, in its own words."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo  # type: ignore[import-untyped]  # no py.typed
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # as above
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from served import Served, asked, body_of, serving, until

TRACES: Final = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LOGS: Final = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
DETAILS: Final = "grpc-status-details-bin"

Metadata = Sequence[tuple[str, str]]


def export(
    served: Served,
    body: bytes,
    *,
    method: str = TRACES,
    metadata: Metadata = (),
    packed: bool = False,
) -> bytes:
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(served.grpc, options) as channel:
        call = channel.unary_unary(method, request_serializer=bytes, response_deserializer=bytes)
        compression = grpc.Compression.Gzip if packed else None
        return call(body, timeout=30, metadata=tuple(metadata), compression=compression)


def refusal(
    served: Served, body: bytes, *, method: str = TRACES
) -> tuple[grpc.StatusCode, str, Status]:
    with pytest.raises(grpc.RpcError) as raised:
        export(served, body, method=method)
    error = raised.value
    assert isinstance(error, grpc.Call)
    found = {each.key: each.value for each in error.trailing_metadata() or ()}
    status = Status.FromString(found.get(DETAILS, b""))
    return error.code(), error.details() or "", status


def test_what_cannot_be_taken_is_told_in_the_words_of_grpc(tmp_path: Path) -> None:
    config = tmp_path / "serve.yaml"
    body = body_of(asked())
    config.write_text(f"max_bytes: {5 * len(body)}\nmax_request_bytes: 100000\nquiet: 60\n")
    with serving(tmp_path, "--config", str(config), quiet=60) as served:
        broken = refusal(served, b"\xff" * 40)
        logs = refusal(served, b"", method=LOGS)
        unknown = refusal(served, b"", method="/other.Service/Export")
        large = refusal(served, b"\0" * 100_001)
        bomb = refusal_of_packed(served, b"\0" * 5_000_000)
        answers = [export(served, body_of(asked()), packed=n == 0) for n in range(4)]
        full = refusal(served, body_of(asked()) * 2)

    assert broken[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert "ExportTraceServiceRequest" in broken[1]
    assert logs[0] is grpc.StatusCode.UNIMPLEMENTED
    assert "--forward" in logs[1]
    assert unknown[0] is grpc.StatusCode.UNIMPLEMENTED
    assert large[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert bomb is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert not large[2].details  # which clients take for final
    assert [ExportTraceServiceResponse.FromString(each) for each in answers] == [
        ExportTraceServiceResponse()
    ] * 4
    assert full[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
    retry = RetryInfo()
    full[2].details[0].Unpack(retry)
    assert retry.retry_delay.seconds == 5


def refusal_of_packed(served: Served, body: bytes) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as raised:
        export(served, body, packed=True)
    assert isinstance(raised.value, grpc.Call)
    assert len(gzip.compress(body)) < 100_000
    return raised.value.code()


def test_a_proxy_forwards_message_metadata_and_answer_also_those_about_a_token_or_the_end(
    tmp_path: Path,
) -> None:
    body = body_of(asked())
    bearer = ("authorization", "Bearer secret")
    with serving(tmp_path, CLAIMSPAN_SERVE_TOKEN="secret", quiet=60) as backend:  # noqa: S106 - of this test
        forward = f"grpc://{backend.grpc}"
        with serving(tmp_path, "--forward", forward, quiet=60) as served:
            answer = export(served, body, metadata=[bearer])
            unknown, _, _ = refusal(backend, b"")
            refused = refusal(served, body)
            until(lambda: served.health()["waiting"]["traces"] == 1)
            until(lambda: backend.health()["waiting"]["traces"] == 1)
            taken = backend.health()["waiting"]
            export(backend, b"", metadata=[("x-claimspan-token", "secret")])
            backend.stop()
            down, _, _ = refusal(served, b"")

    assert unknown is grpc.StatusCode.UNAUTHENTICATED
    assert answer == b""
    assert (taken["traces"], taken["journal_bytes"]) == (1, len(body) + 6)
    # The backend's own refusal, with its details.
    assert refused[0] is grpc.StatusCode.UNAUTHENTICATED
    assert refused[2].code == 16
    assert down is grpc.StatusCode.UNAVAILABLE
