"""Traces as Langfuse, Tempo and Jaeger keep them, and their APIs, strict about what they are asked.

* ``StoredLangfuse``: ``GetTracesRequest`` and ``TraceWithFullDetails`` of Langfuse's
  ``fern/apis/server/definition``, and what its OpenTelemetry ingestion leaves in the metadata.
* ``StoredTempo``: the API of Tempo's documentation, ``docs/sources/tempo/api_docs``: a search
  without pages, which gives the newest it finds, and traces by id with ids in base64.
* ``StoredJaeger``: version 3 of Jaeger's query API, as its ``http_gateway.go`` answers.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pydantic import JsonValue

from contract_server import NotFoundError, Request, UnauthorizedError
from contracts import LangfuseApi

__all__ = [
    "MINUTE",
    "TRUTH",
    "StoredJaeger",
    "StoredLangfuse",
    "StoredTempo",
    "group",
    "question",
    "spans_of",
]

MINUTE: Final = 60 * 10**9
FACT: Final = "The Drava rises in South Tyrol and is 725 kilometres long."
TRUTH: Final = "The Drava is 725 kilometres long."

Span = dict[str, Any]


def question(number: int) -> str:
    return f"How long is the Drava, asked {number} times?"


def _span(number: int, part: int, start: int, attributes: Mapping[str, str]) -> Span:
    return {
        "traceId": f"{number + 1:032x}",
        "spanId": f"{number + 1:08x}{part:08x}",
        "parentSpanId": "" if part == 1 else f"{number + 1:08x}{1:08x}",
        "name": attributes["openinference.span.kind"].lower(),
        "startTimeUnixNano": str(start + part * 1_000_000),
        "endTimeUnixNano": str(start + (10 if part == 1 else part) * 1_000_000 + 500_000),
        "attributes": [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()],
    }


def spans_of(number: int, start: int) -> list[Span]:
    """The spans of one question, as OTLP's JSON has them."""
    asked = question(number)
    return [
        _span(
            number,
            1,
            start,
            {"openinference.span.kind": "CHAIN", "input.value": asked, "output.value": TRUTH},
        ),
        _span(
            number,
            2,
            start,
            {
                "openinference.span.kind": "RETRIEVER",
                "input.value": asked,
                "retrieval.documents.0.document.content": FACT,
            },
        ),
        _span(
            number,
            3,
            start,
            {
                "openinference.span.kind": "LLM",
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.content": f"{FACT}\n{asked}",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.content": TRUTH,
            },
        ),
    ]


def group(spans: Sequence[Span], service: str = "bot") -> dict[str, Any]:
    """``resourceSpans`` of a service."""
    named = [{"key": "service.name", "value": {"stringValue": service}}]
    return {
        "resource": {"attributes": named},
        "scopeSpans": [{"scope": {"name": "openinference"}, "spans": [*spans]}],
    }


Traces = Sequence[Sequence[Span]]


class _Stored:
    """Traces, found by the time at which they began."""

    def __init__(self, traces: Traces) -> None:
        self.traces = {spans[0]["traceId"]: spans for spans in traces}

    def between(self, start: int, end: int) -> list[str]:
        """Ids, the newest first."""
        found = [
            (int(spans[0]["startTimeUnixNano"]), id_)
            for id_, spans in self.traces.items()
            if start <= int(spans[0]["startTimeUnixNano"]) < end
        ]
        return [id_ for _, id_ in sorted(found, reverse=True)]


class StoredTempo(_Stored):
    def __call__(self, request: Request) -> JsonValue:
        if request.method != "GET":
            raise ValueError(request.method)
        if request.path == "/api/search":
            if request.query["q"] != "{}":
                raise ValueError(request.query["q"])
            start, end = (int(request.query[name]) * 10**9 for name in ("start", "end"))
            if end <= start:
                raise ValueError("an empty time")
            ids = self.between(start, end)[: int(request.query["limit"])]
            return {
                "traces": [
                    # Without leading zeros, as Tempo writes ids.
                    {
                        "traceID": id_.lstrip("0"),
                        "startTimeUnixNano": self.traces[id_][0]["startTimeUnixNano"],
                    }
                    for id_ in ids
                ]
            }
        id_ = request.path.removeprefix("/api/v2/traces/")
        if id_ not in self.traces:
            raise NotFoundError
        spans = [{**each, **_in_base64(each)} for each in self.traces[id_]]
        return {"trace": {"resourceSpans": [group(spans)]}}


def _in_base64(span: Span) -> Span:
    names = ("traceId", "spanId", "parentSpanId")
    return {name: base64.b64encode(bytes.fromhex(span[name])).decode() for name in names}


class StoredJaeger(_Stored):
    def __call__(self, request: Request) -> JsonValue:
        if request.path == "/api/v3/services":
            return {"services": ["bot", "another"]}
        if (request.method, request.path) != ("GET", "/api/v3/traces"):
            raise ValueError(request.path)
        start, end = (
            int(datetime.fromisoformat(request.query[f"query.start_time_{e}"]).timestamp() * 1e9)
            for e in ("min", "max")
        )
        ids = self.between(start, end)[: int(request.query["query.num_traces"])]
        if not ids or request.query["query.service_name"] != "bot":
            raise NotFoundError  # No traces found
        spans = [span for id_ in ids for span in self.traces[id_]]
        return {"result": {"resourceSpans": [group(spans)]}}


class StoredLangfuse(LangfuseApi):
    """Langfuse with traces that came by OpenTelemetry."""

    def __init__(self, traces: Traces) -> None:
        super().__init__()
        self.stored = _Stored(traces)

    def __call__(self, request: Request) -> JsonValue:
        if request.method == "POST":
            return super().__call__(request)
        keys = base64.b64encode(f"{self.PUBLIC_KEY}:{self.SECRET_KEY}".encode()).decode()
        if request.headers.get("authorization") != f"Basic {keys}":
            raise UnauthorizedError
        if request.path == "/api/public/traces":
            return self._page(request.query)
        id_ = request.path.removeprefix("/api/public/traces/")
        if id_ not in self.stored.traces:
            raise NotFoundError
        return {"id": id_, "observations": [*map(_observation, self.stored.traces[id_])]}

    def _page(self, query: Mapping[str, str]) -> JsonValue:
        if query["orderBy"] != "timestamp.asc":
            raise ValueError(query["orderBy"])
        since, until = (
            int(datetime.fromisoformat(query[name]).timestamp() * 1e9) if name in query else other
            for name, other in (("fromTimestamp", 0), ("toTimestamp", 2**63))
        )
        page, limit = int(query["page"]), int(query["limit"])
        ids = self.stored.between(since, until)[::-1]
        return {
            "data": [{"id": id_} for id_ in ids[(page - 1) * limit : page * limit]],
            "meta": {
                "page": page,
                "limit": limit,
                "totalItems": len(ids),
                "totalPages": -(-len(ids) // limit),
            },
        }


_TYPES: Final = {"LLM": "GENERATION"}


def _observation(span: Span) -> JsonValue:
    attributes = {each["key"]: each["value"]["stringValue"] for each in span["attributes"]}
    kind = attributes["openinference.span.kind"]
    return {
        "id": span["spanId"],
        "traceId": span["traceId"],
        "parentObservationId": span["parentSpanId"] or None,
        "type": _TYPES.get(kind, kind),
        "name": span["name"],
        "startTime": _iso(span["startTimeUnixNano"]),
        "endTime": _iso(span["endTimeUnixNano"]),
        "input": attributes.pop("input.value", None),
        "output": attributes.pop("output.value", None),
        "level": "DEFAULT",
        "metadata": {
            "attributes": attributes,
            "resourceAttributes": {"service.name": "bot"},
            "scope": {"name": "openinference"},
        },
    }


def _iso(nanoseconds: str) -> str:
    # It keeps milliseconds.
    moment = datetime.fromtimestamp(int(nanoseconds) // 10**6 / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
