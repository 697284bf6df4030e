"""Reads evaluated records back from a trace file, as entries of a report.

A record is a *root* span, which has an evaluation status, together with the spans that belong to
it: retriever spans with the chunks that were found, generator spans with the chunks that were read
if these are others, and evaluation spans with the claims. An evaluation span lies below its root
or has exactly one link to it. If the scores came too late for the root, it carries them as well.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    Json,
    JsonValue,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from claimspan.errors import NoRecordsError
from claimspan.evaluation.diagnosis import Part
from claimspan.evaluation.judgement import GOOD, LOW, NEUTRAL, UNKNOWN, Assessment, Judgement
from claimspan.metrics import METRICS
from claimspan.metrics.catalogue import in_order
from claimspan.records import Chunk
from claimspan.report import ReportClaim, ReportEntry
from claimspan.text.abstention import abstains
from claimspan.verdicts import Label
from claimspan_tracing import semconv
from claimspan_tracing.trace_file.spans import (
    Attributes,
    AttributeValue,
    Skipped,
    SpanKey,
    TraceSpan,
    number_on,
    read_spans,
    scores_on,
)

__all__ = ["read_trace_file"]

_logger: Final = logging.getLogger("claimspan")


def read_trace_file(path: str | Path, *, skipped: Skipped | None = None) -> list[ReportEntry]:
    """Read every record of a file of OTLP JSON lines, in the order in which they began.

    Broken parts are counted in ``skipped``, without which one warning has the counts; what is
    beside it is read. Memory holds one line at a time, beside the records themselves.

    Raises:
        ConfigError: The file cannot be read; or a part of it if ``skipped`` is strict.
        NoRecordsError: No span of the file is a record's root.
    """
    path = Path(path)
    counted = skipped or Skipped(path)
    spans: dict[SpanKey, TraceSpan] = {}
    for span in read_spans(path, counted):
        is_needed = semconv.EVALUATION_STATUS in span.attributes or _has_evidence(span)
        # Of other spans only who their parent is.
        spans[span.key] = span if is_needed else replace(span, name="", links=(), attributes={})
    families = _families(spans)
    if skipped is None and counted.counts:
        _logger.warning("%s is damaged; skipped: %s", path, counted)
    if not families:
        damage = f" ({counted} were skipped)" if counted.counts else ""
        raise NoRecordsError(
            f"{path} has {len(spans)} spans, none of them evaluated by claimspan{damage}: give a "
            "file of OTLP JSON lines that was written while a claimspan monitor was running; "
            "records that are not evaluated yet are for `claimspan evaluate`"
        )
    # Exporters write spans as they end, and late ones after others that began later.
    roots = sorted((spans[key] for key in families), key=lambda span: span.start)
    return [_entry(root, families[root.key], counted) for root in roots]


# --- which spans belong to which root -----------------------------------------------------------


def _families(spans: Mapping[SpanKey, TraceSpan]) -> dict[SpanKey, list[TraceSpan]]:
    """Map each root to the spans with its chunks and claims, oldest first."""
    families: dict[SpanKey, list[TraceSpan]] = {
        key: [] for key, span in spans.items() if semconv.EVALUATION_STATUS in span.attributes
    }
    for span in sorted(spans.values(), key=lambda span: span.start):
        if span.key not in families and _has_evidence(span):
            root = _root_of(span, spans, families.keys())
            if root is not None:
                families[root].append(span)
    return families


def _root_of(
    span: TraceSpan, spans: Mapping[SpanKey, TraceSpan], roots: Iterable[SpanKey]
) -> SpanKey | None:
    if _is_evaluation(span) and len(span.links) == 1 and span.links[0] in roots:
        return span.links[0]
    seen: set[SpanKey] = set()  # a broken exporter may write spans that are their own ancestors
    key = span.parent
    while key not in roots:
        if key in seen or key not in spans:
            return None
        seen.add(key)
        key = spans[key].parent
    return key


def _has_evidence(span: TraceSpan) -> bool:
    return _is_evaluation(span) or _kind(span) in (semconv.KIND_RETRIEVER, semconv.KIND_LLM)


def _is_evaluation(span: TraceSpan) -> bool:
    return span.name == semconv.SPAN_EVALUATE


def _kind(span: TraceSpan) -> AttributeValue:
    return span.attributes.get(semconv.OPENINFERENCE_SPAN_KIND)


# --- one record ---------------------------------------------------------------------------------


def _entry(root: TraceSpan, family: Sequence[TraceSpan], skipped: Skipped) -> ReportEntry:
    # The last one: a record that was evaluated again, by a worker, has another carrier.
    evaluation = next((span for span in reversed(family) if _is_evaluation(span)), None)
    claims: Attributes = evaluation.attributes if evaluation else {}
    # The root tells the state, but only the carrier has the scores if they came late.
    facts = {**claims, **root.attributes}
    scores_in_time = scores_on(root.attributes)
    scores = {**scores_in_time, **scores_on(claims)}
    # Generator spans have documents only where the model read others than were retrieved.
    chunks = _chunks(family, semconv.KIND_LLM, skipped)
    chunks = chunks or _chunks(family, semconv.KIND_RETRIEVER, skipped)
    # Evaluations have those that decide a claim, and that no other span had room for.
    chunks += _chunks(() if evaluation is None else [evaluation], semconv.KIND_EVALUATOR, skipped)
    response = _text(root.attributes, semconv.OUTPUT_VALUE)
    undecided = number_on(facts, semconv.CLAIMS_UNKNOWN)
    claims_shown = number_on(facts, semconv.CLAIMS_RECORDED)
    claim_counts = (semconv.CLAIMS_RESPONSE, semconv.CLAIMS_GROUND_TRUTH)
    ids = (semconv.SESSION_ID, semconv.USER_ID)
    return ReportEntry(
        trace_id=root.key[0],
        span_id=root.key[1],
        query=_text(root.attributes, semconv.INPUT_VALUE),
        response=response,
        ground_truth=_text(facts, semconv.GROUND_TRUTH) or None,
        chunks=chunks,
        # Those that were read and for which no span had room.
        chunks_left_out=_left_out(root.attributes, [semconv.CHUNKS_COUNT], len(chunks)),
        response_claims=_claims(claims, semconv.response_claim),
        ground_truth_claims=_claims(claims, semconv.ground_truth_claim),
        claims_left_out=0 if claims_shown is None else _left_out(facts, claim_counts, claims_shown),
        claims_undecided=None if undecided is None else int(undecided),
        scores=scores,
        undefined=_undefined(facts, scores),
        lower_is_better=_texts(facts, semconv.SCORES_LOWER_IS_BETTER),
        judgement=_judgement(facts, scores),
        # What the application attached, with session and user by OpenInference's names.
        metadata=_METADATA.validate_python(root.attributes.get(semconv.METADATA))
        | {name: _text(root.attributes, name) for name in ids if name in root.attributes},
        abstained=semconv.JUDGE_NAME in facts
        and abstains(response, [chunk.text for chunk in chunks]),
        status=_text(root.attributes, semconv.EVALUATION_STATUS),
        reason=_text(facts, semconv.EVALUATION_REASON) or None,
        late=bool(scores) and not scores_in_time,
        judge=_text(facts, semconv.JUDGE_NAME),
        judge_calls=int(number_on(facts, semconv.JUDGE_CALLS) or 0),
        cost_usd=number_on(facts, semconv.JUDGE_COST),
        started=datetime.fromtimestamp(root.start / 1e9, UTC),
        seconds=max(root.end - root.start, 0) / 1e9,
    )


def _left_out(attributes: Attributes, counts: Sequence[str], shown: float) -> int:
    left = sum(number_on(attributes, name) or 0 for name in counts) - shown
    # A sum of damaged numbers may be infinite, which no int is.
    return max(int(left), 0) if math.isfinite(left) else 0


def _text(attributes: Attributes, name: str) -> str:
    value = attributes.get(name)
    return "" if value is None else str(value)


def _texts(attributes: Attributes, name: str) -> tuple[str, ...]:
    value = attributes.get(name)
    return tuple(map(str, value)) if isinstance(value, tuple) else ()


def _undefined(attributes: Attributes, scores: Mapping[str, float]) -> dict[str, str]:
    """Map each metric without a score to its reason.

    An entry is ``metric, metric: reason``. A reason alone is that of all others that are missing.
    """
    reasons: dict[str, str] = {}
    for entry in _texts(attributes, semconv.EVALUATION_UNDEFINED):
        names, colon, why = entry.partition(": ")
        if why:
            reasons |= dict.fromkeys(names.split(", "), why)
        elif not colon:
            reasons = dict.fromkeys(METRICS, entry) | reasons
    return {metric: why for metric, why in reasons.items() if metric not in scores}


def _judgement(attributes: Attributes, scores: Mapping[str, float]) -> Judgement:
    """What the span says of its scores: no threshold is applied a second time."""
    labels = dict.fromkeys(_texts(attributes, semconv.SCORES_NEUTRAL), NEUTRAL)
    labels |= dict.fromkeys(_texts(attributes, semconv.SCORES_LOW), LOW)
    blamed = _text(attributes, semconv.EVALUATION_BLAME)
    label = _text(attributes, semconv.EVALUATION_LABEL)
    return Judgement(
        label=LOW if label == LOW else GOOD if label == GOOD else UNKNOWN,
        scores=tuple(
            Assessment(
                name=name,
                value=scores[name],
                label=labels.get(name, GOOD),
                explanation=_text(attributes, semconv.reason(name)),
            )
            for name in in_order(scores)
        ),
        part=Part(blamed) if blamed in {part.value for part in Part} else Part.UNKNOWN,
        summary=_text(attributes, semconv.EVALUATION_SUMMARY),
        findings=_texts(attributes, semconv.EVALUATION_FINDINGS),
        doubts=_texts(attributes, semconv.EVALUATION_DOUBTS),
    )


# --- chunks and claims, which are lists flattened into attributes -------------------------------

_Text = Annotated[str, BeforeValidator(str)]


def _or(default: Callable[[], object]) -> WrapValidator:
    """Takes a default for what cannot be read.

    Another program may have written anything, and backends cut long attributes, so that a JSON
    array ends in the middle.
    """

    def validate(value: object, handler: ValidatorFunctionWrapHandler) -> object:
        try:
            validated: object = handler(value)
        except ValidationError:
            return default()
        return validated

    return WrapValidator(validate)


_nothing: Final = type(None)

# Strict: a bool is an int for Python.
_Probability = Annotated[float | None, Field(strict=True, ge=0, le=1), _or(_nothing)]
_Metadata = Annotated[Json[dict[str, JsonValue]], _or(dict)]
_METADATA: Final = TypeAdapter[dict[str, JsonValue]](_Metadata)
_Ids = Annotated[Json[tuple[_Text, ...]], _or(tuple)]
_Label = Annotated[Label | None, BeforeValidator(lambda v: Label.parse(str(v))), _or(_nothing)]


class _Document(BaseModel):
    id: _Text | None = None
    content: _Text = ""
    score: float | None = None
    metadata: _Metadata = Field(default_factory=dict[str, JsonValue])


class _Claim(BaseModel):
    text: _Text = ""
    sentence: _Text | None = None
    label: _Label = None
    ground_truth_label: _Label = None
    confidence: _Probability = None
    entailed: _Probability = None
    context_label: _Label = None
    supported_by: _Ids = ()
    contradicted_by: _Ids = ()


def _chunks(family: Iterable[TraceSpan], kind: str, skipped: Skipped) -> tuple[Chunk, ...]:
    """Return the chunks on the spans of a kind, in order; the first of equal ones counts."""
    chunks: dict[tuple[str, str], Chunk] = {}
    for span in family:
        if _kind(span) != kind:
            continue
        for fields in _rows(span.attributes, semconv.document):
            try:
                found = _Document.model_validate(fields)
                id_ = Chunk.content_id(found.content) if found.id is None else found.id
                chunk = Chunk(
                    id=id_, text=found.content, score=found.score, metadata=found.metadata
                )
            except ValidationError:
                skipped.add("chunk_malformed")
                continue
            chunks.setdefault((chunk.id, chunk.text), chunk)
    return tuple(chunks.values())


def _claims(attributes: Attributes, name: Callable[[int, str], str]) -> tuple[ReportClaim, ...]:
    claims = (_Claim.model_validate(fields) for fields in _rows(attributes, name))
    return tuple(ReportClaim(**dict(claim)) for claim in claims if claim.text)


def _rows(attributes: Attributes, name: Callable[[int, str], str]) -> list[dict[str, object]]:
    """Undo the flattening of a list: one mapping of fields for each index, in order."""
    prefix, rest = name(0, "").split("0")
    # No list of a span has ten million items; int() takes no text of arbitrary length.
    pattern = re.compile(rf"{re.escape(prefix)}([0-9]{{1,7}}){re.escape(rest)}(\w+)")
    rows: dict[int, dict[str, object]] = {}
    for key, value in attributes.items():
        if found := pattern.fullmatch(key):
            rows.setdefault(int(found[1]), {})[found[2]] = value
    return [rows[index] for index in sorted(rows)]
