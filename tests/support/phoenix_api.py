"""Reads back from a Phoenix over its own interfaces: REST for spans, GraphQL for its filters."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from pydantic import BaseModel, Field

__all__ = ["Annotation", "PhoenixApi", "StoredSpan", "eventually"]

WAIT_SECONDS: Final = 60.0
"""Longest wait for what was sent to be there: Phoenix stores spans and annotations in batches."""

_T = TypeVar("_T")

FILTERED: Final = """
query ($id: ID!, $filter: String!) {
  node(id: $id) {
    ... on Project {
      spans(first: 1000, filterCondition: $filter) {
        edges { node { spanId name statusCode latencyMs } }
      }
    }
  }
}
"""

TRACES: Final = """
query ($id: ID!) {
  node(id: $id) {
    ... on Project {
      spans(first: 1000, filterCondition: "parent_id is None") {
        edges { node { spanId trace { traceId latencyMs } } }
      }
    }
  }
}
"""

DOCUMENTS: Final = """
query ($id: ID!) {
  node(id: $id) {
    ... on Project {
      spans(first: 1000, filterCondition: "span_kind == 'RETRIEVER'") {
        edges { node { spanId documentEvaluations { name score label documentPosition } } }
      }
    }
  }
}
"""


class Context(BaseModel):
    """The ids of a span."""

    trace_id: str
    span_id: str


class StoredSpan(BaseModel):
    """A span as Phoenix has stored it."""

    context: Context
    name: str
    span_kind: str
    parent_id: str | None
    start_time: str
    end_time: str
    status_code: str
    attributes: dict[str, Any]

    @property
    def id(self) -> str:
        return self.context.span_id


class Result(BaseModel):
    """The value of an annotation."""

    label: str | None = None
    score: float | None = None
    explanation: str | None = None


class Annotation(BaseModel):
    """An annotation of a span."""

    name: str
    annotator_kind: str
    span_id: str = ""
    result: Result = Field(default_factory=Result)


class PhoenixApi:
    """One project in a Phoenix."""

    def __init__(self, url: str, project: str) -> None:
        self.url = url
        self.project = project

    @property
    def id(self) -> str:
        """The project's id, which is part of its pages' addresses."""
        return str(self._get(f"projects/{quote(self.project)}")["data"]["id"])

    def spans(self, **parameters: str) -> list[StoredSpan]:
        """All spans, or those that REST's own filters let through; none without the project."""
        query = urlencode({"limit": 1000, **parameters})
        found = self._get(f"projects/{quote(self.project)}/spans?{query}")
        return [StoredSpan.model_validate(each) for each in found["data"]]

    def roots(self) -> list[StoredSpan]:
        return self.spans(parent_id="null")

    def annotations(self) -> list[Annotation]:
        """The annotations of all root spans."""
        ids = [("span_ids", span.id) for span in self.roots()]
        if not ids:
            return []
        query = urlencode([*ids, ("limit", "1000")])
        found = self._get(f"projects/{quote(self.project)}/span_annotations?{query}")
        return [Annotation.model_validate(each) for each in found["data"]]

    def annotated(self) -> set[str]:
        """The ids of the root spans that have annotations."""
        return {annotation.span_id for annotation in self.annotations()}

    def document_annotations(self) -> list[dict[str, Any]]:
        """The annotations of the documents of all retriever spans, each with its span's id."""
        edges = self._graphql(DOCUMENTS)["spans"]["edges"]
        return [
            {"spanId": edge["node"]["spanId"], **annotation}
            for edge in edges
            for annotation in edge["node"]["documentEvaluations"]
        ]

    def filtered(self, condition: str) -> list[str]:
        """Ids of the spans that the filter box of the project's page would let through."""
        edges = self._graphql(FILTERED, filter=condition)["spans"]["edges"]
        return [edge["node"]["spanId"] for edge in edges]

    def trace_milliseconds(self) -> dict[str, float]:
        """From the id of each trace to the duration that Phoenix shows of it."""
        edges = self._graphql(TRACES)["spans"]["edges"]
        traces = [edge["node"]["trace"] for edge in edges]
        return {trace["traceId"]: trace["latencyMs"] for trace in traces}

    def sessions(self) -> list[dict[str, Any]]:
        """The sessions, each with its traces."""
        found: list[dict[str, Any]] = self._get(f"projects/{quote(self.project)}/sessions")["data"]
        return found

    def _graphql(self, query: str, **variables: str) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": {"id": self.id, **variables}})
        reply = _read(f"{self.url}/graphql", body.encode())
        assert not reply.get("errors"), reply["errors"]
        node: dict[str, Any] = reply["data"]["node"]
        return node

    def _get(self, path: str) -> Mapping[str, Any]:
        try:
            return _read(f"{self.url}/v1/{path}")
        except HTTPError as error:
            if error.code != 404:  # 404: no span of the project has been stored yet
                raise
            return {"data": []}


def _read(url: str, body: bytes | None = None) -> dict[str, Any]:
    request = Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - loopback
    with urlopen(request, timeout=30) as reply:  # noqa: S310 - a server of the tests on loopback
        found: dict[str, Any] = json.load(reply)
        return found


def eventually(read: Callable[[], _T], expected: Callable[[_T], bool]) -> _T:
    """Read until it is as expected, or the time is up; what was read last is for the assertion."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not expected(found := read()) and time.monotonic() < deadline:
        time.sleep(0.2)
    return found
