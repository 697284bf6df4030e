"""Judging the items of the benchmark, going on with a run, and the file of items."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from collections.abc import Sequence
from pathlib import Path

import pytest

from claimspan import Chunk, Claim, Usage, VerdictMatrix
from claimspan.cost.usage import add_usage
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.testing import ScriptedJudge
from claimspan_bench.context_coverage import (
    CoverageItem,
    JudgedItem,
    ajudge_items,
    judge_items,
    judged_file,
    read_items,
    summarize,
)

from coverage_items import make_item

# --- judging ---


class CountingJudge(ScriptedJudge):
    """Reports a call for each request, as a judge behind an endpoint does."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        add_usage(Usage(calls=1))
        return await super().extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        add_usage(Usage(calls=1))
        return await super().check(claims, references, question=question)


@pytest.mark.parametrize(("batched", "calls"), [(True, 2), (False, 4 * 7 + 1)])
def test_without_batches_the_calls_are_facts_times_chunks_and_one(
    batched: bool, calls: int
) -> None:
    item = make_item()
    judge = CountingJudge()

    judged = judge_items([item], judge, batched=batched)
    result = summarize([item], judged)

    assert (result.calls, result.calls_unbatched) == (calls, 29)
    assert judged[0].verdicts == judge_items([item], ScriptedJudge())[0].verdicts


async def test_a_running_loop_may_use_both_forms() -> None:
    items = [make_item()]

    assert [each.facts for each in await ajudge_items(items, ScriptedJudge())] == [
        each.facts for each in judge_items(items, ScriptedJudge())
    ]


def test_facts_of_the_file_are_not_extracted_and_too_many_are_counted() -> None:
    item = make_item(facts=["alpha", {"text": "beta", "sentence": "beta."}, "gamma"])
    judge = CountingJudge()

    (judged,) = judge_items([item], judge, max_facts=2)

    assert judge.extractions == []
    assert [fact.text for fact in judged.facts or ()] == ["alpha", "beta"]
    assert judged.facts_dropped == 1
    assert summarize([item], [judged]).calls_unbatched == 2 * 7


class FailingJudge(ScriptedJudge):
    """Fails on one text."""

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        if text == "fails":
            raise JudgeError("the endpoint is down")
        return await super().extract_claims(text, question=question)


def test_an_item_that_fails_stops_no_other_and_is_named() -> None:
    items = [make_item(), make_item(id="two", text="fails"), make_item(id="three", text="!!!")]

    result = summarize(items, judge_items(items, FailingJudge()))

    assert [each.id for each in result.items] == ["one"]
    assert result.failed == {
        "two": "the endpoint is down",
        "three": "the text has no facts: give the item facts, or another text",
    }


def test_a_judge_that_returns_no_claims_fails_on_the_item() -> None:
    class Odd(ScriptedJudge):
        async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
            return [text]  # type: ignore[list-item]  # pyright: ignore[reportReturnType] - what is refused

    (judged,) = judge_items([make_item()], Odd())

    assert judged.error is not None
    assert "something else than a list of Claim" in judged.error


async def test_a_judge_that_hangs_is_stopped() -> None:
    (judged,) = await ajudge_items(
        [make_item()], ScriptedJudge(delay_seconds=60), deadline_seconds=0.05
    )

    assert judged.error == "no verdicts within 0.05 s"


def test_numbers_that_cannot_work_are_refused() -> None:
    with pytest.raises(ConfigError, match="max_facts is 0"):
        judge_items([make_item()], ScriptedJudge(), max_facts=0)
    with pytest.raises(ConfigError, match="in one order"):
        summarize([make_item()], [])


# --- going on with a run ---


def test_a_run_goes_on_and_extracts_no_fact_twice(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    items = [make_item(), make_item(id="two")]

    class Broken(ScriptedJudge):
        async def check(self, *_: object, **__: object) -> VerdictMatrix:
            raise JudgeError("gone")

    judge_into(path, items, Broken())
    path.write_text(path.read_text() + '{"torn": ', encoding="utf-8")
    assert sorted(rows_of(path, items)) == [0, 1]

    judge = ScriptedJudge()
    judged = judge_into(path, items, judge)

    assert judge.extractions == []
    assert len(judge.checks) == 2
    assert [each.error for each in judged] == [None, None]
    assert [each.verdicts for each in rows_of(path, items).values()] == [
        each.verdicts for each in judged
    ]
    judge_into(path, items, judge)
    assert len(judge.checks) == 2  # all was there


@pytest.mark.parametrize(("max_facts", "extractions"), [(2, 0), (3, 1), (1, 1)])
async def test_facts_that_another_limit_has_cut_are_extracted_again(
    max_facts: int, extractions: int
) -> None:
    items = [make_item()]
    judge = ScriptedJudge()
    (first,) = await ajudge_items(items, ScriptedJudge(), max_facts=2)

    (second,) = await ajudge_items(items, judge, max_facts=max_facts, known={0: first})

    assert len(judge.extractions) == extractions
    assert (len(second.facts or ()), second.facts_dropped) == (max_facts, 4 - max_facts)


def judge_into(path: Path, items: Sequence[CoverageItem], judge: ScriptedJudge) -> list[JudgedItem]:
    with judged_file(path, items, "scripted 1") as file:
        return asyncio.run(ajudge_items(items, judge, known=file.known, keep=file.add))


def rows_of(path: Path, items: Sequence[CoverageItem]) -> dict[int, JudgedItem]:
    with judged_file(path, items, "scripted 1") as file:
        return file.known


def test_a_file_of_results_may_be_no_fifo_and_needs_its_folder(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(ConfigError, match="FIFO"):
        judged_file(tmp_path / "fifo", [make_item()], "scripted 1")
    with pytest.raises(ConfigError, match="does not exist"):
        judged_file(tmp_path / "absent" / "results.jsonl", [make_item()], "scripted 1")


def test_results_of_other_items_or_of_another_judge_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    items = [make_item()]
    judge_into(path, items, ScriptedJudge())

    with pytest.raises(ConfigError, match="another judge"):
        judged_file(path, items, "lexical 2")
    with pytest.raises(ConfigError, match="the data set has changed"):
        judged_file(path, [make_item(question="Another?")], "scripted 1")
    path.write_text("something else\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 1 is no result"):
        judged_file(path, items, "scripted 1")


# --- the file of items ---


def write(path: Path, *rows: object) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


ROW = {"question": "q", "text": "t", "golden": ["a", {"text": "b", "score": 0.5}], "noisy": ["c"]}


def test_chunks_and_facts_may_be_written_as_bare_texts(tmp_path: Path) -> None:
    file = write(tmp_path / "d.jsonl", ROW, {**ROW, "id": 7, "facts": ["f"]})

    first, second = read_items(file)

    assert (first.id, second.id) == ("1", "7")
    assert [each.text for each in first.chunks] == ["a", "b", "c"]
    assert first.chunks[0].id == Chunk.content_id("a")
    assert first.chunks[1].score == 0.5
    assert second.facts == (Claim(text="f"),)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**ROW, "golden": []}, "golden cannot be used"),
        ({**ROW, "noise": ["x"]}, "noise cannot be used"),
        ({**ROW, "golden": ["c"]}, "two chunks have one id"),
        ({**ROW, "golden": ["a"], "noisy": []}, "one chunk makes no combination"),
        ({**ROW, "gold": [["unknown"]]}, "names an id that no chunk has"),
        ({**ROW, "retrieved": [Chunk.content_id("a")] * 2}, "names a chunk twice"),
        ({"question": "q"}, "text cannot be used"),
        ("text", "is not a JSON object"),
    ],
)
def test_a_line_that_is_no_item_is_named(tmp_path: Path, row: object, message: str) -> None:
    file = write(tmp_path / "d.jsonl", ROW, row)

    with pytest.raises(FileError, match=message) as caught:
        read_items(file)

    assert "line 2" in str(caught.value)


def test_an_empty_file_and_an_id_that_comes_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="contains no items"):
        read_items(write(tmp_path / "empty.jsonl"))
    with pytest.raises(FileError, match="line 2 has the id of another line"):
        read_items(write(tmp_path / "twice.jsonl", {**ROW, "id": "x"}, {**ROW, "id": "x"}))


def keep_all(path: Path, items: Sequence[CoverageItem], judged: Sequence[JudgedItem]) -> None:
    with judged_file(path, items, judged[0].judge) as results:
        for each in judged:
            results.add(each)


def test_a_full_disk_is_said_once_and_what_is_done_stays(tmp_path: Path) -> None:
    items = [make_item(id=str(n)) for n in range(20)]
    judged = judge_items(items, ScriptedJudge())
    path, before = tmp_path / "results.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    # Room for two of the lines, which differ in the digits of their seconds.
    size = 5 * len(judged[0].model_dump_json()) // 2
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        with pytest.raises(FileError, match="make room and run the same command again"):
            keep_all(path, items, judged)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    with judged_file(path, items, judged[0].judge) as results:
        assert len(results.known) == 2
