"""Reads spans from files of OTLP JSON lines, as exporters and collectors write them.

The file exporter of this package and the file exporter of the OpenTelemetry Collector write one
``ExportTraceServiceRequest`` a line. Only the fields that a report needs are read; a field that is
unknown here is skipped, as OTLP demands of receivers. A part that is broken is skipped and counted,
and the parts beside it are read: a process that was killed leaves half a line.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.alias_generators import to_camel

from claimspan.errors import ConfigError
from claimspan.files.jsonl import MAX_BYTES, bounded_lines
from claimspan_tracing import semconv

__all__ = [
    "AttributeValue",
    "Attributes",
    "Skipped",
    "SpanKey",
    "TraceSpan",
    "number_on",
    "read_spans",
    "scores_on",
]

AttributeValue = str | int | float | bool | tuple[str, ...] | None
"""A value of an attribute; a list of any type is a tuple of texts."""

Attributes = Mapping[str, AttributeValue]
SpanKey = tuple[str, str]
"""Trace id and span id in hex."""


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """One span of a trace file."""

    key: SpanKey
    parent: SpanKey
    """Key of the parent; its span id is empty if there is none."""

    name: str
    start: int
    """Nanoseconds since the epoch, as ``end``."""

    end: int
    links: tuple[SpanKey, ...]
    """Keys of the linked spans."""

    attributes: Attributes


def number_on(attributes: Attributes, name: str) -> float | None:
    """Return a finite number; None for anything else, since a file may hold anything."""
    value = attributes.get(name)
    # A bool is an int for Python, and neither a score nor a count.
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def scores_on(attributes: Attributes) -> dict[str, float]:
    """Return the scores of a span, by metric."""
    names = (name for name in attributes if name.startswith(semconv.SCORE_PREFIX))
    scores = {
        name.removeprefix(semconv.SCORE_PREFIX): number_on(attributes, name) for name in names
    }
    return {metric: score for metric, score in scores.items() if score is not None}


class Skipped:
    """Counts what could not be read of a damaged file, or stops at the first of it."""

    KINDS: Final[Mapping[str, str]] = {
        "line_too_long": "lines longer than 64 MiB",
        "line_not_json": "lines that are not JSON",
        "line_not_otlp": "lines that are not OTLP",
        "line_not_result": "lines that are no results",
        "group_malformed": "groups of spans that are malformed",
        "span_malformed": "spans that are malformed",
        "link_malformed": "links that are malformed",
        "attribute_malformed": "attributes that are malformed",
        "chunk_malformed": "chunks that are malformed",
    }
    """Kind to its name in a message."""

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        """Count nothing yet; if it is strict, raise at the first part that cannot be read."""
        self._path = path
        self._strict = strict
        self._counts: Counter[str] = Counter()
        self.line = 0
        """Number of the line that is being read; 0 after the last one."""

    @property
    def counts(self) -> dict[str, int]:
        """Kind to number, without those that are 0; ``{"line_not_json": 1}``."""
        return {kind: self._counts[kind] for kind in self.KINDS if self._counts[kind]}

    def add(self, kind: str, problem: str = "") -> None:
        """Count one part that cannot be read, by its kind, and what is wrong with it.

        Raises:
            ConfigError: Reading is strict; names the line.
        """
        what = f"({self.KINDS[kind]}{': ' if problem else ''}{problem})"
        self._add(kind, f"is not OTLP JSON {what}")

    def add_line(self, number: int) -> None:
        """Count a line of a file of results, from 1, that holds no result.

        Raises:
            ConfigError: Reading is strict; names the line.
        """
        self.line = number
        self._add("line_not_result", "is no result")

    def _add(self, kind: str, fault: str) -> None:
        self._counts[kind] += 1
        if self._strict:
            place = f"{self._path}, line {self.line}," if self.line else f"{self._path}"
            raise ConfigError(
                f"{place} {fault}: remove or repair that line, or read the file without "
                "strictness; the last line is often cut where the writing process was killed"
            )

    def __str__(self) -> str:
        """Return the counts in words: ``2 lines that are not JSON, 1 spans that are malformed``."""
        return ", ".join(f"{number} {self.KINDS[kind]}" for kind, number in self.counts.items())


def read_spans(
    path: Path, skipped: Skipped, *, max_line_bytes: int = MAX_BYTES
) -> Iterator[TraceSpan]:
    """Yield every span of a file, in the order of its lines. One line is in memory at a time.

    A line of more than ``max_line_bytes`` is skipped without being read.

    Raises:
        ConfigError: The file cannot be read, or a part of it if reading is strict.
    """
    try:
        with path.open("rb") as file:
            for skipped.line, line in bounded_lines(file, max_line_bytes):
                yield from _spans_of(line, skipped)
        skipped.line = 0
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"cannot read {path}: {reason}; give the path of a trace file") from None


def _spans_of(line: bytes | None, skipped: Skipped) -> Iterator[TraceSpan]:
    if line is None:
        skipped.add("line_too_long")
        return
    try:
        # The parser refuses nesting beyond 200 levels and numbers beyond 4,300 digits.
        request = _Request.model_validate_json(line, context=skipped)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]["type"]
        # Neither the input nor the parser's message is passed on: both may quote a chunk.
        skipped.add("line_not_json" if problem == "json_invalid" else "line_not_otlp", problem)
        return
    for resource in filter(None, request.resource_spans):
        for scope in filter(None, resource.scope_spans):
            for span in filter(None, scope.spans):
                yield TraceSpan(
                    key=(span.trace_id, span.span_id),
                    parent=(span.trace_id, span.parent_span_id),
                    name=span.name,
                    start=span.start_time_unix_nano,
                    end=span.end_time_unix_nano,
                    links=tuple((link.trace_id, link.span_id) for link in span.links if link),
                    attributes={each.key: each.value.plain for each in span.attributes if each},
                )


# --- the messages of opentelemetry-proto, as far as they are read -------------------------------


def _part(kind: str) -> WrapValidator:
    """Validates a part that may be broken; one that is malformed is counted, and becomes None."""

    def validate(
        value: object, handler: ValidatorFunctionWrapHandler, info: ValidationInfo[Skipped]
    ) -> object:
        try:
            validated: object = handler(value)
        except ValidationError as error:
            info.context.add(kind, error.errors(include_input=False)[0]["type"])
            return None
        return validated

    return WrapValidator(validate)


_INT64: Final = 2**63
_Int64 = Annotated[int, Field(ge=-_INT64, lt=_INT64)]
# Fixed64 in OTLP; the latest is in the year 2554, which a date can hold.
_Nanoseconds = Annotated[int, Field(ge=0, lt=2 * _INT64)]


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel)


class _ArrayValue(_Message):
    values: tuple[_AnyValue, ...] = ()


class _AnyValue(_Message):
    string_value: str | None = None
    # The JSON encoding of protobuf writes int64 as a string; pydantic takes a number as well.
    int_value: _Int64 | None = None
    double_value: float | None = None
    bool_value: bool | None = None
    array_value: _ArrayValue | None = None

    @property
    def plain(self) -> AttributeValue:
        if self.array_value is not None:
            return tuple(str(value.plain) for value in self.array_value.values)
        scalars = (self.string_value, self.int_value, self.double_value, self.bool_value)
        return next((value for value in scalars if value is not None), None)


class _KeyValue(_Message):
    key: str
    value: _AnyValue = _AnyValue()


class _Link(_Message):
    trace_id: str
    span_id: str


class _Span(_Link):
    parent_span_id: str = ""
    name: str = ""
    start_time_unix_nano: _Nanoseconds = 0
    end_time_unix_nano: _Nanoseconds = 0
    attributes: tuple[Annotated[_KeyValue | None, _part("attribute_malformed")], ...] = ()
    links: tuple[Annotated[_Link | None, _part("link_malformed")], ...] = ()


class _ScopeSpans(_Message):
    spans: tuple[Annotated[_Span | None, _part("span_malformed")], ...] = ()


class _ResourceSpans(_Message):
    scope_spans: tuple[Annotated[_ScopeSpans | None, _part("group_malformed")], ...] = ()


class _Request(_Message):
    resource_spans: tuple[Annotated[_ResourceSpans | None, _part("group_malformed")], ...] = ()
