"""The APIs that traces are read from, each as pages of whole traces."""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import quote

from pydantic import JsonValue

from claimspan.errors import ConfigError
from claimspan_backfill._sources import (
    PAGE,
    Api,
    Page,
    Window,
    as_otlp,
    by_trace,
    iso,
    items,
    part,
)
from claimspan_tracing import semconv
from claimspan_tracing.adapters import Backend, is_list, is_mapping

_MOST_SPANS: Final = 1000
"""That Phoenix gives at once."""

SLICE: Final = timedelta(days=1)
"""What Tempo and Jaeger are asked for at once; they bound the time that a search may be about."""

FINEST: Final = timedelta(seconds=1)
"""The shortest time that is asked for, as Tempo knows no shorter one."""

MOST: Final = 5_000
"""Traces that are asked for of the shortest time."""


class PhoenixSource:
    """A project of Phoenix."""

    def __init__(self, backend: Backend, project: str | None) -> None:
        """Set the project; None takes that of ``PHOENIX_PROJECT_NAME``, else ``default``."""
        name = project or os.environ.get("PHOENIX_PROJECT_NAME", "") or "default"
        self.identity = f"phoenix {backend.address} {name}"
        self._path = f"/v1/projects/{quote(name, safe='')}"
        self._api = Api(
            backend, f"it has no project {name!r}, or is older than 13: name one with --project"
        )

    def pages(self, window: Window) -> Iterator[Page]:
        """Yield traces in the order in which they began."""
        query: dict[str, object] = {
            "sort": "start_time",
            "order": "asc",
            "limit": PAGE,
            "start_time": iso(window.since),
            "end_time": iso(window.until),
        }
        for traces in self._listed("traces", query):
            ids = [str(each.get("trace_id")) for each in traces]
            wanted = {"trace_id": ids, "limit": _MOST_SPANS}
            pages = self._listed("spans/otlpv1", wanted) if ids else ()
            yield [as_otlp([_with_metadata(span)]) for page in pages for span in page]

    def _listed(self, what: str, query: Mapping[str, object]) -> Iterator[Page]:
        return self._api.pages(
            lambda cursor: self._api.get(
                f"{self._path}/{what}", {**query, "cursor": cursor or None}
            ),
            "data",
            lambda page: part(page, "next_cursor"),
        )


_METADATA: Final = re.compile(r"((?:.+\.)?metadata)\.(.+)")


def _with_metadata(span: Mapping[str, object]) -> Mapping[str, object]:
    """A span with its metadata as JSON again, of which Phoenix has made an attribute a key.

    A key of a mapping within it is what Phoenix calls it: ``outer.inner``.
    """
    kept: list[Mapping[str, object]] = []
    parsed: defaultdict[str, dict[str, object]] = defaultdict(dict)
    for pair in items(span, "attributes"):
        found = _METADATA.fullmatch(str(pair.get("key")))
        if found is None:
            kept.append(pair)
        else:
            value = _fields(pair, "value").values()
            parsed[found[1]][found[2]] = next((each for each in value if each is not None), None)
    return {**span, "attributes": kept + _pairs(parsed)}


class MLflowSource:
    """An experiment of an MLflow tracking server."""

    def __init__(self, backend: Backend, experiment: str | None) -> None:
        """Set the experiment, by name or id; None takes that of MLflow's own variables."""
        name, id_ = (os.environ.get(f"MLFLOW_EXPERIMENT_{each}", "") for each in ("NAME", "ID"))
        self._experiment = experiment or name or id_ or "Default"
        self.identity = f"mlflow {backend.address} {self._experiment}"
        self._api = Api(
            backend, f"it has no experiment {self._experiment!r}: name one with --project"
        )

    def pages(self, window: Window) -> Iterator[Page]:
        """Yield traces in the order in which they began."""
        conditions = [
            f"timestamp_ms {sign} {int(moment.timestamp() * 1000)}"
            for sign, moment in ((">=", window.since), ("<", window.until))
            if moment is not None
        ]
        by, key = "get-by-name", "experiment_name"
        if self._experiment.isdecimal():
            by, key = "get", "experiment_id"
        told = self._api.get(f"/api/2.0/mlflow/experiments/{by}", {key: self._experiment})
        id_ = str(part(told, "experiment", "experiment_id"))
        question: dict[str, JsonValue] = {
            "locations": [
                {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": id_}}
            ],
            "filter": " AND ".join(conditions),
            "max_results": PAGE,
            "order_by": ["timestamp_ms ASC"],
        }

        def ask(token: str) -> JsonValue:
            asked = {**question, "page_token": token} if token else question
            return self._api.post("/api/3.0/mlflow/traces/search", asked)

        for traces in self._api.pages(ask, "traces", lambda page: part(page, "next_page_token")):
            ids = [str(each.get("trace_id")) for each in traces]
            if ids:
                found = self._api.get("/api/3.0/mlflow/traces/batchGet", {"trace_ids": ids})
                yield [as_otlp(items(trace, "spans")) for trace in items(found, "traces")]


class LangfuseSource:
    """The project of Langfuse that the keys are of."""

    def __init__(self, backend: Backend, _: str | None) -> None:
        self.identity = f"langfuse {backend.address}"
        self._api = Api(backend, "there is no API of Langfuse: check --url or LANGFUSE_HOST")

    def pages(self, window: Window) -> Iterator[Page]:
        """Yield traces in the order in which they began."""
        query: dict[str, object] = {
            "limit": PAGE,
            "orderBy": "timestamp.asc",
            "fromTimestamp": iso(window.since),
            "toTimestamp": iso(window.until),
        }

        def ask(number: str) -> JsonValue:
            return self._api.get("/api/public/traces", {**query, "page": number or 1})

        def next_of(page: JsonValue) -> object:
            number, last = (part(page, "meta", name) for name in ("page", "totalPages"))
            if not isinstance(number, int) or not isinstance(last, int):
                return None
            return number + 1 if number < last else None

        for traces in self._api.pages(ask, "data", next_of):
            ids = [quote(str(each.get("id")), safe="") for each in traces]
            found = self._api.get_each([f"/api/public/traces/{id_}" for id_ in ids])
            yield [_of_observation(e) for trace in found for e in items(trace, "observations")]


_KINDS: Final = {"GENERATION": semconv.KIND_LLM} | {
    kind: kind
    for kind in (
        semconv.KIND_AGENT,
        semconv.KIND_CHAIN,
        semconv.KIND_EMBEDDING,
        semconv.KIND_EVALUATOR,
        semconv.KIND_GUARDRAIL,
        semconv.KIND_RETRIEVER,
        semconv.KIND_TOOL,
    )
}
"""Type of an observation to the kind of its span."""


def _of_observation(found: Mapping[str, object]) -> Mapping[str, object]:
    """An observation of Langfuse as ``resourceSpans`` with one span.

    Langfuse keeps the attributes of a span in its metadata, and takes input and output out of them.
    """
    told = {
        semconv.OPENINFERENCE_SPAN_KIND: _KINDS.get(str(found.get("type"))),
        semconv.INPUT_VALUE: found.get("input"),
        semconv.OUTPUT_VALUE: found.get("output"),
        semconv.LLM_MODEL_NAME: found.get("model"),
    }
    kept = _fields(found, "metadata", "attributes")
    attributes = {name: value for name, value in told.items() if value is not None} | kept
    span: dict[str, object] = {
        "traceId": found.get("traceId"),
        "spanId": found.get("id"),
        "parentSpanId": found.get("parentObservationId") or "",
        "name": found.get("name") or "",
        "startTimeUnixNano": _nanoseconds(found.get("startTime")),
        "endTimeUnixNano": _nanoseconds(found.get("endTime")),
        "attributes": _pairs(attributes),
    }
    if found.get("level") == "ERROR":
        span["status"] = {"code": 2, "message": str(found.get("statusMessage") or "")}
    scope = part(found, "metadata", "scope")
    return {
        "resource": {"attributes": _pairs(_fields(found, "metadata", "resourceAttributes"))},
        "scopeSpans": [{"scope": {"name": str(part(scope, "name") or "")}, "spans": [span]}],
    }


def _fields(value: object, *names: str) -> dict[str, object]:
    found = part(value, *names)
    return {str(name): each for name, each in found.items()} if is_mapping(found) else {}


def _pairs(attributes: Mapping[str, object]) -> list[Mapping[str, object]]:
    return [{"key": str(key), "value": _value(value)} for key, value in attributes.items()]


def _value(value: object) -> Mapping[str, object]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": value}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value if isinstance(value, str) else json.dumps(value)}


def _nanoseconds(moment: object) -> str:
    try:
        # Whole microseconds, which a float of seconds would round.
        since = datetime.fromisoformat(str(moment)) - datetime(1970, 1, 1, tzinfo=UTC)
    except (TypeError, ValueError):  # no time, or one without a zone
        return "0"
    return str(since // timedelta(microseconds=1) * 1000)


# --- backends that find traces by their time alone ------------------------------------------------


class _Searched(ABC):
    """Asks for slices of time, and for halves of those that have more traces than an answer."""

    name: str

    def pages(self, window: Window) -> Iterator[Page]:
        """Yield traces about in the order in which they began."""
        if window.since is None:
            raise ConfigError(
                f"{self.name} finds traces by their time: say from when, such as --since 7d"
            )
        seen: set[str] = set()
        start, end = window.since, window.until or datetime.now(UTC)
        while start < end:
            for page in self._within(start, min(start + SLICE, end)):
                new = {trace: parts for trace, parts in page.items() if trace not in seen}
                seen |= new.keys()
                yield [each for parts in new.values() for each in parts]
            start += SLICE

    def _within(self, start: datetime, end: datetime) -> Iterator[Mapping[str, Page]]:
        is_finest = end - start <= FINEST
        found = self._search(start, end, MOST if is_finest else PAGE)
        if len(found) < PAGE or is_finest:
            yield self._read(found)
            return
        middle = start + (end - start) / 2
        yield from self._within(start, middle)
        yield from self._within(middle, end)

    @abstractmethod
    def _search(self, start: datetime, end: datetime, limit: int) -> Mapping[str, Page]:
        """Find traces by id, with their spans if these come along."""

    def _read(self, found: Mapping[str, Page]) -> Mapping[str, Page]:
        """Read the spans of traces that were found."""
        return found


class TempoSource(_Searched):
    """A Tempo."""

    name = "Tempo"

    def __init__(self, backend: Backend, _: str | None) -> None:
        self.identity = f"tempo {backend.address}"
        self._api = Api(backend, "there is no API of Tempo: check --url, and --header for a tenant")

    def _search(self, start: datetime, end: datetime, limit: int) -> Mapping[str, Page]:
        first, last = int(start.timestamp()), -int(-end.timestamp() // 1)
        query = {"q": "{}", "start": first, "end": max(last, first + 1), "limit": limit}
        found = items(self._api.get("/api/search", query), "traces")
        found.sort(key=lambda each: int(str(each.get("startTimeUnixNano") or 0)))
        return {str(each.get("traceID")).zfill(32): () for each in found}

    def _read(self, found: Mapping[str, Page]) -> Mapping[str, Page]:
        answers = self._api.get_each([f"/api/v2/traces/{trace}" for trace in found])
        return {
            trace: items(answer, "trace", "resourceSpans") or items(answer, "trace", "batches")
            for trace, answer in zip(found, answers, strict=True)
        }


class JaegerSource(_Searched):
    """A Jaeger, by version 3 of its API."""

    name = "Jaeger"

    def __init__(self, backend: Backend, service: str | None) -> None:
        """Set the service; None reads those of all."""
        self.identity = f"jaeger {backend.address}"
        self._service = service
        self._services: Sequence[str] | None = None
        self._api = Api(backend, "there is no API of Jaeger of version 3: check --url")

    def _search(self, start: datetime, end: datetime, limit: int) -> Mapping[str, Page]:
        traces: defaultdict[str, list[Mapping[str, object]]] = defaultdict(list)
        for service in self._known_services():
            query = {
                "query.service_name": service,
                "query.start_time_min": iso(start),
                "query.start_time_max": iso(end),
                "query.num_traces": limit,
            }
            # It answers 404 where there is no trace.
            [answer] = self._api.get_each(["/api/v3/traces"], query)
            of_service: defaultdict[str, list[Mapping[str, object]]] = defaultdict(list)
            told = items(answer, "result", "resourceSpans") or items(answer, "resourceSpans")
            for group in told:
                for trace, found in by_trace(group).items():
                    of_service[trace].append(found)
            # A trace of several services comes with all of its spans for each of them.
            traces.update({t: parts for t, parts in of_service.items() if t not in traces})
            if len(of_service) >= limit:
                break
        return traces

    def _known_services(self) -> Sequence[str]:
        if self._services is None:
            found = part(self._api.get("/api/v3/services"), "services")
            known = [str(each) for each in found] if is_list(found) else []
            if self._service is not None and self._service not in known:
                raise ConfigError(
                    f"Jaeger has no service {self._service!r}: name another one with --project"
                )
            self._services = known if self._service is None else [self._service]
        return self._services
