"""``claimspan report`` takes traces and results, of one system or several, in three formats."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from claimspan.errors import ConfigError
from claimspan.files.record_rows import Recorded
from claimspan.report import ReportOutline
from claimspan.results.rag_results import RagResult
from claimspan_langchain import ClaimspanCallbackHandler
from claimspan_tracing.testing import InMemoryMonitor
from claimspan_tracing.trace_file.records import read_trace_file
from claimspan_tracing.trace_file.writing import OtlpFileExporter

from command_line import invoke, run
from lc_pipelines import Shelf, documents_for, rag_chain
from many_entries import many_rows

URL: Final = "http://localhost:6006/projects/x/traces/{trace_id}"


def results(tmp_path: Path, name: str, *, skill: int = 0, extra: Sequence[str] = ()) -> Path:
    path = tmp_path / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = [row.model_dump_json() for row in many_rows(12, skill=skill)]
    path.write_text("\n".join([*lines, *extra]), encoding="utf-8")
    return path


def traces(tmp_path: Path, metadata: Mapping[str, str], *, chunks: int = 2) -> Path:
    path = tmp_path / "traces.jsonl"
    documents = [d for n in range(chunks // 2) for d in documents_for(f"q {n}")]
    with InMemoryMonitor() as monitor:
        monitor.provider.add_span_processor(SimpleSpanProcessor(OtlpFileExporter(path)))
        handler = ClaimspanCallbackHandler(monitor)
        chain = rag_chain(retriever=Shelf(documents=documents))
        chain.invoke("q", {"callbacks": [handler], "metadata": dict(metadata)})
        monitor.only_record()
    return path


def test_results_become_a_page_as_traces_do(tmp_path: Path) -> None:
    page = tmp_path / "page.html"

    told = json.loads(run("report", str(results(tmp_path, "base")), "-o", str(page), "--json"))

    assert (told["report"], told["entries"], told["skipped"]) == (str(page), 12, {})
    assert told["means"]["f1"] > 0
    assert "Question 11:" in page.read_text(encoding="utf-8")


def test_ragcheckers_results_become_a_page_with_their_own_figures(tmp_path: Path) -> None:
    path, page = tmp_path / "checked.json", tmp_path / "page.html"
    checked = {
        "query_id": "river",
        "query": "How long is the Drava?",
        "gt_answer": "It is 725 km long.",
        "response": "It is 900 km long.",
        "retrieved_context": [{"doc_id": "d1", "text": "The Drava is 725 km long."}],
        "response_claims": [["Drava", "is long", "900 km"]],
        "gt_answer_claims": [["Drava", "is long", "725 km"]],
        "answer2response": ["Contradiction"],
        "response2answer": ["Contradiction"],
        "retrieved2response": [["Contradiction"]],
        "retrieved2answer": [["Entailment"]],
        # Not what the labels give: a recorded figure is shown as it is.
        "metrics": {"precision": 0.25},
    }
    path.write_text(json.dumps({"results": [checked]}), encoding="utf-8")

    told = json.loads(run("report", str(path), "-o", str(page), "--json"))

    assert (told["entries"], told["skipped"]) == (1, {})
    assert (told["means"]["precision"], told["means"]["claim_recall"]) == (0.25, 1.0)
    text = page.read_text(encoding="utf-8")
    assert "The generator left out the only retrieved fact." in text
    assert "$0" not in text


def test_records_that_were_not_evaluated_are_no_results(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    path.write_text(json.dumps([{"query": "q", "response": "r"}]), encoding="utf-8")

    result = invoke("report", str(path), "-o", str(tmp_path / "page.html"))

    assert result.exit_code == 1
    assert not (tmp_path / "page.html").exists()


def test_several_files_are_several_systems(tmp_path: Path) -> None:
    files = [results(tmp_path, "base"), results(tmp_path, "tuned", skill=5)]
    page = tmp_path / "page.html"

    told = run("report", *map(str, files), "-o", str(page))

    assert told.strip() == f"{page}: 12 records of base, 12 records of tuned"
    text = page.read_text(encoding="utf-8")
    assert "base vs tuned" in text
    assert "than base" in text


def test_the_ending_of_the_output_is_its_format(tmp_path: Path) -> None:
    file = results(tmp_path, "base")

    run("report", str(file), "-o", str(tmp_path / "report.md"), "--worst", "2")
    run("report", str(file), "-o", str(tmp_path / "report.json"), "--worst", "2")

    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# base\n")
    read = ReportOutline.model_validate_json((tmp_path / "report.json").read_bytes())
    assert (read.title, len(read.worst), read.systems[0].records) == ("base", 2, 12)


def test_a_format_that_is_given_wins_over_the_ending(tmp_path: Path) -> None:
    output = tmp_path / "report.txt"

    run("report", str(results(tmp_path, "base")), "-o", str(output), "--format", "markdown")

    assert output.read_text(encoding="utf-8").startswith("# base\n")


def test_two_files_of_one_name_are_told_apart_by_their_paths(tmp_path: Path) -> None:
    files = [results(tmp_path / "a", "run"), results(tmp_path / "b", "run")]

    told = json.loads(run("report", *map(str, files), "-o", str(tmp_path / "p.html"), "--json"))

    assert list(told["systems"]) == [str(file) for file in files]


def test_a_line_that_is_no_result_is_skipped_and_counted(tmp_path: Path) -> None:
    file = results(tmp_path, "torn", extra=['{"secret": 1}', '{"to'])

    done = invoke("report", str(file), "-o", str(tmp_path / "p.html"), "--json")

    assert json.loads(done.stdout)["skipped"] == {"line_not_result": 2}
    assert "2 lines that are no results" in done.stderr


@pytest.mark.parametrize("kept", [0.5, 0.999])
def test_results_whose_last_line_was_cut_by_a_crash_are_shown_without_it(
    tmp_path: Path, kept: float
) -> None:
    file = results(tmp_path, "crashed")
    *lines, last = file.read_bytes().splitlines(keepends=True)
    # A character of several bytes may be cut as well.
    cut = last[: int(len(last) * kept)] + "č".encode()[:1]
    file.write_bytes(b"".join([*lines, cut]))

    done = invoke("report", str(file), "-o", str(tmp_path / "p.html"))

    assert done.exit_code == 0
    assert done.stdout.strip() == f"{tmp_path / 'p.html'}: 11 records"
    assert "1 lines that are no results" in done.stderr
    assert "11</b> records" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_strict_reading_stops_at_that_line_and_does_not_quote_it(tmp_path: Path) -> None:
    file = results(tmp_path, "torn", extra=['{"secret": 1}'])

    done = invoke("report", str(file), "-o", str(tmp_path / "p.html"), "--strict")

    assert isinstance(done.exception, ConfigError)
    assert "line 13, is no result" in str(done.exception)
    assert "secret" not in str(done.exception)


def test_of_ragcheckers_results_what_is_broken_is_skipped_and_what_is_not_done_is_pending(
    tmp_path: Path,
) -> None:
    path = tmp_path / "half.json"
    done = [
        RagResult.of(row.record, Recorded(), row.evaluation).model_dump(mode="json")
        for row in many_rows(12)
    ]
    rest = {"query_id": "x", "query": "Later?", "gt_answer": "t", "response": "r"}
    members: list[Mapping[str, object]] = [*done, {**rest, "retrieved_context": []}, {"query": 1}]
    path.write_text(json.dumps({"results": members}), encoding="utf-8")

    told = invoke("report", str(path), "-o", str(tmp_path / "page.md"), "--json")

    figures = json.loads(told.stdout)
    assert (figures["entries"], figures["skipped"]) == (13, {"line_not_result": 1})
    assert "12 evaluated, 1 pending" in (tmp_path / "page.md").read_text(encoding="utf-8")
    strict = invoke("report", str(path), "-o", str(tmp_path / "page.md"), "--strict")
    assert isinstance(strict.exception, ConfigError)


def test_a_pipe_is_refused_before_a_part_of_it_is_lost(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    done = invoke("report", str(pipe), "-o", str(tmp_path / "page.html"))

    assert isinstance(done.exception, ConfigError)
    assert "read once only" in str(done.exception)


def test_a_file_that_is_given_twice_is_refused(tmp_path: Path) -> None:
    file = str(results(tmp_path, "base"))

    done = invoke("report", file, file)

    assert isinstance(done.exception, ConfigError)
    assert "given twice" in str(done.exception)


def test_systems_without_a_common_record_are_refused(tmp_path: Path) -> None:
    done = invoke(
        "report",
        str(results(tmp_path, "base")),
        str(traces(tmp_path, {})),
        "-o",
        str(tmp_path / "p.html"),
    )

    assert isinstance(done.exception, ConfigError)
    assert "no record in common" in str(done.exception)
    assert not (tmp_path / "p.html").exists()


@pytest.mark.parametrize("metadata", [{}, {"tenant": "acme", "session_id": "s1"}])
def test_what_the_application_attached_is_there_to_slice_by(
    tmp_path: Path, metadata: dict[str, str]
) -> None:
    (entry,) = read_trace_file(traces(tmp_path, metadata))

    wanted = {"tenant": "acme", "session.id": "s1"} if metadata else {}
    assert wanted.items() <= entry.metadata.items()


def test_of_30_chunks_the_page_shows_20_and_those_that_decide_and_says_that_there_are_more(
    tmp_path: Path,
) -> None:
    page = tmp_path / "p.html"

    run("report", str(traces(tmp_path, {}, chunks=30)), "-o", str(page))

    text = page.read_text(encoding="utf-8")
    assert text.count('<article class="chunk') == 25  # every second one says what the answer says
    assert "25 of 30 retrieved" in text
    assert "5 more chunks were retrieved" in text


# --- links to traces ---


def test_a_record_of_a_trace_file_links_to_its_trace_by_both_ids(tmp_path: Path) -> None:
    file, page = traces(tmp_path, {}), tmp_path / "p.html"
    (entry,) = read_trace_file(file)

    run("report", str(file), "-o", str(page), "--trace-url", "http://t/{trace_id}?s={span_id}")

    address = f"http://t/{entry.trace_id}?s={entry.span_id}"
    assert re.fullmatch(r"http://t/[0-9a-f]{32}\?s=[0-9a-f]{16}", address)
    assert f'<a href="{address}" target="_blank" rel="noopener"' in page.read_text("utf-8")


@pytest.mark.parametrize("ending", ["md", "json"])
def test_other_formats_have_the_address_as_well(tmp_path: Path, ending: str) -> None:
    file, output = traces(tmp_path, {}), tmp_path / f"p.{ending}"
    (entry,) = read_trace_file(file)

    run("report", str(file), "-o", str(output), "--trace-url", "http://t/{trace_id}")

    assert f"http://t/{entry.trace_id}" in output.read_text("utf-8")


@pytest.mark.parametrize("ending", ["html", "md"])
def test_results_of_evaluate_have_no_trace_to_link_to(tmp_path: Path, ending: str) -> None:
    output = tmp_path / f"p.{ending}"

    run("report", str(results(tmp_path, "base")), "-o", str(output), "--trace-url", URL)

    assert "localhost:6006" not in output.read_text("utf-8")


def test_a_bad_template_is_refused_before_a_file_is_read(tmp_path: Path) -> None:
    # A file that is not there would be refused as well, if it were looked for.
    done = invoke("report", str(tmp_path / "absent.jsonl"), "--trace-url", "http://t/{trace}")

    assert isinstance(done.exception, ConfigError)
    assert "give an http or https address" in str(done.exception)
