"""An application that is pointed at the service is judged, and does not know of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from otlp_receiver import Receiver, receiver
from processes import start, wait_for
from served import Served, scored, serving, until

APP: Final = """
import sys
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as Grpc
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as Http
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from lc_pipelines import rag_chain

http, rpc = sys.argv[1:]
exporters = {
    "http": Http(f"{http}/v1/traces"),
    "gzip": Http(f"{http}/v1/traces", compression=Compression.Gzip),
    "grpc": Grpc(rpc, insecure=True),
}
for transport, exporter in exporters.items():
    provider = TracerProvider(resource=Resource({"service.name": transport}))
    provider.add_span_processor(BatchSpanProcessor(exporter))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    for number in range(2):
        rag_chain().invoke(f"How long is river {number}?")
    print(transport, provider.force_flush())
    provider.shutdown()
    instrumentor.uninstrument()
"""
"""Three that know nothing of claimspan: a chain of LangChain each, traced by OpenInference."""

SENT: Final = "http True\ngzip True\ngrpc True\n"
SERVICES: Final = ["grpc", "grpc", "gzip", "gzip", "http", "http"]


def joined(served: Served) -> int:
    return served.health()["spans"]["joined"]


def test_each_query_gets_its_scores_beside_its_service_by_whatever_transport_and_through_a_proxy(
    tmp_path: Path,
) -> None:
    def address(of: Receiver) -> str:
        return of.url.removesuffix("/v1/traces")

    with (
        receiver() as scores,
        receiver() as behind,
        receiver() as proxied,
        serving(tmp_path, "--export", address(scores)) as served,
    ):
        app = wait_for(start(["-c", APP, served.url, served.grpc], tmp_path))
        until(lambda: len(scored(scores)) == 6)
        until(lambda: served.health()["records"]["evaluated"] == 6)
        n_before = joined(served)
        forward = ("--forward", address(behind), "--forward", f"grpc://{served.grpc}")
        with serving(tmp_path, *forward, "--export", address(proxied)) as proxy:
            forwarded = wait_for(start(["-c", APP, proxy.url, proxy.grpc], tmp_path))
            until(lambda: len(scored(proxied)) == 6)
            until(lambda: len(scored(scores)) == 8)
            # What the proxy has read is what the backends of the two transports have.
            until(lambda: joined(served) + len(behind.spans) == joined(proxy) + n_before)
        ended = served.stop()

    assert (app.code, app.stdout, forwarded.code, forwarded.stdout) == (0, SENT, 0, SENT)
    assert sorted(service for _, service in scored(proxied)) == SERVICES
    assert sorted(service for _, service in scored(scores)[:6]) == SERVICES
    assert len({trace for trace, _ in scored(scores)}) == 8
    assert (ended.code, ended.stderr) == (0, "")
