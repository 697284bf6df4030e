"""Reads evaluated records back from OTLP JSON lines, as exporters and collectors write them.

A record is a *root* span (it has an evaluation status) with what belongs to it: retriever spans
with the chunks, and one evaluation span with the claims. An evaluation span lies below its root or
has exactly one link to it. Where it came too late for the root it carries the scores as well.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    TypeAdapter,
    ValidationError,
)
from pydantic.alias_generators import to_camel

from claimspan.errors import ConfigError
from claimspan.records import Chunk
from claimspan.report import ReportClaim, ReportEntry
from claimspan.verdicts import Label
from claimspan_tracing import semconv

__all__ = ["read_trace_file"]

_Value = str | int | float | bool | tuple[str, ...] | None
_Attributes = Mapping[str, _Value]
_Key = tuple[str, str]
"""Trace id and span id."""


def read_trace_file(path: str | Path) -> list[ReportEntry]:
    """Read every record of a file of OTLP JSON lines, in the order in which they began.

    Args:
        path: Each line is one ``{"resourceSpans": [...]}``; blank lines are skipped.

    Raises:
        ConfigError: The file cannot be read, a line is broken, or no span is a record's root.
    """
    spans = {span.key: span for span in _spans(Path(path))}
    roots = [s for s in spans.values() if semconv.EVALUATION_STATUS in s.attributes]
    if not roots:
        raise ConfigError(
            f"{path} has {len(spans)} spans, none of them evaluated by claimspan: give a file of "
            "OTLP JSON lines that was written while a claimspan monitor was running"
        )
    families = _families(spans)
    return [_entry(root, families[root.key]) for root in sorted(roots, key=lambda s: s.start)]


# --- OTLP JSON ---


class _Otlp(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, alias_generator=to_camel)


class _OtlpArray(_Otlp):
    values: tuple[_OtlpValue, ...] = ()


class _OtlpValue(_Otlp):
    # int64 is a string in OTLP JSON, and a number in files that are almost that.
    string_value: str | None = None
    int_value: int | None = None
    double_value: float | None = None
    bool_value: bool | None = None
    array_value: _OtlpArray | None = None

    @property
    def plain(self) -> _Value:
        if self.array_value is not None:
            return tuple(str(value.plain) for value in self.array_value.values)
        scalars = (self.string_value, self.int_value, self.double_value, self.bool_value)
        return next((value for value in scalars if value is not None), None)


class _OtlpAttribute(_Otlp):
    key: str
    value: _OtlpValue = _OtlpValue()


class _OtlpLink(_Otlp):
    trace_id: str
    span_id: str


class _OtlpSpan(_Otlp):
    trace_id: str
    span_id: str
    parent_span_id: str = ""
    name: str = ""
    start_time_unix_nano: int = 0
    end_time_unix_nano: int = 0
    attributes: tuple[_OtlpAttribute, ...] = ()
    links: tuple[_OtlpLink, ...] = ()


class _OtlpScopeSpans(_Otlp):
    spans: tuple[_OtlpSpan, ...] = ()


class _OtlpResourceSpans(_Otlp):
    scope_spans: tuple[_OtlpScopeSpans, ...] = ()


class _OtlpLine(_Otlp):
    resource_spans: tuple[_OtlpResourceSpans, ...] = ()


# --- spans, and which root they belong to ---


@dataclass(frozen=True, slots=True)
class _Span:
    key: _Key
    parent: _Key
    name: str
    start: int
    end: int
    links: tuple[_Key, ...]
    attributes: _Attributes

    @property
    def is_evaluation(self) -> bool:
        return self.name == semconv.SPAN_EVALUATE

    @property
    def is_retriever(self) -> bool:
        return self.attributes.get(semconv.OPENINFERENCE_SPAN_KIND) == semconv.KIND_RETRIEVER

    @property
    def is_generator(self) -> bool:
        """It has documents only where it read others than the retrievers found."""
        return self.attributes.get(semconv.OPENINFERENCE_SPAN_KIND) == semconv.KIND_LLM


def _spans(path: Path) -> Iterator[_Span]:
    for number, line in _lines(path):
        try:
            parsed = _OtlpLine.model_validate_json(line)
        except ValidationError as error:
            # The input stays out of the message: it may quote a chunk.
            problem = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(map(str, problem["loc"]))
            raise ConfigError(
                f"{path}, line {number}, is not OTLP JSON ({place}{': ' if place else ''}"
                f"{problem['msg']}): remove or repair that line; the last one of a file is often "
                "cut where the writing process was killed"
            ) from None
        for resource in parsed.resource_spans:
            for scope in resource.scope_spans:
                yield from map(_span, scope.spans)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield number, line
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ConfigError(f"cannot read {path}: {reason}; give the path of a trace file") from None


def _span(span: _OtlpSpan) -> _Span:
    return _Span(
        key=(span.trace_id, span.span_id),
        parent=(span.trace_id, span.parent_span_id),
        name=span.name,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        links=tuple((link.trace_id, link.span_id) for link in span.links),
        attributes={attribute.key: attribute.value.plain for attribute in span.attributes},
    )


def _families(spans: Mapping[_Key, _Span]) -> dict[_Key, list[_Span]]:
    """Each root's retriever and evaluation spans, oldest first."""
    families: dict[_Key, list[_Span]] = {
        key: [] for key, span in spans.items() if semconv.EVALUATION_STATUS in span.attributes
    }
    for span in sorted(spans.values(), key=lambda s: s.start):
        if span.is_evaluation or span.is_retriever:
            root = _root_of(span, spans, families.keys())
            if root is not None:
                families[root].append(span)
    return families


def _root_of(span: _Span, spans: Mapping[_Key, _Span], roots: Iterable[_Key]) -> _Key | None:
    if span.is_evaluation and len(span.links) == 1 and span.links[0] in roots:
        return span.links[0]
    seen: set[_Key] = set()
    key = span.parent
    while key not in roots:
        if key in seen or key not in spans:
            return None
        seen.add(key)
        key = spans[key].parent
    return key


# --- one record ---

_Text = Annotated[str, BeforeValidator(str)]


def _decode_ids(value: object) -> object:
    # Backends cut long attributes, and half a JSON array has no reading.
    try:
        return TypeAdapter(tuple[_Text, ...]).validate_json(str(value))
    except ValidationError:
        return ()


def _decode_metadata(value: object) -> object:
    try:
        return TypeAdapter(dict[str, JsonValue]).validate_json(str(value))
    except ValidationError:
        return {}


def _decode_label(value: object) -> Label | None:
    try:
        return Label.parse(str(value))
    except ValueError:
        return None


_Ids = Annotated[tuple[str, ...], BeforeValidator(_decode_ids)]
_Label = Annotated[Label | None, BeforeValidator(_decode_label)]


class _Document(BaseModel):
    id: _Text | None = None
    content: _Text = ""
    score: float | None = None
    metadata: Annotated[dict[str, JsonValue], BeforeValidator(_decode_metadata)] = Field(
        default_factory=dict[str, JsonValue]
    )

    def chunk(self) -> Chunk:
        chunk_id = Chunk.content_id(self.content) if self.id is None else self.id
        return Chunk(id=chunk_id, text=self.content, score=self.score, metadata=self.metadata)


class _Claim(BaseModel):
    text: _Text = ""
    sentence: _Text | None = None
    label: _Label = None
    ground_truth_label: _Label = None
    supported_by: _Ids = ()
    contradicted_by: _Ids = ()


def _entry(root: _Span, family: Sequence[_Span]) -> ReportEntry:
    evaluation = next((span for span in reversed(family) if span.is_evaluation), None)
    found: _Attributes = evaluation.attributes if evaluation else {}
    facts = {**found, **root.attributes}
    scores = {**_scores(root.attributes), **_scores(found)}
    return ReportEntry(
        trace_id=root.key[0],
        query=_text(root.attributes, semconv.INPUT_VALUE),
        response=_text(root.attributes, semconv.OUTPUT_VALUE),
        ground_truth=_text(facts, semconv.GROUND_TRUTH) or None,
        chunks=_chunks([s for s in family if s.is_generator])
        or _chunks([s for s in family if s.is_retriever]),
        chunks_left_out=_left_out(facts, (semconv.CHUNKS_COUNT,), semconv.CHUNKS_RECORDED),
        response_claims=_claims(found, semconv.response_claim),
        ground_truth_claims=_claims(found, semconv.ground_truth_claim),
        claims_left_out=_left_out(facts, _CLAIM_COUNTS, semconv.CLAIMS_RECORDED),
        scores=scores,
        undefined=_undefined(facts, scores),
        status=_text(root.attributes, semconv.EVALUATION_STATUS),
        reason=_text(facts, semconv.EVALUATION_REASON) or None,
        late=bool(scores) and not _scores(root.attributes),
        judge=_text(facts, semconv.JUDGE_NAME),
        judge_calls=int(_number(facts, semconv.JUDGE_CALLS) or 0),
        cost_usd=_number(facts, semconv.JUDGE_COST),
        started=datetime.fromtimestamp(root.start / 1e9, UTC),
        seconds=max(root.end - root.start, 0) / 1e9,
    )


_CLAIM_COUNTS: Final = (semconv.CLAIMS_RESPONSE, semconv.CLAIMS_GROUND_TRUTH)


def _left_out(attributes: _Attributes, counts: Sequence[str], recorded: str) -> int:
    kept = _number(attributes, recorded)
    if kept is None:
        return 0
    return max(int(sum(_number(attributes, name) or 0 for name in counts) - kept), 0)


def _text(attributes: _Attributes, name: str) -> str:
    value = attributes.get(name)
    return "" if value is None else str(value)


def _number(attributes: _Attributes, name: str) -> float | None:
    value = attributes.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _scores(attributes: _Attributes) -> dict[str, float]:
    named = (name for name in attributes if name.startswith(semconv.SCORE_PREFIX))
    numbers = ((name, _number(attributes, name)) for name in named)
    return {
        n.removeprefix(semconv.SCORE_PREFIX): value for n, value in numbers if value is not None
    }


def _undefined(attributes: _Attributes, scores: Mapping[str, float]) -> dict[str, str]:
    listed = attributes.get(semconv.EVALUATION_UNDEFINED)
    pairs = (line.partition(": ") for line in (listed if isinstance(listed, tuple) else ()))
    return {metric: reason for metric, _, reason in pairs if metric not in scores}


def _chunks(readers: Iterable[_Span]) -> tuple[Chunk, ...]:
    chunks: dict[str, Chunk] = {}
    for span in readers:
        for fields in _rows(span.attributes, semconv.document):
            chunk = _Document.model_validate(fields).chunk()
            chunks.setdefault(chunk.id, chunk)
    return tuple(chunks.values())


def _claims(attributes: _Attributes, name: Callable[[int, str], str]) -> tuple[ReportClaim, ...]:
    claims = (_Claim.model_validate(fields) for fields in _rows(attributes, name))
    return tuple(ReportClaim(**dict(claim)) for claim in claims if claim.text)


def _rows(attributes: _Attributes, name: Callable[[int, str], str]) -> list[dict[str, _Value]]:
    """Undo the flattening of a list: one mapping of fields for each index, in order."""
    prefix, rest = name(0, "").split("0")
    pattern = re.compile(rf"{re.escape(prefix)}(\d+){re.escape(rest)}(\w+)")
    rows: dict[int, dict[str, _Value]] = {}
    for key, value in attributes.items():
        if found := pattern.fullmatch(key):
            rows.setdefault(int(found[1]), {})[found[2]] = value
    return [rows[index] for index in sorted(rows)]
