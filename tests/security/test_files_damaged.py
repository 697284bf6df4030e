"""A trace file may hold anything: what is left of it is read, the rest is counted, nothing raises.

Rows S2, I3 and F9 of the reliability matrix, for trace files and files of records.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from claimspan.errors import FileError, NoRecordsError, PayloadError
from claimspan.files.jsonl import MAX_DEPTH, bounded_lines, parse_bounded
from claimspan.files.record_files import read_records
from claimspan.report import ReportEntry, render_report, summarise
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing import semconv
from claimspan_tracing.testing import InMemoryMonitor
from claimspan_tracing.text import clean
from claimspan_tracing.trace_file.records import read_trace_file
from claimspan_tracing.trace_file.spans import Skipped
from claimspan_tracing.trace_file.writing import OtlpFileExporter

from damage import DAMAGES, damage
from lc_pipelines import rag_chain

SEEDS = 60
"""Damages of each kind, 600 in all: as many as once gave 60 tracebacks."""

QUERIES = ("Who \u202ewrote it?", "Kdo je \u0161el \u010dez reko? \u8239", "It was \x1b[31mBen.")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A real trace file: a real chain, three records, one line a span."""
    path = tmp_path_factory.mktemp("real") / "traces.jsonl"
    truths = {query: f"Answer to {query}. Nobody knows." for query in QUERIES}
    with InMemoryMonitor(ground_truth=truths) as monitor:
        monitor.provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path)))
        for query in QUERIES:
            rag_chain().invoke(query, {"callbacks": [ClaimspanCallbackHandler(monitor)]})
        assert len(monitor.records()) == len(QUERIES)
    return path.read_bytes()


def entries_of(path: Path) -> tuple[list[ReportEntry], dict[str, int]]:
    """What can be read of a file, rendered as a page too, and the counts of what cannot."""
    entries, counts = read(path)
    if entries:
        render_report(entries)
    return entries, counts


def read(path: Path) -> tuple[list[ReportEntry], dict[str, int]]:
    skipped = Skipped(path)
    try:
        return read_trace_file(path, skipped=skipped), skipped.counts
    except NoRecordsError:
        return [], skipped.counts


def test_an_undamaged_file_is_read_whole(tmp_path: Path, written: bytes) -> None:
    path = tmp_path / "traces.jsonl"
    path.write_bytes(written)

    entries, skipped = entries_of(path)

    assert {entry.query for entry in entries} == set(map(clean, QUERIES))
    assert all(entry.chunks and entry.response_claims for entry in entries)
    assert skipped == {}


@pytest.mark.parametrize("kind", DAMAGES)
def test_no_damage_raises_and_what_is_lost_is_counted(
    tmp_path: Path, written: bytes, kind: str
) -> None:
    path = tmp_path / "traces.jsonl"
    counted = 0
    survived: list[ReportEntry] = []
    for seed in range(SEEDS):
        path.write_bytes(damage(written, kind, seed))
        entries, skipped = read(path)
        counted += bool(skipped)
        survived += entries

    if survived:
        render_report(survived)
    # A key that was renamed is unknown, and a line that moved or was doubled is whole.
    assert counted or kind in ("keys", "double key")
    # On average more than one record of three; a file in another encoding has no line of JSON.
    assert len(survived) > SEEDS or kind == "encoding"


def test_damage_in_one_line_costs_no_record_of_another(tmp_path: Path, written: bytes) -> None:
    path = tmp_path / "traces.jsonl"
    lines = written.splitlines(keepends=True)
    roots = [
        number for number, line in enumerate(lines) if semconv.EVALUATION_STATUS.encode() in line
    ]
    assert len(roots) == len(QUERIES)
    for seed, number in enumerate(roots):
        torn = [*lines[:number], lines[number][: 100 + seed], b"\n", *lines[number + 1 :]]
        path.write_bytes(b"".join(torn))

        entries, skipped = entries_of(path)

        assert len(entries) == len(QUERIES) - 1
        assert skipped == {"line_not_json": 1}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
_NAMES = st.sampled_from(
    [
        semconv.EVALUATION_STATUS,
        semconv.OPENINFERENCE_SPAN_KIND,
        semconv.EVALUATION_UNDEFINED,
        semconv.JUDGE_CALLS,
        semconv.JUDGE_COST,
        semconv.CHUNKS_COUNT,
        semconv.CHUNKS_RECORDED,
        semconv.CLAIMS_RECORDED,
        semconv.score("faithfulness"),
        semconv.score("f1"),
        semconv.document(0, "content"),
        semconv.document(0, "score"),
        semconv.document(0, "metadata"),
        semconv.response_claim(0, semconv.CLAIM_TEXT),
        semconv.response_claim(0, semconv.CLAIM_LABEL),
        semconv.response_claim(0, semconv.CLAIM_SUPPORTED_BY),
        semconv.INPUT_VALUE,
        semconv.OUTPUT_VALUE,
    ]
)
_VALUES = st.one_of(
    st.text().map(lambda text: {"stringValue": text}),
    st.sampled_from(["RETRIEVER", "LLM", "evaluated", "[[1]]", "{}", "1e999", "NaN"]).map(
        lambda text: {"stringValue": text}
    ),
    (st.integers() | st.sampled_from([2**63 - 1, -(2**63), 10**300])).map(
        lambda number: {"intValue": str(number)}
    ),
    st.floats().map(lambda number: {"doubleValue": number}),
    st.lists(st.text(), max_size=2).map(
        lambda texts: {"arrayValue": {"values": [{"stringValue": text} for text in texts]}}
    ),
    _JSON,
)
_SPANS = st.fixed_dictionaries(
    {"traceId": st.just("t"), "spanId": st.sampled_from("abcd")},
    optional={
        "parentSpanId": st.sampled_from("abcd"),
        "name": st.sampled_from([semconv.SPAN_EVALUATE, semconv.SPAN_ROOT]) | _JSON,
        "startTimeUnixNano": st.integers(0, 2**64).map(str) | _JSON,
        "endTimeUnixNano": st.integers(0, 2**64).map(str) | _JSON,
        "attributes": st.lists(
            st.fixed_dictionaries({"key": _NAMES, "value": _VALUES}), min_size=1, max_size=8
        )
        | _JSON,
        "links": st.just([{"traceId": "t", "spanId": "a"}]) | _JSON,
    },
)


@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_SPANS, max_size=5), _JSON)
def test_no_value_of_any_field_raises(
    tmp_path: Path, spans: list[dict[str, object]], other: object
) -> None:
    path = tmp_path / "traces.jsonl"
    lines = [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]} for span in spans]
    path.write_text("\n".join(json.dumps(line) for line in [*lines, other]), encoding="utf-8")

    entries, _ = entries_of(path)

    assert len(entries) <= len(spans)


@pytest.mark.parametrize("score", [1e308, -1e308, 5e-324])
def test_a_score_at_the_edge_of_a_float_is_summarised(tmp_path: Path, score: float) -> None:
    path = tmp_path / "traces.jsonl"
    attributes = [
        {"key": semconv.EVALUATION_STATUS, "value": {"stringValue": "evaluated"}},
        {"key": semconv.score("f1"), "value": {"doubleValue": score}},
        {"key": semconv.JUDGE_COST, "value": {"doubleValue": score}},
        {"key": semconv.CHUNKS_COUNT, "value": {"doubleValue": score}},
        {"key": semconv.CHUNKS_RECORDED, "value": {"doubleValue": -score}},
    ]
    spans = [{"traceId": "t", "spanId": str(n), "attributes": attributes} for n in range(3)]
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))

    entries, _ = entries_of(path)

    (summary,) = summarise(entries)
    assert summary.mean == pytest.approx(score)
    assert sum(summary.bins) == 3


# --- bounds ---


def test_a_line_beyond_the_bound_is_skipped_without_being_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"\xef\xbb\xbfone\n\n" + b"x" * 5_000_000 + b"\n" + b"y" * 10 + b"\nlast")

    with path.open("rb") as file:
        lines = list(bounded_lines(file, 10))

    assert lines == [(1, b"one\n"), (3, None), (4, b"y" * 10 + b"\n"), (5, b"last")]


BIG = """
import sys
from pathlib import Path
from claimspan.errors import NoRecordsError
from claimspan_tracing.trace_file.spans import Skipped
from claimspan_tracing.trace_file.records import read_trace_file

def peak():  # not ru_maxrss, which a process inherits from the one that started it
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])

path = Path(sys.argv[1])
before = peak()
try:
    read_trace_file(path, skipped=Skipped(path))
except NoRecordsError as error:
    print(str(error).split(" has ")[1].split(",")[0])
print((peak() - before) // 1024)
"""


def test_spans_of_others_are_read_without_being_kept(tmp_path: Path) -> None:
    path = tmp_path / "big.jsonl"
    size, count = 100, 0
    with path.open("w") as file:
        while file.tell() < size * 2**20:
            text = {"stringValue": "x" * 100_000}
            texts = [{"key": str(number), "value": text} for number in range(10)]
            span = {"traceId": "t", "spanId": str(count), "attributes": texts}
            file.write(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n")
            count += 1
    command = [sys.executable, "-c", BIG, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)

    read, grown = done.stdout.splitlines()
    assert read == f"{count} spans"
    assert int(grown) < size / 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[" * 10_000 + b"]" * 10_000, "nested too deeply"),
        (b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1), "nested too deeply"),
        (b"[" * 10_000_000, "nested too deeply"),
        (b"1" * 1_000_000, "not JSON"),
        (b'"' + b"x" * 1_000_001, "too long"),
        (b"NaN", "not JSON"),
        (b"\x80\x04]q\x00.", "not JSON"),
        (b'"\xff"', "not JSON"),
        ('"\ud800"', "not JSON"),
        ("", "not JSON"),
    ],
)
def test_a_json_text_without_bounds_is_refused(text: bytes | str, reason: str) -> None:
    bound = 100_000_000 if reason == "nested too deeply" else 1_000_001
    with pytest.raises(PayloadError) as caught:
        parse_bounded(text, max_bytes=bound)

    assert caught.value.reason == reason


@given(_JSON)
def test_a_json_text_within_bounds_is_parsed_as_by_the_standard_library(value: object) -> None:
    text = json.dumps(value)
    if "NaN" in text or "Infinity" in text or "\\ud" in text:
        return
    assert parse_bounded(text) == json.loads(text)


def test_brackets_within_texts_are_no_depth() -> None:
    value = ["[" * 1_000, '"' + "{" * 1_000, "\\" * 3 + '"[[' * 500]

    assert parse_bounded(json.dumps(value), max_depth=1) == value


# --- files of records stay strict ---


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_of_records_is_read_or_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "records.jsonl"
    row = {"query": "q", "response": "r", "chunks": [{"id": "a", "text": "t", "score": 0.5}]}
    whole = (json.dumps(row | {"metadata": {"a": [1]}}) + "\n").encode() * 4
    results: list[int | str] = []
    for seed in range(SEEDS):
        path.write_bytes(damage(whole, kind, seed))
        try:
            results.append(len(read_records(path)))
        except FileError as error:
            results.append(str(error))

    assert len(results) == SEEDS
    assert all(isinstance(each, int) or str(path) in each for each in results)
