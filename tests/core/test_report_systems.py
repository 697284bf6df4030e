"""A report on results: slices, systems side by side, Markdown, JSON, and pages of many records."""

from __future__ import annotations

import base64
import gzip
import json
import re
import sys
from pathlib import Path
from typing import Final

import pytest

from claimspan import Chunk, Label
from claimspan.errors import FileError, NoRecordsError
from claimspan.report import (
    ReportClaim,
    ReportEntry,
    ReportSystem,
    TraceLinks,
    compare_entries,
    outline,
    render_comparison,
    render_markdown,
    render_report,
)
from claimspan.report.evaluated import holds_results, read_results
from claimspan.report.figures import MAX_VALUES, slice_keys, slices_of
from claimspan.report.page import PAGE_SIZE, index_of, side_by_side, worst_first

from many_entries import many_entries, many_rows
from shown_records import parts_of_chunk

EVIL: Final = "</script><img src=//x onerror=a()>|`*[b](http://c)*`\u202e\n# h"


def entry(**fields: object) -> ReportEntry:
    defaults = {"query": "q", "response": "r", "status": "evaluated"}
    return ReportEntry.model_validate(defaults | fields)


def systems(n: int = 30) -> list[ReportSystem]:
    return [
        ReportSystem("plain", tuple(many_entries(n))),
        ReportSystem("tuned", tuple(many_entries(n, skill=4))),
    ]


def blocks(page: str) -> list[list[str]]:
    """The rows that are packed in a page, block by block."""
    packed = re.findall(r'class="block">([\w+/=]+)<', page)
    return [json.loads(gzip.decompress(base64.b64decode(block))) for block in packed]


def index(page: str) -> dict[str, list[object]]:
    (found,) = re.findall(r'id="index">(.*?)</script>', page)
    parsed: dict[str, list[object]] = json.loads(found)
    return parsed


# --- results ---


def results_file(tmp_path: Path, *extra: str) -> Path:
    path = tmp_path / "results.jsonl"
    lines = [row.model_dump_json() for row in many_rows(4)]
    path.write_text("\n".join([*lines, *extra]), encoding="utf-8")
    return path


def test_results_are_read_with_all_that_the_page_shows(tmp_path: Path) -> None:
    path = results_file(tmp_path)

    assert holds_results(path)
    read = read_results(path)

    assert [each.record_id for each in read] == ["q0", "q1", "q2", "q3"]
    made = many_entries(4)
    left_out = {"trace_id", "started", "seconds"}  # of a trace
    assert [e.model_dump(exclude=left_out) for e in read] == [
        e.model_dump(exclude=left_out) for e in made
    ]


def test_a_line_that_is_no_result_is_skipped_by_its_number(tmp_path: Path) -> None:
    path = results_file(tmp_path, '{"secret": 1}', '{"torn')
    skipped: list[int] = []

    assert len(read_results(path, skip=skipped.append)) == 4
    assert skipped == [5, 6]


def test_without_anything_to_skip_to_a_broken_line_is_named_and_not_quoted(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="line 5 is no result") as raised:
        read_results(results_file(tmp_path, '{"secret": 1}'))
    assert "secret" not in str(raised.value)


def test_a_file_without_results_is_none(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text('{"resourceSpans": []}\n')

    assert not holds_results(path)
    assert not holds_results(tmp_path / "missing")
    with pytest.raises(NoRecordsError):
        read_results(path, skip=lambda _: None)


def test_a_byte_order_mark_and_crlf_are_no_damage(tmp_path: Path) -> None:
    path = results_file(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))

    assert holds_results(path)
    assert len(read_results(path)) == 4


# --- slices ---


def test_a_question_keeps_its_slice_where_one_system_lacks_the_metadata() -> None:
    bare, full = [entry(query=q, record_id=q) for q in "abcd"], "xyxy"
    other = [e.model_copy(update={"metadata": {"k": v}}) for e, v in zip(bare, full, strict=True)]
    pair = [ReportSystem("bare", tuple(bare)), ReportSystem("full", tuple(other))]
    (key,) = slice_keys([*bare, *other])

    found = index_of(side_by_side(pair, "f1"), [], [key])

    assert found["values"] == [[0], [1], [0], [1]]


def test_metadata_that_is_no_text_is_shown_as_the_json_that_it_was() -> None:
    page = render_report([entry(metadata={"tags": ["a", None], "ok": True, "text": "x"})])

    assert all(f"<span>{told}</span>" in page for told in ("ok: true", "text: x"))
    assert "tags: [&#34;a&#34;, null]" in page


def test_a_key_that_tells_single_records_apart_is_not_offered() -> None:
    answers = [entry(metadata={"id": f"q{i}", "kind": i % 3}) for i in range(8)]

    assert [key.name for key in slice_keys(answers)] == ["kind"]
    assert [key.name for key in slice_keys([*answers, *answers], n_systems=2)] == ["kind"]


def test_keys_with_one_or_many_values_are_not_offered() -> None:
    many = [
        entry(metadata={"same": 1, "id": i, "kind": i % 2, "list": [i % 2], "ok": i % 2 == 0})
        for i in range(MAX_VALUES + 1)
    ]

    assert {key.name: key.values for key in slice_keys(many)} == {
        "kind": ("0", "1"),
        "ok": ("no", "yes"),
    }


def test_values_are_ordered_as_numbers_where_they_are() -> None:
    (key,) = slice_keys([entry(metadata={"k": value}) for value in (10, 9, "x", 1.5) * 2])

    assert key.values == ("1.5", "9", "10", "x")


def test_the_mean_of_a_slice_is_over_its_records_that_have_a_value() -> None:
    scored = [("a", 0.0), ("a", 1.0), ("b", 0.25)]
    entries = [entry(metadata={"k": value}, scores={"f1": f1}) for value, f1 in scored]
    entries.append(entry(metadata={"k": "a"}))
    (key,) = slice_keys(entries)

    first, second = slices_of(entries, key, ["f1"])

    assert (first.records, first.scores["f1"].mean, first.scores["f1"].n) == (3, 0.5, 2)
    low, high = first.scores["f1"].low, first.scores["f1"].high
    assert low is not None
    assert high is not None
    assert low <= 0.5 <= high
    # One value has a mean, and no interval: it would have no width, as if it were certain.
    assert (second.scores["f1"].mean, second.scores["f1"].low) == (0.25, None)


def test_without_scipy_a_slice_has_its_mean_and_the_page_says_what_gives_intervals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entries = many_entries(12)
    assert "install claimspan[stats]" not in render_report(entries)
    monkeypatch.setitem(sys.modules, "numpy", None)

    slices = slices_of(entries, slice_keys(entries)[0], ["f1"])

    assert {(each.scores["f1"].n, each.scores["f1"].low) for each in slices} == {(4, None)}
    assert "install claimspan[stats]" in render_report(entries)


def test_every_record_of_a_page_knows_its_slices() -> None:
    page = render_report(many_entries(10))
    keys = slice_keys(many_entries(10))

    assert [key.name for key in keys] == ["level", "topic"]
    for row, found in zip(index(page)["values"], worst_first(many_entries(10)), strict=True):
        metadata = found.answered[0].metadata
        assert row == [key.values.index(str(metadata[key.name])) for key in keys]


# --- the deciding sentence ---


def test_the_closest_sentence_of_a_chunk_is_marked_for_the_claim() -> None:
    text = "Rome is old. It was founded in 753 BC. Others say 754 BC."
    found = parts_of_chunk(text, supports=["Rome was founded in 753 BC"])

    assert [(part.text, part.keys, part.label) for part in found] == [
        ("Rome is old. ", (), None),
        ("It was founded in 753 BC.", ("r0",), Label.ENTAILED),
        (" Others say 754 BC.", (), None),
    ]


def test_a_sentence_that_contradicts_one_of_its_claims_is_shown_so() -> None:
    (part,) = parts_of_chunk(
        "Rome is old.", supports=["Rome is old"], contradicts=["Rome is not old"]
    )

    assert (part.keys, part.label) == (("r0", "r1"), Label.CONTRADICTED)


def test_a_claim_without_a_close_sentence_marks_nothing() -> None:
    parts = parts_of_chunk("Rome is old.", supports=["Bananas are yellow"])

    assert [part.label for part in parts] == [None]


@pytest.mark.parametrize(
    "text", ["", " \n ", "| a | b |\n|---|---|\n| 1 | a |", "船は船。船が来た。"]
)
def test_the_parts_of_a_chunk_are_the_whole_chunk(text: str) -> None:
    parts = parts_of_chunk(text, supports=["船が来た a"])

    assert "".join(part.text for part in parts) == text


def test_the_page_calls_the_sentence_the_closest_one() -> None:
    claim = ReportClaim(text="Rome is old", label=Label.ENTAILED, supported_by=("a",))
    chunk = Chunk(id="a", text="Rome is old. It is big.")
    page = render_report([entry(chunks=(chunk,), response_claims=(claim,))])

    assert re.search(
        r'<mark class="closest entailed" data-id="r0" title="Closest[^>]*>Rome is', page
    )


# --- many records ---


def test_a_page_holds_elements_for_its_first_records_alone() -> None:
    page = render_report(many_entries(PAGE_SIZE * 2 + 3))

    assert page.count('<details class="record"') == PAGE_SIZE
    assert [len(block) for block in blocks(page)] == [PAGE_SIZE, 3]
    assert len(index(page)["statuses"]) == PAGE_SIZE * 2 + 3
    assert f"the first {PAGE_SIZE} of {PAGE_SIZE * 2 + 3} records" in page  # without a script


def test_a_packed_record_is_what_it_would_be_on_the_first_page() -> None:
    entries = many_entries(PAGE_SIZE + 1)
    last = worst_first(entries)[-1].answered[0]

    ((packed,),) = blocks(render_report(entries))
    alone = render_report([last])

    body = packed.replace(f'"e{PAGE_SIZE}', '"e0').replace(f'"#e{PAGE_SIZE}', '"#e0')
    assert body in alone


def test_text_of_a_packed_record_is_never_markup() -> None:
    chunk = Chunk(id=EVIL, text=EVIL, metadata={EVIL: EVIL})
    claim = ReportClaim(text=EVIL, label=Label.ENTAILED, supported_by=(EVIL,))
    evil = entry(
        query=EVIL,
        response=EVIL,
        record_id=EVIL,
        chunks=(chunk,),
        response_claims=(claim,),
        metadata={EVIL: EVIL},
    )
    page = render_report([*many_entries(PAGE_SIZE), evil, evil])

    (block,) = blocks(page)
    assert all("<img" not in row and "\u202e" not in row for row in block)
    assert all(row.count("&lt;img") > 5 for row in block)
    assert "<img" not in page


def test_names_in_the_index_are_those_that_the_page_shows() -> None:
    page = render_report([entry(status=EVIL, scores={EVIL: 1.0})])

    assert "</script>" not in json.dumps(index(page)).replace("</", "<\\/")
    assert "<U+202E>" in str(index(page)["statuses"])
    assert "\u202e" not in page


# --- several systems ---


def test_questions_of_several_systems_come_where_they_differ_most() -> None:
    def scored(query: str, f1: float) -> ReportEntry:
        return entry(query=query, scores={"f1": f1})

    first = ReportSystem("a", (scored("same", 0.5), scored("far", 0.0), scored("near", 0.4)))
    second = ReportSystem("b", (scored("far", 1.0), scored("near", 0.5), scored("same", 0.5)))
    alone = ReportSystem("c", (scored("alone", 0.1),))

    found = side_by_side([first, second, alone], "f1")

    assert [question.query for question in found] == ["far", "near", "same", "alone"]
    assert [bool(answer) for answer in found[-1].entries] == [False, False, True]


def test_a_question_asked_twice_is_paired_in_turn() -> None:
    twice = tuple(entry(response=response) for response in ("one", "two"))
    found = side_by_side([ReportSystem("a", twice), ReportSystem("b", twice)], "f1")

    assert [[e.response for e in question.answered] for question in found] == [
        ["one", "one"],
        ["two", "two"],
    ]


def test_the_page_of_two_systems_says_what_differs_and_how_surely() -> None:
    both = systems()
    comparison = compare_entries(both, progress=False)

    page = render_comparison(both, comparison, title="plain vs tuned")

    f1 = comparison.systems[1].metrics["f1"].difference
    assert f1 is not None
    assert f1.finding == "better"
    assert f"better than plain: {f1.difference.value:+.3f}" in page
    assert "no difference to plain shown" in page
    assert page.count('<article class="body answer">') == 2 * 30
    assert ">contradicted by chunks ↓</th>" in page


def test_ids_stay_unique_with_several_systems() -> None:
    both = systems(5)
    page = render_comparison(both, compare_entries(both, progress=False))

    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {"e0", "e0s0", "e0s1"} <= set(ids)


def test_a_system_that_was_not_asked_is_shown_so() -> None:
    first, second = systems(6)
    fewer = ReportSystem(second.name, second.entries[:-1])

    page = render_comparison([first, fewer], compare_entries([first, fewer], progress=False))

    assert page.count("This system was not asked.") == 1


def test_records_of_later_pages_link_to_their_traces_too() -> None:
    page = render_report(many_entries(PAGE_SIZE + 1), links=TraceLinks("http://t/{trace_id}"))

    assert page.count('href="http://t/') == PAGE_SIZE
    assert [row.count('href="http://t/') for block in blocks(page) for row in block] == [1]


# --- Markdown and JSON ---


def test_markdown_has_means_slices_and_the_worst_answers_with_their_diagnosis() -> None:
    (first, _) = systems(20)
    report = outline([ReportSystem("", first.entries)], title="Nightly", worst=3)

    text = render_markdown(report)

    mean = sum(e.scores["f1"] for e in first.entries if "f1" in e.scores) / 20
    assert re.search(rf"^\| f1 \| {mean:.3f} \| \d\.\d+ to \d\.\d+ \| 20 \|$", text, re.MULTILINE)
    assert "### By level" in text
    assert len(re.findall(r"^\d+\. \*\*", text, re.MULTILINE)) == 3
    assert report.worst[0].answers[0].diagnosis[0] in text


def test_markdown_of_two_systems_has_a_column_a_metric_and_what_differs() -> None:
    both = systems()
    report = outline(both, compare_entries(both, progress=False), worst=2)

    text = render_markdown(report)

    assert "| system | faithfulness | contradicted_by_chunks ↓ | precision |" in text
    assert "- tuned, f1: better than plain: +" in text
    assert "## Where the answers differ most" in text


def test_text_of_a_record_is_no_markup_in_markdown() -> None:
    evil = entry(query=EVIL, response=EVIL, scores={"f1": 0.0}, metadata={EVIL: EVIL})
    other = entry(metadata={EVIL: "b"}, scores={"f1": 1.0})

    text = render_markdown(outline([ReportSystem("", (evil, other))], title=EVIL))

    assert "\u202e" not in text
    # Every mark of the text stands behind a backslash.
    assert not re.search(r"(?<!\\)<img|(?<!\\)\[b|(?<!\\)`|\n# h", text)
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {4, 5}


def test_json_of_a_report_is_read_back_as_it_was() -> None:
    both = systems(12)
    report = outline(both, compare_entries(both, progress=False), worst=5)

    assert type(report).model_validate_json(report.model_dump_json()) == report
    assert len(report.worst) == 5
    assert sum(report.systems[0].labels.values()) == report.systems[0].records == 12
    assert sum(report.systems[0].parts.values()) == report.systems[0].labels["low"]


def test_an_empty_report_is_markdown_too() -> None:
    assert "0 records" in render_markdown(outline([ReportSystem("", ())]))
