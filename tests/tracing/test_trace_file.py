from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
import typer
from pydantic import JsonValue
from typer.testing import CliRunner

from claimspan import Label
from claimspan.errors import ConfigError
from claimspan.metrics import METRICS
from claimspan_tracing import semconv
from claimspan_tracing.commands.report import report
from claimspan_tracing.trace_file.records import read_trace_file
from claimspan_tracing.trace_file.spans import Skipped

Value = str | int | float | bool | Sequence[str]
Json = dict[str, JsonValue]

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SECOND = 1_000_000_000
NOON = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()) * SECOND


# --- building a trace file, as an exporter would ---


def otlp_value(value: Value) -> Json:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}
        case _:
            return {"arrayValue": {"values": [otlp_value(item) for item in value]}}


def make_span(
    span_id: str,
    attributes: Mapping[str, Value],
    *,
    parent: str = "",
    name: str = "span",
    trace: str = TRACE,
    start: int = NOON,
    links: Sequence[tuple[str, str]] = (),
) -> Json:
    return {
        "traceId": trace,
        "spanId": span_id,
        "parentSpanId": parent,
        "name": name,
        "kind": 1,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + 2 * SECOND),
        "attributes": [{"key": key, "value": otlp_value(v)} for key, v in attributes.items()],
        "links": [{"traceId": trace_id, "spanId": span_id} for trace_id, span_id in links],
        "status": {},
    }


def root(
    span_id: str = "root", *, extra: Mapping[str, Value] | None = None, parent: str = ""
) -> Json:
    attributes: dict[str, Value] = {
        semconv.INPUT_VALUE: "What does finally do?",
        semconv.OUTPUT_VALUE: "It always runs.",
        semconv.EVALUATION_STATUS: "evaluated",
        semconv.JUDGE_NAME: "lexical",
        semconv.JUDGE_CALLS: 7,
        semconv.score("faithfulness"): 0.5,
        semconv.EVALUATION_UNDEFINED: ["precision: no ground truth: none given"],
    }
    return make_span(span_id, attributes | dict(extra or {}), name=semconv.SPAN_ROOT, parent=parent)


def retriever(span_id: str, ids: Sequence[str], parent: str = "root", start: int = NOON) -> Json:
    attributes: dict[str, Value] = {semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_RETRIEVER}
    for index, chunk_id in enumerate(ids):
        attributes[semconv.document(index, "id")] = chunk_id
        attributes[semconv.document(index, "content")] = f"Text of {chunk_id}."
        attributes[semconv.document(index, "score")] = 1.0 / (index + 1)
        attributes[semconv.document(index, "metadata")] = json.dumps({"page": index})
    return make_span(span_id, attributes, parent=parent, start=start)


def evaluation(
    fields: Mapping[str, Value], *, parent: str = "root", links: Sequence[tuple[str, str]] = ()
) -> Json:
    return make_span("eval", fields, parent=parent, links=links, name=semconv.SPAN_EVALUATE)


def line(*spans: Json) -> str:
    scope: Json = {"scope": {"name": semconv.SCOPE}, "spans": list(spans)}
    return json.dumps({"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]})


def write(path: Path, *lines: str) -> Path:
    trace_file = path / "traces.jsonl"
    trace_file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return trace_file


# --- reading it ---


def test_a_root_span_becomes_an_entry(tmp_path: Path) -> None:
    (entry,) = read_trace_file(write(tmp_path, line(root())))
    assert entry.trace_id == TRACE
    assert (entry.query, entry.response) == ("What does finally do?", "It always runs.")
    assert (entry.status, entry.judge, entry.judge_calls) == ("evaluated", "lexical", 7)
    assert entry.scores == {"faithfulness": 0.5}
    assert entry.undefined == {"precision": "no ground truth: none given"}
    assert entry.started == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert entry.seconds == 2.0
    assert entry.ground_truth is None


def test_a_reason_may_be_that_of_several_metrics(tmp_path: Path) -> None:
    listed = {semconv.EVALUATION_UNDEFINED: ["precision, f1: no claims", "faithfulness: scored"]}

    (entry,) = read_trace_file(write(tmp_path, line(root(extra=listed))))

    assert entry.undefined == {"precision": "no claims", "f1": "no claims"}


def test_a_reason_alone_is_that_of_every_metric_without_score_or_reason(tmp_path: Path) -> None:
    listed = {semconv.EVALUATION_UNDEFINED: ["precision: no claims", "no ground truth"]}

    (entry,) = read_trace_file(write(tmp_path, line(root(extra=listed))))

    assert entry.undefined.keys() == set(METRICS) - {"faithfulness"}
    assert entry.undefined["precision"] == "no claims"
    assert entry.undefined["recall"] == "no ground truth"


def test_chunks_of_several_retrievers_are_joined_by_id(tmp_path: Path) -> None:
    trace_file = write(
        tmp_path,
        line(retriever("late", ["b", "c"], start=NOON + SECOND)),
        line(root(), retriever("early", ["a", "b"])),
    )
    (entry,) = read_trace_file(trace_file)
    assert [chunk.id for chunk in entry.chunks] == ["a", "b", "c"]
    assert entry.chunks[1].text == "Text of b."
    assert (entry.chunks[1].score, entry.chunks[1].metadata) == (0.5, {"page": 1})


def test_a_retriever_below_other_spans_belongs_to_the_nearest_root(tmp_path: Path) -> None:
    inner, step = root("inner", parent="step"), make_span("step", {}, parent="root")
    spans = (root(), step, inner, retriever("r1", ["a"], "step"), retriever("r2", ["b"], "inner"))
    entries = read_trace_file(write(tmp_path, line(*spans)))
    assert [[chunk.id for chunk in entry.chunks] for entry in entries] == [["a"], ["b"]]


def test_a_chunk_without_id_is_known_by_its_content(tmp_path: Path) -> None:
    fields: dict[str, Value] = {
        semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_RETRIEVER,
        semconv.document(2, "content"): "Two.",
        semconv.document(10, "content"): "Ten.",
    }
    spans = (root(), make_span("r", fields, parent="root"))
    (entry,) = read_trace_file(write(tmp_path, line(*spans)))
    assert [chunk.text for chunk in entry.chunks] == ["Two.", "Ten."]
    assert len({chunk.id for chunk in entry.chunks}) == 2


def test_chunks_that_the_generator_read_win_over_those_that_were_retrieved(tmp_path: Path) -> None:
    read: dict[str, Value] = {
        semconv.OPENINFERENCE_SPAN_KIND: semconv.KIND_LLM,
        semconv.document(0, "id"): "b",
        semconv.document(0, "content"): "Text of b, rewritten.",
    }
    spans = (root(), retriever("r", ["a", "b"]), make_span("g", read, parent="root"))
    (entry,) = read_trace_file(write(tmp_path, line(*spans)))
    assert [chunk.text for chunk in entry.chunks] == ["Text of b, rewritten."]


def test_claims_are_read_from_the_evaluation_span(tmp_path: Path) -> None:
    fields: dict[str, Value] = {
        semconv.response_claim(0, semconv.CLAIM_TEXT): "It runs.",
        semconv.response_claim(0, semconv.CLAIM_SENTENCE): "It always runs.",
        semconv.response_claim(0, semconv.CLAIM_LABEL): "entailed",
        semconv.response_claim(0, semconv.CLAIM_SUPPORTED_BY): '["a", "b"]',
        semconv.response_claim(0, semconv.CLAIM_CONTRADICTED_BY): '["c"]',
        semconv.response_claim(0, semconv.CLAIM_GROUND_TRUTH_LABEL): "neutral",
        semconv.response_claim(1, semconv.CLAIM_TEXT): "Nobody could tell.",
        semconv.ground_truth_claim(0, semconv.CLAIM_TEXT): "It cleans up.",
        semconv.ground_truth_claim(0, semconv.CLAIM_LABEL): "contradicted",
    }
    truth = {semconv.GROUND_TRUTH: "It cleans up."}
    (entry,) = read_trace_file(write(tmp_path, line(root(extra=truth), evaluation(fields))))
    claim, undecided = entry.response_claims
    assert (claim.text, claim.sentence) == ("It runs.", "It always runs.")
    assert (claim.label, claim.ground_truth_label) == (Label.ENTAILED, Label.NEUTRAL)
    assert (claim.supported_by, claim.contradicted_by) == (("a", "b"), ("c",))
    assert undecided.label is None
    assert entry.ground_truth_claims[0].label is Label.CONTRADICTED
    assert entry.ground_truth == "It cleans up."


def test_evidence_that_a_backend_cut_is_not_guessed(tmp_path: Path) -> None:
    fields: dict[str, Value] = {
        semconv.response_claim(0, semconv.CLAIM_TEXT): "It runs.",
        semconv.response_claim(0, semconv.CLAIM_LABEL): "entai",
        semconv.response_claim(0, semconv.CLAIM_SUPPORTED_BY): '["a", "b',
    }
    (entry,) = read_trace_file(write(tmp_path, line(root(), evaluation(fields))))
    assert (entry.response_claims[0].label, entry.response_claims[0].supported_by) == (None, ())


@pytest.mark.parametrize("parent", ["", "root"])
def test_scores_that_came_late_count_as_the_roots(tmp_path: Path, parent: str) -> None:
    waiting = make_span("root", {semconv.EVALUATION_STATUS: "timeout"}, start=NOON)
    late: dict[str, Value] = {semconv.score("f1"): 0.25, semconv.JUDGE_NAME: "local"}
    carrier = evaluation(late, parent=parent, links=[(TRACE, "root")])
    carrier["traceId"] = TRACE if parent else "another"
    (entry,) = read_trace_file(write(tmp_path, line(carrier), line(waiting)))
    assert entry.scores == {"f1": 0.25}
    assert (entry.status, entry.late, entry.judge) == ("timeout", True, "local")


def test_scores_that_came_in_time_are_not_late(tmp_path: Path) -> None:
    carrier = evaluation({}, links=[(TRACE, "root")])
    (entry,) = read_trace_file(write(tmp_path, line(root(), carrier)))
    assert not entry.late


def test_what_had_no_room_is_counted(tmp_path: Path) -> None:
    counts: dict[str, Value] = {
        semconv.CHUNKS_COUNT: 12,
        semconv.CLAIMS_RESPONSE: 30,
        semconv.CLAIMS_GROUND_TRUTH: 10,
    }
    spans = (root(extra=counts), evaluation({semconv.CLAIMS_RECORDED: 25}))
    (entry,) = read_trace_file(write(tmp_path, line(*spans)))
    assert (entry.chunks_left_out, entry.claims_left_out) == (12, 15)


def test_integers_are_read_as_strings_and_as_numbers(tmp_path: Path) -> None:
    text = line(root()).replace('{"intValue": "7"}', '{"intValue": 7}')
    (entry,) = read_trace_file(write(tmp_path, text))
    assert entry.judge_calls == 7


def test_a_score_that_is_no_number_is_left_out(tmp_path: Path) -> None:
    text = line(root()).replace('{"doubleValue": 0.5}', '{"doubleValue": "NaN"}')
    (entry,) = read_trace_file(write(tmp_path, text))
    assert entry.scores == {}


def test_entries_come_in_the_order_in_which_they_began(tmp_path: Path) -> None:
    later = make_span("b", {semconv.EVALUATION_STATUS: "no_context"}, start=NOON + SECOND)
    entries = read_trace_file(write(tmp_path, line(later), "", line(root())))
    assert [entry.status for entry in entries] == ["evaluated", "no_context"]


def test_spans_that_are_their_own_ancestors_belong_to_nobody(tmp_path: Path) -> None:
    loop = (retriever("x", ["a"], parent="y"), retriever("y", ["b"], parent="x"))
    (entry,) = read_trace_file(write(tmp_path, line(root(), *loop)))
    assert entry.chunks == ()


# --- files that cannot be read ---


BROKEN = {
    "{": "line_not_json",
    "[]": "line_not_otlp",
    '{"resourceSpans": 3}': "line_not_otlp",
    '{"resourceSpans": [7]}': "group_malformed",
    '{"resourceSpans": [{"scopeSpans": [{"spans": [{}]}]}]}': "span_malformed",
    "[" * 10_000 + "]" * 10_000: "line_not_json",
}


@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_line_is_counted_and_the_lines_beside_it_are_read(
    tmp_path: Path, broken: str
) -> None:
    path = write(tmp_path, line(root("a")), "", broken, line(root("b")))
    skipped = Skipped(path)

    assert len(read_trace_file(path, skipped=skipped)) == 2
    assert skipped.counts == {BROKEN[broken]: 1}


@pytest.mark.parametrize("broken", BROKEN)
def test_strict_reading_names_the_first_broken_line(tmp_path: Path, broken: str) -> None:
    path = write(tmp_path, line(root()), "", broken)

    with pytest.raises(ConfigError, match=r"traces\.jsonl, line 3, is not OTLP JSON"):
        read_trace_file(path, skipped=Skipped(path, strict=True))


def test_a_broken_part_of_a_span_costs_that_part_alone(tmp_path: Path) -> None:
    broken = root()
    attributes, links = broken["attributes"], broken["links"]
    assert isinstance(attributes, list)
    assert isinstance(links, list)
    attributes.append({"key": "x", "value": {"intValue": str(2**70)}})
    links.append({"traceId": 7})
    other = make_span("other", {})
    other["startTimeUnixNano"] = str(10**30)
    documents = retriever("r", ["a", "b"])
    text = line(broken, other, documents).replace('{"doubleValue": 1.0}', '{"stringValue": "?"}')
    path = write(tmp_path, text)
    skipped = Skipped(path)

    (entry,) = read_trace_file(path, skipped=skipped)

    assert entry.scores == {"faithfulness": 0.5}
    assert [chunk.id for chunk in entry.chunks] == ["b"]
    kinds = ("span_malformed", "link_malformed", "attribute_malformed", "chunk_malformed")
    assert skipped.counts == dict.fromkeys(kinds, 1)


def test_without_a_counter_the_damage_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    read_trace_file(write(tmp_path, line(root()), "{", "["))

    (record,) = caplog.records
    assert "2 lines that are not JSON" in record.getMessage()


def test_the_text_of_a_broken_line_stays_out_of_the_message(tmp_path: Path) -> None:
    path = write(tmp_path, '{"resourceSpans": "the secret chunk"}')
    with pytest.raises(ConfigError) as caught:
        read_trace_file(path, skipped=Skipped(path, strict=True))
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("lines", [[""], [line(make_span("a", {}))], ['{"resourceLogs": []}']])
def test_a_file_without_evaluated_spans_says_so(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(ConfigError, match="none of them evaluated by claimspan") as caught:
        read_trace_file(write(tmp_path, *lines))
    assert "not evaluated yet are for `claimspan evaluate`" in str(caught.value)


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        read_trace_file(tmp_path / "missing.jsonl")


# --- the command ---


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command("report")(report)
    return app


def test_the_command_writes_a_page(tmp_path: Path, app: typer.Typer) -> None:
    page = tmp_path / "page.html"
    trace_file = write(tmp_path, line(root(), retriever("r", ["a"])))
    result = CliRunner().invoke(app, [str(trace_file), "-o", str(page)])
    assert result.exit_code == 0, result.output
    assert "Text of a." in page.read_text(encoding="utf-8")
    assert "1 record" in result.output


def test_the_command_answers_in_json(tmp_path: Path, app: typer.Typer) -> None:
    page = tmp_path / "page.html"
    trace_file = write(tmp_path, line(root()))
    result = CliRunner().invoke(app, [str(trace_file), "-o", str(page), "--json"])
    assert json.loads(result.output) == {
        "report": str(page),
        "entries": 1,
        "means": {"faithfulness": 0.5},
        "skipped": {},
    }


def test_the_command_says_what_it_skipped(tmp_path: Path, app: typer.Typer) -> None:
    trace_file = write(tmp_path, line(root()), "{", "[")
    arguments = [str(trace_file), "-o", str(tmp_path / "page.html"), "--json"]

    result = CliRunner().invoke(app, arguments)
    strict = CliRunner().invoke(app, [*arguments, "--strict"])

    assert result.exit_code == 0
    assert "skipped: 2 lines that are not JSON" in result.stderr
    assert json.loads(result.stdout)["skipped"] == {"line_not_json": 2}
    assert isinstance(strict.exception, ConfigError)


def test_the_command_fails_where_no_record_is_left(tmp_path: Path, app: typer.Typer) -> None:
    trace_file = write(tmp_path, "{")
    page = tmp_path / "page.html"

    result = CliRunner().invoke(app, [str(trace_file), "-o", str(page), "--json"])

    assert result.exit_code == 1
    assert "has 0 spans" in result.stderr
    assert "1 lines that are not JSON" in result.stderr
    assert json.loads(result.stdout)["skipped"] == {"line_not_json": 1}
    assert not page.exists()


def test_a_page_that_cannot_be_written_is_an_error_of_ours(
    tmp_path: Path, app: typer.Typer
) -> None:
    trace_file = write(tmp_path, line(root()))
    result = CliRunner().invoke(app, [str(trace_file), "-o", str(tmp_path / "no" / "page.html")])
    assert isinstance(result.exception, ConfigError)
