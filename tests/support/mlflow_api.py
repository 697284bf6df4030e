"""Reads back from an MLflow over its REST interface what it has stored, as its pages do."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.request import Request, urlopen
from uuid import uuid4

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from pydantic import BaseModel, Field

__all__ = ["Assessment", "Experiment", "StoredSpan", "Trace"]

MOST_TRACES: Final = 100
"""That one search returns; no test makes as many."""


class Source(BaseModel):
    """Who has assessed."""

    source_type: str
    source_id: str


class Assessment(BaseModel):
    """What somebody thinks of a trace or a span."""

    name: str = Field(alias="assessment_name")
    span_id: str = ""
    source: Source
    feedback: dict[str, Any] = Field(default_factory=dict)
    rationale: str = ""
    metadata: dict[str, str] = Field(default_factory=dict)

    @property
    def value(self) -> object:
        return self.feedback.get("value")


class Trace(BaseModel):
    """A row of the table of traces."""

    id: str = Field(alias="trace_id")
    state: str
    execution_duration: str
    request_preview: str = ""
    response_preview: str = ""
    metadata: dict[str, str] = Field(default_factory=dict, alias="trace_metadata")
    tags: dict[str, str] = Field(default_factory=dict)
    assessments: list[Assessment] = Field(default_factory=list[Assessment])

    @property
    def request(self) -> str:
        """The question, as the table shows it."""
        return self.request_preview.strip('"')

    @property
    def response(self) -> str:
        return self.response_preview.strip('"')

    @property
    def milliseconds(self) -> float:
        return float(self.execution_duration.removesuffix("s")) * 1000

    def feedback(self, span: StoredSpan) -> dict[str, Assessment]:
        """What is thought of a span; there may be one of each name."""
        found = [each for each in self.assessments if each.span_id == span.id]
        by_name = {each.name: each for each in found}
        assert len(by_name) == len(found), [each.name for each in found]
        return by_name


class StoredSpan(BaseModel):
    """A span as the page of a trace gets it."""

    id: str
    parent: str
    name: str
    started: int
    ended: int
    status: str
    attributes: dict[str, Any]

    @property
    def type(self) -> object:
        return self.attributes.get("mlflow.spanType")

    @property
    def inputs(self) -> Any:
        return self.attributes.get("mlflow.spanInputs")

    @property
    def outputs(self) -> Any:
        return self.attributes.get("mlflow.spanOutputs")


class Experiment:
    """An experiment of its own in an MLflow: what others send is not in it."""

    def __init__(self, url: str) -> None:
        self.url = url
        body = {"name": f"experiment-{uuid4()}"}
        self.id = str(self._post("/api/2.0/mlflow/experiments/create", body)["experiment_id"])

    @property
    def page(self) -> str:
        """The address of the table of traces."""
        return f"{self.url}/#/experiments/{self.id}/traces"

    def provider(self) -> TracerProvider:
        """A provider as an application sets it up that exports to this experiment."""
        resource = Resource.create({"service.name": "bot"})
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        headers = {"x-mlflow-experiment-id": self.id}
        exporter = OTLPSpanExporter(f"{self.url}/v1/traces", headers=headers)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        return provider

    def traces(self, condition: str = "") -> list[Trace]:
        """All traces, or those that the condition lets through."""
        location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": self.id}}
        body = {"locations": [location], "filter": condition, "max_results": MOST_TRACES}
        found = self._post("/api/3.0/mlflow/traces/search", body).get("traces", [])
        return [Trace.model_validate(each) for each in found]

    def asked(self, condition: str) -> set[str]:
        """The questions of the traces that a condition lets through."""
        return {trace.request for trace in self.traces(condition)}

    def trace(self, request: str) -> Trace:
        """The one trace of a question."""
        (found,) = [trace for trace in self.traces() if trace.request == request]
        return found

    def spans(self, trace: Trace) -> list[StoredSpan]:
        """The spans of a trace."""
        found = self._read(f"/api/3.0/mlflow/traces/get?trace_id={trace.id}")
        return [_span(each) for each in found["trace"]["spans"]]

    def span(self, trace: Trace, type_: str) -> StoredSpan:
        """The one span of a type."""
        (found,) = [span for span in self.spans(trace) if span.type == type_]
        return found

    def _post(self, path: str, body: Mapping[str, object]) -> dict[str, Any]:
        return self._read(path, json.dumps(body).encode())

    def _read(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        headers = {"Content-Type": "application/json"}
        request = Request(self.url + path, body, headers)  # noqa: S310 - a server on loopback
        with urlopen(request, timeout=60) as reply:  # noqa: S310 - a server on loopback
            found: dict[str, Any] = json.load(reply)
            return found


def _span(stored: Mapping[str, Any]) -> StoredSpan:
    return StoredSpan(
        id=_hex(stored["span_id"]),
        parent=_hex(stored.get("parent_span_id", "")),
        name=stored["name"],
        started=int(stored["start_time_unix_nano"]),
        ended=int(stored["end_time_unix_nano"]),
        status=stored.get("status", {}).get("code", "STATUS_CODE_UNSET"),
        attributes={each["key"]: _plain(each.get("value", {})) for each in stored["attributes"]},
    )


def _hex(id_: str) -> str:
    return base64.b64decode(id_).hex()


def _plain(value: Mapping[str, Any]) -> Any:
    """The value that OpenTelemetry's protocol wraps."""
    match value:
        case {"array_value": items}:
            return [_plain(each) for each in items.get("values", [])]
        case {"kvlist_value": items}:
            return {each["key"]: _plain(each.get("value", {})) for each in items.get("values", [])}
        case _:
            return next(iter(value.values()), None)
