"""Records and evaluations travel between processes as JSON, and arrive as they were."""

from __future__ import annotations

import json
import math
from typing import Final

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from claimspan import Chunk, Claim, Evaluation, Label, RagRecord, Usage, Verdict, VerdictMatrix
from claimspan.metrics import METRICS
from claimspan.verdicts import VerdictMatrices

# A slow machine is no broken promise.

# With halves of surrogate pairs, which Python strings may hold and UTF-8 may not.
TEXTS: Final = st.text(st.characters() | st.sampled_from("\ud800\udfff\x00\u2028"), max_size=20)
SHARES: Final = st.floats(0.0, 1.0)
NAMES: Final = st.sampled_from(METRICS).map(str)
COUNTS: Final = st.integers(0, 10**6)
NUMBERS: Final = st.floats(allow_nan=True, allow_infinity=True) | st.integers()
JSON_VALUES: Final[st.SearchStrategy[JsonValue]] = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
METADATA: Final = st.dictionaries(TEXTS, JSON_VALUES, max_size=3)

CHUNKS: Final = st.builds(
    Chunk,
    id=TEXTS,
    text=TEXTS,
    score=st.none() | st.floats(allow_nan=True, allow_infinity=True),
    metadata=METADATA,
)
RECORDS: Final = st.builds(
    RagRecord,
    query=TEXTS,
    response=TEXTS,
    chunks=st.lists(CHUNKS, max_size=3).map(tuple),
    ground_truth=st.none() | TEXTS,
    id=st.none() | TEXTS,
    metadata=METADATA,
)
CLAIMS: Final = st.lists(
    st.builds(Claim, text=TEXTS.filter(bool), sentence=st.none() | TEXTS), max_size=3
).map(tuple)
USAGES: Final = st.builds(
    Usage,
    calls=COUNTS,
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    cost_usd=st.floats(0, 1e6),
    seconds=st.floats(0, 1e6),
)


@st.composite
def verdicts(draw: st.DrawFn) -> Verdict | None:
    label = draw(st.none() | st.sampled_from(Label))
    if label is None:
        return None
    if draw(st.booleans()):
        return Verdict(label=label)
    entailed = draw(SHARES)
    neutral = draw(st.floats(0.0, 1.0 - entailed))
    rest = max(0.0, 1.0 - entailed - neutral)
    return Verdict(label=label, entailed=entailed, neutral=neutral, contradicted=rest)


@st.composite
def matrices(draw: st.DrawFn, n_claims: int, n_references: int) -> VerdictMatrix:
    rows = [[draw(verdicts()) for _ in range(n_references)] for _ in range(n_claims)]
    return VerdictMatrix.of(rows, n_references)


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    response, ground_truth = draw(CLAIMS), draw(CLAIMS)
    n_chunks = draw(st.integers(0, 2))
    return Evaluation(
        metrics=draw(st.dictionaries(NAMES, SHARES)),
        undefined=draw(st.dictionaries(NAMES, st.just("no chunks"))),
        response_claims=response,
        ground_truth_claims=ground_truth,
        matrices=VerdictMatrices(
            response_vs_chunks=draw(st.none() | matrices(len(response), n_chunks)),
            response_vs_ground_truth=draw(st.none() | matrices(len(response), 1)),
            ground_truth_vs_response=draw(st.none() | matrices(len(ground_truth), 1)),
            ground_truth_vs_chunks=draw(st.none() | matrices(len(ground_truth), n_chunks)),
        ),
        abstained=draw(st.booleans()),
        claims_dropped=draw(COUNTS),
        undecided=draw(st.dictionaries(st.sampled_from(["no reply", "cut off"]), COUNTS)),
        notes=draw(st.dictionaries(st.just("lexical verdicts"), COUNTS)),
        injection_suspected=draw(st.sampled_from([(), ("response",), ("chunks[0]", "response")])),
        judge_name=draw(st.sampled_from(["", "lexical"])),
        judge_version=draw(st.sampled_from(["", "1"])),
        usage=draw(USAGES),
        error=draw(st.none() | st.just("no verdicts within 300 s")),
    )


@given(evaluations())
def test_every_evaluation_equals_itself_after_json(evaluation: Evaluation) -> None:
    again = Evaluation.model_validate_json(evaluation.model_dump_json())

    assert again == evaluation
    assert again.score_mode == evaluation.score_mode
    assert again.context_coverage == evaluation.context_coverage
    assert again.undecided_claims == evaluation.undecided_claims


@given(RECORDS)
def test_every_record_equals_itself_after_json(record: RagRecord) -> None:
    assert RagRecord.model_validate_json(record.model_dump_json()) == record


@given(RECORDS)
def test_every_record_is_json_that_any_parser_takes(record: RagRecord) -> None:
    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is no JSON")

    parsed: JsonValue = json.loads(record.model_dump_json(), parse_constant=refuse)

    assert isinstance(parsed, dict)


def test_what_json_cannot_hold_is_replaced_when_the_record_is_made() -> None:
    nested: JsonValue = {"scores": [math.nan, 1.5, math.inf], "\ud800": "a\udfff"}

    chunk = Chunk(id="\ud83d\ude00", text="x\ud800", score=math.nan, metadata={"nested": nested})

    assert (chunk.id, chunk.text, chunk.score) == ("\U0001f600", "x\ufffd", None)
    assert chunk.metadata == {"nested": {"scores": [None, 1.5, None], "\ufffd": "a\ufffd"}}


def test_a_record_without_metadata_has_an_empty_one() -> None:
    assert RagRecord(query="q", response="r").metadata == {}


def test_a_claim_with_half_a_character_is_taken_as_it_can_be_written() -> None:
    claim = Claim(text="\ud800", sentence="a\udfff")

    assert (claim.text, claim.sentence) == ("\ufffd", "a\ufffd")
