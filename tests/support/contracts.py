"""The published APIs that scores are written to, each strict about what it takes.

* ``PhoenixApi``: the OpenAPI description of arize-phoenix 20.26.1 (``AnnotateSpansRequestBody``,
  ``AnnotateSpanDocumentsRequestBody``, ``AnnotateTracesRequestBody``), and its routes' own checks.
* ``MLflowApi``: ``CreateAssessment`` and ``GetTraceInfoV3`` of MLflow 3.17's ``service.proto``, as
  JSON, and the checks of its ``AssessmentSource``.
* ``LangfuseApi``: ``CreateScoreRequest`` of Langfuse's ``fern/apis/server/definition/scores.yml``,
  at commit 62751446 of August 2026. No Langfuse server can be had for the tests: what is proven for
  it is that requests keep to this contract.
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from datetime import UTC, datetime
from typing import Annotated, Final, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, JsonValue, TypeAdapter

from contract_server import NotFoundError, Request, UnauthorizedError

__all__ = ["Assessment", "LangfuseApi", "MLflowApi", "PhoenixApi"]

TraceId = Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
SpanId = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Metadata = dict[str, str]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, regex_engine="python-re")


# --- Phoenix --------------------------------------------------------------------------------------


class _Result(_Strict):
    label: str | None = None
    score: FiniteFloat | None = None
    explanation: str | None = None


class _Annotation(_Strict):
    name: Annotated[str, Field(min_length=1, pattern=r"^(?!note$)")]
    annotator_kind: Literal["LLM", "CODE", "HUMAN"]
    result: _Result
    metadata: Metadata
    identifier: str = ""


class _SpanAnnotation(_Annotation):
    span_id: SpanId


class _DocumentAnnotation(_Annotation):
    span_id: SpanId
    document_position: Annotated[int, Field(ge=0)]
    identifier: Annotated[str, Field(pattern="^$")] = ""  # the route refuses any other


class _TraceAnnotation(_Annotation):
    trace_id: TraceId


class _Spans(_Strict):
    data: list[_SpanAnnotation]


class _Documents(_Strict):
    data: list[_DocumentAnnotation]


class _Traces(_Strict):
    data: list[_TraceAnnotation]


class PhoenixApi:
    """Stores annotations as Phoenix does: the last one of each key stays."""

    def __init__(self) -> None:
        self.spans: dict[tuple[str, str, str], _SpanAnnotation] = {}
        """By name, span and identifier."""
        self.documents: dict[tuple[str, str, int], _DocumentAnnotation] = {}
        """By name, span and position."""
        self.traces: dict[tuple[str, str, str], _TraceAnnotation] = {}
        """By name, trace and identifier."""

    def __call__(self, request: Request) -> JsonValue:
        if request.method != "POST" or request.query != {"sync": "false"}:
            raise ValueError("not what the client is to ask for")
        match request.path:
            case "/v1/span_annotations":
                spans = _Spans.model_validate_json(request.text).data
                self.spans |= {(each.name, each.span_id, each.identifier): each for each in spans}
            case "/v1/document_annotations":
                documents = _Documents.model_validate_json(request.text).data
                self.documents |= {
                    (each.name, each.span_id, each.document_position): each for each in documents
                }
            case "/v1/trace_annotations":
                traces = _Traces.model_validate_json(request.text).data
                self.traces |= {
                    (each.name, each.trace_id, each.identifier): each for each in traces
                }
            case _:
                raise ValueError("no such route")
        return {"data": []}


# --- MLflow ---------------------------------------------------------------------------------------


class _Source(_Strict):
    source_type: Literal["HUMAN", "LLM_JUDGE", "CODE"]
    source_id: Annotated[str, Field(min_length=1)]


class _Feedback(_Strict):
    value: FiniteFloat | Literal["good", "low", "yes", "no"]


class Assessment(_Strict):
    """A piece of feedback on a span, as MLflow takes it."""

    assessment_name: Annotated[str, Field(min_length=1)]
    trace_id: Annotated[str, Field(pattern=r"^tr-[0-9a-f]{32}$")]
    span_id: SpanId
    source: _Source
    feedback: _Feedback
    rationale: Annotated[str, Field(min_length=1)] | None = None
    metadata: Metadata
    create_time: Annotated[str, Field(pattern=r"Z$")]
    last_update_time: Annotated[str, Field(pattern=r"Z$")]


class _CreateAssessment(_Strict):
    assessment: Assessment


class MLflowApi:
    """Stores assessments as MLflow does: each one that it is sent, for a trace that it has."""

    def __init__(self) -> None:
        self.assessments: dict[str, list[Assessment]] = {}
        """By trace id with ``tr-``; a trace is there once it has a list."""

    def __call__(self, request: Request) -> JsonValue:
        route = re.fullmatch(
            r"/api/3\.0/mlflow/traces/(tr-[0-9a-f]{32})(/assessments)?", request.path
        )
        if route is None or request.query or (request.method == "POST") != bool(route[2]):
            raise ValueError("no such route")
        if route[1] not in self.assessments:
            raise NotFoundError
        stored = self.assessments[route[1]]
        if request.method == "GET":
            return {"trace": {"trace_info": {"trace_id": route[1], "assessments": _dump(stored)}}}
        assessment = _CreateAssessment.model_validate_json(request.text).assessment
        if assessment.trace_id != route[1]:
            raise ValueError("another trace in the body")
        age = datetime.now(UTC) - datetime.fromisoformat(assessment.create_time)
        if not 0 <= age.total_seconds() < 600:
            raise ValueError("a time that is not now")
        stored.append(assessment)
        return {"assessment": _dump([assessment])[0]}

    def doubled(self) -> list[tuple[str, str, str, str]]:
        """Name, span, place of the chunk and judge of what is stored twice."""
        found = Counter(
            (
                each.assessment_name,
                each.span_id,
                each.metadata.get("chunk_index", ""),
                each.source.source_id,
            )
            for stored in self.assessments.values()
            for each in stored
        )
        return [key for key, count in found.items() if count > 1]


def _dump(assessments: list[Assessment]) -> list[JsonValue]:
    return [each.model_dump(mode="json") for each in assessments]


# --- Langfuse -------------------------------------------------------------------------------------


class _Score(_Strict):
    """Of the fields of ``CreateScoreRequest`` those that go with a numeric score on a span."""

    id: str
    traceId: TraceId  # noqa: N815 - the contract's name
    observationId: SpanId  # noqa: N815 - the contract's name
    name: Annotated[str, Field(min_length=1)]
    value: FiniteFloat
    dataType: Literal["NUMERIC"]  # noqa: N815 - the contract's name
    comment: str | None = None
    metadata: Metadata
    environment: Annotated[str, Field(pattern=r"^(?!langfuse)[a-z0-9_-]+$")] = "default"


class LangfuseApi:
    """Stores scores by their id, for one project with its keys."""

    PUBLIC_KEY: Final = "pk-lf-1"
    SECRET_KEY: Final = "sk-lf-never-in-a-log"  # noqa: S105 - of this server alone

    def __init__(self) -> None:
        self.scores: dict[str, _Score] = {}

    def __call__(self, request: Request) -> JsonValue:
        keys = base64.b64encode(f"{self.PUBLIC_KEY}:{self.SECRET_KEY}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {keys}":
            raise UnauthorizedError
        if (request.method, request.path, request.query) != ("POST", "/api/public/scores", {}):
            raise ValueError("no such route")
        score = TypeAdapter(_Score).validate_json(request.text)
        UUID(score.id)
        self.scores[score.id] = score
        return {"id": score.id}
