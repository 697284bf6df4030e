"""What backends make of the spans that they are sent: the rule of each, as its source has it.

A rule takes the requests in the order of their arrival, and returns the spans that its backend
shows. The requests are real ones, from ``otlp_receiver``; the backends are not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from otlp_receiver import Request

__all__ = [
    "RULES",
    "TEMPO_ATTRIBUTE_BYTES",
    "Rule",
    "Sampled",
    "Shown",
    "Value",
    "evaluations_of",
    "tail_sampling",
]

Value = str | bool | int | float | list[str]
"""Of an attribute; we write no other types."""

TEMPO_ATTRIBUTE_BYTES: Final = 2048
"""``max_attribute_bytes`` of Tempo (``modules/distributor/config.go``)."""


@dataclass(frozen=True)
class Shown:
    """A span as a backend shows it."""

    trace_id: str
    span_id: str
    parent: str
    """Span id of its parent; empty for a root."""

    name: str
    kind: int
    start: int
    end: int
    attributes: Mapping[str, Value]
    links: tuple[str, ...]
    """Span ids that it points to."""

    service: str
    """Name of the service that it came from."""

    content: bytes
    """Span, scope and resource as bytes, the same for the same content."""


Rule = Callable[[Sequence[Request]], list[Shown]]


def keep_both(requests: Sequence[Request]) -> list[Shown]:
    """Jaeger: every copy is stored, and a query leaves out those that are the same byte for byte.

    ``jaegerquery/internal/adjuster/hash.go`` hashes span, attributes of the scope and of the
    resource, after ``sort.go`` has put attributes into their order.
    """
    return list({span.content: span for span in _arrived(requests)}.values())


def first_wins(requests: Sequence[Request]) -> list[Shown]:
    """Phoenix: ``INSERT ... ON CONFLICT (span_id) DO NOTHING``, in all traces together."""
    kept: dict[str, Shown] = {}
    for span in _arrived(requests):
        kept.setdefault(span.span_id, span)
    return list(kept.values())


def first_wins_cut(requests: Sequence[Request]) -> list[Shown]:
    """Tempo: long attributes are cut, then the first span of a kind and an id wins.

    ``processAttributes`` of ``modules/distributor/distributor.go`` cuts bytes, not characters, and
    strings alone. ``pkg/model/trace/combine.go`` tells spans apart by kind and span id.
    """
    kept: dict[tuple[str, int, str], Shown] = {}
    for span in _arrived(requests):
        kept.setdefault((span.trace_id, span.kind, span.span_id), span)
    return [replace(s, attributes=_each(s.attributes, _cut)) for s in kept.values()]


def last_wins(requests: Sequence[Request]) -> list[Shown]:
    """MLflow and Langfuse: a span that comes again replaces the one that is there."""
    return list({(s.trace_id, s.span_id): s for s in _arrived(requests)}.values())


def merge_parts(requests: Sequence[Request]) -> list[Shown]:
    """Zipkin: parts with one id of one service are one span, and tags are strings.

    ``zipkin2/internal/Trace.java`` merges parts; name, parent and times come from the first.
    """
    merged: dict[tuple[str, str, str], Shown] = {}
    for part in _arrived(requests):
        key = (part.trace_id, part.span_id, part.service)
        first = merged.get(key, part)
        merged[key] = replace(first, attributes={**first.attributes, **part.attributes})
    return [replace(s, attributes=_each(s.attributes, _tag)) for s in merged.values()]


RULES: Final[Mapping[str, Rule]] = {
    "jaeger": keep_both,
    "phoenix": first_wins,
    "tempo": first_wins_cut,
    "mlflow": last_wins,
    "zipkin": merge_parts,
}
"""By the backend that each stands for."""


# --- what stands between application and backend, and beside the spans ---


@dataclass(frozen=True)
class Sampled:
    """What a tail sampler made of one trace."""

    is_kept: bool
    seen: list[Shown]
    """The spans that the decision was made on."""

    later: list[Shown]
    """Those that came afterwards; they follow the decision."""

    @property
    def shown(self) -> list[Shown]:
        """The spans that reach the backend."""
        return [*self.seen, *self.later] if self.is_kept else []


def tail_sampling(
    requests: Sequence[Request], decision_wait: float, policy: Callable[[Shown], bool]
) -> dict[str, Sampled]:
    """The Collector: a trace is decided ``decision_wait`` seconds after its first span has come.

    By the README of ``processor/tailsamplingprocessor``: it is kept where the policy holds for one
    of the spans that have come by then, and later spans follow the decision.
    """
    first: dict[str, float] = {}
    seen: dict[str, list[Shown]] = {}
    later: dict[str, list[Shown]] = {}
    for request in requests:
        for span in _spans_of(request.message):
            began = first.setdefault(span.trace_id, request.at)
            place = seen if request.at - began < decision_wait else later
            place.setdefault(span.trace_id, []).append(span)
    return {
        trace_id: Sampled(any(map(policy, spans)), spans, later.get(trace_id, []))
        for trace_id, spans in seen.items()
    }


def evaluations_of(logs: Sequence[LogRecord]) -> dict[tuple[str, str], dict[str, Value]]:
    """Logfire: an evaluation is a log event with a target, on the span that it is about.

    Returns:
        Trace and span id, with name and value of each evaluation.
    """
    found: dict[tuple[str, str], dict[str, Value]] = {}
    for record in logs:
        values = _values(record.attributes)
        if record.event_name == "gen_ai.evaluation.result" and "gen_ai.evaluation.target" in values:
            scores = found.setdefault((record.trace_id.hex(), record.span_id.hex()), {})
            scores[str(values["gen_ai.evaluation.name"])] = values["gen_ai.evaluation.score.value"]
    return found


# --- spans as they came ---


def _arrived(requests: Sequence[Request]) -> Iterator[Shown]:
    for request in requests:
        yield from _spans_of(request.message)


def _spans_of(message: ExportTraceServiceRequest) -> Iterator[Shown]:
    for resource in message.resource_spans:
        about = _values(resource.resource.attributes)
        for scope in resource.scope_spans:
            where = f"{sorted(about.items())} {scope.scope.name} {scope.scope.version}".encode()
            for span in scope.spans:
                yield _shown(span, str(about.get("service.name", "")), where)


def _shown(span: Span, service: str, where: bytes) -> Shown:
    ordered = Span.FromString(span.SerializeToString())
    ordered.attributes.sort(key=lambda pair: pair.key)
    return Shown(
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        kind=span.kind,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes=_values(span.attributes),
        links=tuple(link.span_id.hex() for link in span.links),
        service=service,
        content=ordered.SerializeToString(deterministic=True) + where,
    )


def _values(pairs: Sequence[KeyValue]) -> dict[str, Value]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> Value:
    match value.WhichOneof("value"):
        case "bool_value":
            return value.bool_value
        case "int_value":
            return value.int_value
        case "double_value":
            return value.double_value
        case "array_value":
            return [str(_value(item)) for item in value.array_value.values]
        case _:
            return value.string_value


def _each(attributes: Mapping[str, Value], change: Callable[[Value], Value]) -> dict[str, Value]:
    return {name: change(value) for name, value in attributes.items()}


def _cut(value: Value) -> Value:
    if not isinstance(value, str):
        return value
    return value.encode("utf-8")[:TEMPO_ATTRIBUTE_BYTES].decode("utf-8", "replace")


def _tag(value: Value) -> Value:
    """As the Collector's exporter writes a value, by ``AsString`` of its ``pcommon.Value``."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)
