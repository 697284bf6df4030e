"""Files of OTLP JSON lines, as the OpenTelemetry Collector's file exporter writes them."""

from __future__ import annotations

import gc
import gzip
import json
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan

from claimspan.errors import ConfigError
from claimspan_backfill._files import FileSource
from claimspan_backfill._run import Backfill, Settings
from claimspan_backfill._sources import PAGE, Page, Window
from claimspan_tracing.trace_file.writing import OtlpFileExporter

from backend_traces import backfill, killed, slow_judge
from command_line import invoke, run
from judge_server import judge_server
from oi_spans import ask, monitored
from otlp_receiver import receiver
from stored_traces import MINUTE, group, question, spans_of

START = time.time_ns() - 600 * MINUTE


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines_of(traces: Iterable[list[dict[str, Any]]]) -> str:
    return "".join(json.dumps({"resourceSpans": [group(spans)]}) + "\n" for spans in traces)


def written(n_traces: int, path: str = "traces.jsonl") -> Path:
    file = Path(path)
    file.write_text(lines_of(spans_of(n, START + n * MINUTE) for n in range(n_traces)))
    return file


def told(*given: str, code: int = 0) -> dict[str, Any]:
    result = invoke("backfill", *given, "--json")
    assert result.exit_code == code, result.output + repr(result.exception)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_spans_of_a_trace_may_stand_anywhere_in_a_folder(here: Path) -> None:
    spans = [span for n in range(20) for span in spans_of(n, START + n * MINUTE)]
    folder = here / "exported" / "today"
    folder.mkdir(parents=True)
    (folder.parent / "a.jsonl").write_text(lines_of([span] for span in spans[::2]))
    with gzip.open(folder / "b.json.gz", "wt") as file:
        file.write(lines_of([spans[1::2]]))
    (folder / "notes.txt").write_text("no traces")

    found = told("exported", "--judge", "lexical", "-o", "out.jsonl")

    assert (found["traces"], found["judged"]) == (20, 20)
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [row["record"]["query"] for row in rows] == [question(n) for n in range(20)]


def test_results_are_for_the_report(here: Path) -> None:
    written(3)
    told("traces.jsonl", "--judge", "lexical", "-o", "out.jsonl")

    assert "3 records" in run("report", "out.jsonl", "-o", "page.html")


def test_what_is_broken_in_a_file_is_counted_and_the_rest_judged(here: Path) -> None:
    file = written(2)
    broken = group([{**spans_of(7, START)[0], "spanId": "no id"}])
    with file.open("a") as opened:
        opened.write("{half a line\n" + json.dumps({"resourceSpans": [broken]}) + "\n")

    found = told("traces.jsonl", "--judge", "lexical", "-o", "out.jsonl")

    assert found["judged"] == 2
    assert sum(found["left_out"].values()) == 2
    assert found["left_out"]["lines that are not OTLP JSON"] == 1


def test_a_file_that_is_still_written_costs_what_is_missing_of_it_alone(here: Path) -> None:
    packed = gzip.compress(lines_of([spans_of(0, START)]).encode())
    Path("traces").mkdir()
    Path("traces/cut.json.gz").write_bytes(packed[:-30])
    Path("traces/packed.jsonl").write_bytes(packed)
    written(2, "traces/plain.json.gz")

    found = told("traces", "--judge", "lexical", "-o", "out.jsonl")

    assert found["judged"] == 2
    assert found["left_out"] == {"lines that are not OTLP JSON": 1}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--since", "999999d"), "--since '999999d' is no time"),
        (("--since", "1h", "--until", "2h"), "is not before --until 2h"),
        (("--url", "http://localhost:1", "--project", "x"), "takes no --url or --project"),
    ],
)
def test_an_option_that_finds_nothing_is_refused(
    given: tuple[str, ...], said: str, here: Path
) -> None:
    written(1)
    result = invoke("backfill", "traces.jsonl", "--dry-run", *given)

    assert isinstance(result.exception, ConfigError)
    assert said in str(result.exception)


@pytest.mark.parametrize("given", [("--since", "0001-01-01"), ("--until", "9999-12-31")])
def test_no_date_is_too_early_or_too_late(given: tuple[str, ...], here: Path) -> None:
    written(2)

    assert told("traces.jsonl", "--dry-run", *given)["records"] == 2


def test_a_filter_has_truth_values_as_json_does(here: Path) -> None:
    spans = spans_of(0, START)
    spans[0]["attributes"] += [{"key": "is_beta", "value": {"boolValue": True}}]
    Path("traces.jsonl").write_text(lines_of([spans]))

    assert told("traces.jsonl", "--dry-run", "--filter", "is_beta=true")["records"] == 1


class PageOfAnything:
    """A source whose page holds what no JSON has."""

    identity = "anything"

    def pages(self, window: Window) -> Iterator[Page]:
        odd = spans_of(1, START)[0]
        odd["attributes"] = [{"key": "score", "value": {"doubleValue": float("nan")}}]
        deep: list[object] = []
        for _ in range(500):
            deep = [deep]
        yield [group(spans_of(0, START)), group([odd]), group([{**odd, "attributes": deep}])]


def test_what_cannot_be_read_of_a_page_leaves_out_itself_alone() -> None:
    settings = Settings(window=Window())
    summary = Backfill(
        PageOfAnything(), settings, evaluation=None, writer=None, output=None, state=None
    ).run(lambda: None)

    assert (summary.traces, summary.records) == (1, 1)
    assert summary.left_out == {"spans that are no OTLP JSON": 2}


def test_each_fault_of_a_file_is_one_line_that_says_what_to_do(here: Path) -> None:
    (here / "empty").mkdir()
    for path in ("no such file", "empty"):
        result = invoke("backfill", path, "-o", "out.jsonl", "--judge", "lexical")
        assert isinstance(result.exception, ConfigError)
        assert "give a file" in str(result.exception)
        assert path in str(result.exception)


def test_where_no_scores_can_go_is_said_before_anything_is_read(here: Path) -> None:
    written(1)
    result = invoke("backfill", "traces.jsonl", "--judge", "lexical")

    assert "--export or --output" in str(result.exception)


def test_memory_holds_a_page_of_traces_and_no_more(here: Path) -> None:
    file = written(8 * PAGE)
    alive: list[int] = []

    def look(_records: object) -> None:
        alive.append(sum(isinstance(each, ReadableSpan) for each in gc.get_objects()))

    gc.collect()
    before = sum(isinstance(each, ReadableSpan) for each in gc.get_objects())
    settings = Settings(window=Window())
    counting = Backfill(
        FileSource(file), settings, evaluation=None, writer=None, output=None, state=None
    )
    summary = counting.run(lambda: None, look)

    assert (summary.traces, summary.records) == (8 * PAGE, 8 * PAGE)
    assert len(alive) == 8
    assert max(alive) - before <= 3 * 3 * PAGE  # three spans a trace; some wait for the collector


def test_a_run_that_is_killed_leaves_no_copy_of_the_traces(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = here / "room"
    room.mkdir()
    monkeypatch.setenv("TMPDIR", str(room))
    monkeypatch.setenv("SQLITE_TMPDIR", str(room))
    written(4 * PAGE)

    for _ in FileSource(here / "traces.jsonl").pages(Window()):
        assert not list(room.iterdir())


def test_only_what_is_wanted_is_judged(here: Path) -> None:
    written(30)
    since = datetime.fromtimestamp((START + 9.5 * MINUTE) / 1e9, UTC).isoformat()
    asked = ("traces.jsonl", "--dry-run")

    assert told(*asked)["records"] == 30
    assert told(*asked, "--since", since)["records"] == 20
    assert told(*asked, "--until", since)["records"] == 10
    assert told(*asked, "--filter", f"input.value={question(4)}")["records"] == 1
    assert told(*asked, "--filter", "service.name=bot")["records"] == 30
    assert told(*asked, "--filter", "service.name=other")["left_out"] == {"another --filter": 30}
    assert told(*asked, "--limit", "7")["stopped"] == "--limit is reached"
    half = told(*asked, "--sample", "0.5")
    assert half == told(*asked, "--sample", "0.5")
    assert half["records"] + half["left_out"]["not sampled"] == 30
    assert 5 < half["records"] < 25
    assert sorted(each.name for each in here.iterdir()) == ["traces.jsonl"]


def test_an_estimate_asks_no_model_and_needs_no_key(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    written(10)

    found = told("traces.jsonl", "--estimate", "--judge", "openai:gpt-4o-mini")

    assert found["estimate"]["calls"] >= 10
    assert 0 < found["estimate"]["cost_usd"] < 0.1
    assert sorted(each.name for each in here.iterdir()) == ["traces.jsonl"]


def test_why_a_trace_gives_no_record_is_said(here: Path) -> None:
    chain, retriever, model = spans_of(0, START)
    none: list[object] = []
    plain = [{**each, "attributes": none} for each in spans_of(9, START)]
    file = here / "traces.jsonl"
    file.write_text(lines_of([[chain, model], [{**retriever, "traceId": f"{5:032x}"}], plain]))

    found = told("traces.jsonl", "--dry-run")

    assert found["records"] == 0
    assert found["left_out"] == {
        "nothing was retrieved, as far as the spans show": 1,
        "no answer was given, as far as the spans show": 1,
        "no span says what it is: none is OpenInference's, or of a dialect that is read": 1,
    }


def test_more_traces_are_judged_where_others_were(here: Path) -> None:
    written(3)
    told("traces.jsonl", "--judge", "lexical", "-o", "out.jsonl")
    written(5)

    found = told("traces.jsonl", "--judge", "lexical", "-o", "out.jsonl")
    assert (found["judged"], found["already"]) == (2, 3)

    # What is measured is a part of what was done.
    other = told(
        *("traces.jsonl", "--judge", "lexical", "-o", "other.jsonl", "--metrics", "faithfulness")
    )
    assert other["judged"] == 5


def test_scores_are_exported_as_linked_spans_that_replace_themselves(here: Path) -> None:
    written(2)
    with receiver() as collector:
        for state in ("one.db", "two.db"):
            told(
                *("traces.jsonl", "--judge", "lexical", "--state", state),
                *("--export", collector.url.removesuffix("/v1/traces")),
            )

    carriers = [each for each in collector.spans if each.name == "claimspan.evaluate"]
    assert len(carriers) == 4
    assert len({each.span_id for each in carriers}) == 2
    roots = {bytes.fromhex(spans_of(n, START)[0]["spanId"]) for n in range(2)}
    assert {each.links[0].span_id for each in carriers} == roots


def test_an_export_that_takes_nothing_is_said_and_nothing_is_noted(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")  # seconds that it tries again for
    written(2)
    given = ("traces.jsonl", "--judge", "lexical", "--export", "http://127.0.0.1:9/v1/traces")
    result = invoke("backfill", *given)

    assert "--export" in str(result.exception)
    with receiver() as collector:
        assert told(*given[:3], "--export", collector.url)["judged"] == 2


def test_what_was_judged_live_is_not_judged_again(here: Path) -> None:
    with monitored() as monitor:
        ask(monitor.provider.get_tracer("by hand"))
        OtlpFileExporter("traces.jsonl").export(monitor.spans())
    (here / "scripted.py").write_text(
        "from claimspan.testing import ScriptedJudge\njudge = ScriptedJudge()\n"
    )

    same = told("traces.jsonl", "--judge", "scripted.py:judge", "-o", "out.jsonl")
    assert (same["judged"], same["already"]) == (0, 1)
    assert told("traces.jsonl", "--judge", "lexical", "-o", "out.jsonl")["judged"] == 1


def test_a_judge_that_is_away_ends_the_run_and_the_next_one_goes_on(here: Path) -> None:
    written(3)
    (here / "away.py").write_text(
        "from claimspan.errors import JudgeUnavailableError\n"
        "from claimspan.testing import ScriptedJudge\n"
        "judge = ScriptedJudge(error=JudgeUnavailableError('it sleeps'))\n"
    )
    result = invoke("backfill", "traces.jsonl", "-o", "out.jsonl", "--judge", "away.py:judge")

    assert "the judge is away" in str(result.exception)
    assert "3 traces read, 3 records" in result.output
    assert told("traces.jsonl", "-o", "out.jsonl", "--judge", "lexical")["judged"] == 3


def test_records_that_the_judge_fails_on_are_said_and_tried_again(here: Path) -> None:
    written(3)
    (here / "failing.py").write_text(
        "from claimspan.errors import JudgeError\n"
        "from claimspan.testing import ScriptedJudge\n"
        "judge = ScriptedJudge(error=JudgeError('no verdict'))\n"
    )
    given = ("traces.jsonl", "-o", "out.jsonl", "--judge", "failing.py:judge")

    assert sum(told(*given, code=1)["failed"].values()) == 3
    assert sum(told(*given, code=1)["failed"].values()) == 3


def test_a_run_that_was_killed_goes_on_and_each_record_has_one_line(here: Path) -> None:
    written(60)
    given = ("traces.jsonl", "-o", "out.jsonl", *slow_judge(here, 0.1))

    killed(*given, folder=here)
    with Path("out.jsonl").open("a") as file:
        file.write('{"half of')  # as if it had been killed while it wrote
    found = backfill(*given, folder=here)

    assert 0 < found["already"] < 60
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert sorted(row["index"] for row in rows) == [*range(60)]
    assert {row["record"]["query"] for row in rows} == {question(n) for n in range(60)}


def test_a_budget_ends_the_run_and_another_one_goes_on(here: Path) -> None:
    written(40)
    with judge_server() as server:
        options = ("--judge-option", f"base_url={server.url}", "--judge-option", "input_price=1000")
        given = (
            *("traces.jsonl", "-o", "out.jsonl", "--judge", "openai:stub", *options),
            *("--judge-option", "output_price=1000", "--judge-option", "api_key=a key"),
        )
        first = told(*given, "--budget", "25")
        assert first["stopped"].startswith("the budget is spent")
        assert 0 < first["judged"] < 40
        assert 0 < first["cost_usd"] <= 25
        second = told(*given)

    assert second["judged"] + second["already"] == 40
    assert second["already"] == first["judged"]


def test_a_state_of_another_kind_is_refused(here: Path) -> None:
    written(1)
    (here / "state.db").write_text("no database, but longer than its header would be" * 9)
    result = invoke(
        *("backfill", "traces.jsonl", "-o", "out.jsonl", "--judge", "lexical"),
        *("--state", "state.db"),
    )

    assert "--state" in str(result.exception)
