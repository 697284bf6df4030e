"""Where ground truths are read from, how one is found, and what a broken source says."""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from claimspan import GroundTruth
from claimspan.errors import ClaimspanError, ConfigError, FileError, GroundTruthError
from claimspan.files.ground_truth import GroundTruthMatch, Lookup
from claimspan.files.ground_truth_similarity import normalise

QUESTION: Final = "Where is the Eiffel Tower?"
PRIVATE: Final = "swordfish"


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    rows = [
        {"id": "q1", "query": QUESTION, "ground_truth": "In Paris."},
        {"id": 2, "question": "Where is Big Ben?", "answer": "In London."},
    ]
    path = tmp_path / "truths.jsonl"
    path.write_text("\n\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def found(
    truths: GroundTruth, query: str, metadata: Mapping[str, object] | None = None
) -> str | None:
    """The text that is found, whatever it was found by."""
    match = asyncio.run(truths.find(query, metadata))
    return None if match is None else match.text


# --- sources ---


def test_json_lines_are_read_and_blank_lines_skipped(jsonl: Path) -> None:
    truths = GroundTruth(jsonl)

    assert len(truths) == 2
    assert found(truths, QUESTION) == "In Paris."
    assert found(truths, "Where is Big Ben?") == "In London."


def test_a_file_without_a_ground_truth_is_told_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "truths.jsonl"
    path.write_text("\n")

    assert len(GroundTruth(path)) == 0
    (line,) = caplog.messages
    assert "truths.jsonl' holds no ground truth: metrics that need one are not written" in line


def test_a_path_may_be_a_string(jsonl: Path) -> None:
    assert found(GroundTruth(str(jsonl)), QUESTION) == "In Paris."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_csv_is_read_with_and_without_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "truths.CSV"
    text = 'query,ground_truth,id\r\n"Où est la tour, au juste ?","À Paris,\r\nen France.",7\r\n'
    path.write_bytes(text.encode(encoding))

    truths = GroundTruth(path)

    assert len(truths) == 1
    assert found(truths, "Où est la tour, au juste ?") == "À Paris,\r\nen France."
    assert found(truths, "", {"id": 7}) == "À Paris,\r\nen France."


def test_json_lines_are_read_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "truths.jsonl"
    path.write_bytes('{"query": "q", "answer": "é"}'.encode("utf-8-sig"))

    assert found(GroundTruth(path), "q") == "é"


@pytest.mark.parametrize("query", ["query", "question", "input"])
@pytest.mark.parametrize(
    "answer", ["ground_truth", "gt_answer", "ground_truth_answer", "reference", "answer"]
)
def test_every_name_of_the_fields_is_known(tmp_path: Path, query: str, answer: str) -> None:
    path = write(tmp_path / "truths.jsonl", json.dumps({query: QUESTION, answer: "In Paris."}))

    assert found(GroundTruth(path), QUESTION) == "In Paris."


def test_a_mapping_is_found_by_query_and_by_id() -> None:
    truths = GroundTruth({QUESTION: "In Paris.", "q2": "In London."})

    assert len(truths) == 2
    assert found(truths, QUESTION) == "In Paris."
    assert found(truths, "anything", {"query_id": "q2"}) == "In London."


def test_a_callable_is_asked_with_query_and_metadata() -> None:
    asked: list[tuple[str, Mapping[str, object]]] = []

    def lookup(query: str, metadata: Mapping[str, object]) -> str | None:
        asked.append((query, metadata))
        return "In Paris." if metadata else None

    truths = GroundTruth(lookup)

    assert found(truths, QUESTION, {"tenant": 3}) == "In Paris."
    assert found(truths, "unknown") is None
    assert asked == [(QUESTION, {"tenant": 3}), ("unknown", {})]
    assert len(truths) == 0


def test_what_a_callable_raises_reaches_the_caller() -> None:
    def lookup(query: str, metadata: Mapping[str, object]) -> str | None:
        raise LookupError(query)

    with pytest.raises(LookupError):
        asyncio.run(GroundTruth(lookup).find(QUESTION))


class AsyncStore:
    """A look-up that is asynchronous, though it is an object and no function."""

    async def __call__(self, query: str, metadata: Mapping[str, object]) -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name


async def async_lookup(query: str, metadata: Mapping[str, object], *, suffix: str = "") -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name + suffix


ASYNC_LOOKUPS: Final[dict[str, Lookup]] = {
    "function": async_lookup,
    "partial": functools.partial(async_lookup, suffix=""),
    "object": AsyncStore(),
    "method": AsyncStore().__call__,
}


@pytest.mark.parametrize("name", ASYNC_LOOKUPS)
async def test_an_asynchronous_callable_is_awaited_on_the_running_loop(name: str) -> None:
    async def never(call: object, query: str, metadata: Mapping[str, object], /) -> object:
        raise AssertionError("an asynchronous look-up blocks nobody")

    match = await GroundTruth(ASYNC_LOOKUPS[name]).find(QUESTION, run_blocking=never)

    assert match is not None
    assert match.text == threading.current_thread().name


async def test_a_synchronous_callable_that_returns_a_coroutine_is_awaited() -> None:
    truths = GroundTruth(lambda query, metadata: async_lookup(query, metadata, suffix="!"))

    match = await truths.find(QUESTION)

    assert match is not None
    assert match.text == threading.current_thread().name + "!"


async def test_a_synchronous_callable_does_not_block_the_loop() -> None:
    release = threading.Event()

    def lookup(query: str, metadata: Mapping[str, object]) -> str | None:
        return threading.current_thread().name if release.wait(timeout=10) else None

    asked = asyncio.create_task(GroundTruth(lookup).find(QUESTION))
    await asyncio.sleep(0.01)
    release.set()

    match = await asked
    assert match is not None
    assert match.text != threading.current_thread().name


async def test_the_caller_decides_where_a_synchronous_callable_runs() -> None:
    ran: list[tuple[object, str, Mapping[str, object]]] = []

    def lookup(query: str, metadata: Mapping[str, object]) -> str:
        raise AssertionError("only the runner calls it")

    async def runner(call: object, query: str, metadata: Mapping[str, object], /) -> object:
        ran.append((call, query, metadata))
        return "In Paris."

    match = await GroundTruth(lookup).find(QUESTION, {"tenant": 3}, run_blocking=runner)

    assert match == GroundTruthMatch(text="In Paris.", matched_by="callable")
    assert ran == [(lookup, QUESTION, {"tenant": 3})]


async def test_files_and_mappings_never_leave_the_loop(jsonl: Path) -> None:
    async def never(call: object, query: str, metadata: Mapping[str, object], /) -> object:
        raise AssertionError("nothing here blocks")

    for truths in (GroundTruth(jsonl), GroundTruth({QUESTION: "In Paris."})):
        match = await truths.find(QUESTION, run_blocking=never)
        assert match == GroundTruthMatch(text="In Paris.", matched_by="query")


async def test_a_match_of_the_callable_is_returned_as_it_is() -> None:
    match = GroundTruthMatch(text="In Paris.", matched_by="normalised_query", score=0.9)

    assert await GroundTruth(lambda query, metadata: match).find(QUESTION) is match


@pytest.mark.parametrize("nothing", [None, "", " \n", GroundTruthMatch(text="", matched_by="id")])
async def test_a_callable_that_returns_no_text_has_found_nothing(
    nothing: str | GroundTruthMatch | None,
) -> None:
    assert await GroundTruth(lambda query, metadata: nothing).find(QUESTION) is None


@pytest.mark.parametrize("value", [7, {PRIVATE: PRIVATE}, [PRIVATE], PRIVATE.encode()])
async def test_a_callable_that_returns_another_type_is_told_its_name_only(value: object) -> None:
    truths = GroundTruth(lambda query, metadata: value)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType] - the refusal is what is tested

    with pytest.raises(GroundTruthError, match=f"returned a {type(value).__name__}") as caught:
        await truths.find(QUESTION)

    assert PRIVATE not in str(caught.value)


def test_a_ground_truth_is_taken_as_it_is() -> None:
    truths = GroundTruth({})

    assert GroundTruth.of(truths) is truths
    assert found(GroundTruth.of({QUESTION: "In Paris."}), QUESTION) == "In Paris."


# --- finding ---


@pytest.mark.parametrize("key", ["ground_truth_id", "query_id", "question_id", "id"])
def test_a_truth_is_found_by_each_key_that_may_hold_an_id(jsonl: Path, key: str) -> None:
    truths = GroundTruth(jsonl)

    assert found(truths, "reworded", {key: "q1"}) == "In Paris."
    assert found(truths, "reworded", {key: 2}) == "In London."
    assert found(truths, "reworded", {f"my_{key}": "q1"}) is None


@pytest.mark.parametrize("key", ["ground_truth_id", "query_id", "question_id", "id"])
def test_a_file_may_name_its_ids_in_each_way(tmp_path: Path, key: str) -> None:
    path = write(tmp_path / "truths.jsonl", json.dumps({key: "q9", "answer": "In Rome."}))

    assert found(GroundTruth(path), "no query in the file", {"id": "q9"}) == "In Rome."


@pytest.mark.parametrize(
    "query",
    [
        "where is the eiffel tower",
        "WHERE IS THE EIFFEL TOWER?!",
        "  Where is\tthe\n Eiffel\u00a0Tower ?",
        "Ｗｈｅｒｅ is the Eiffel Ｔｏｗｅｒ？",
        "«Where, is the Eiffel-Tower…»",
    ],
)
def test_case_punctuation_spaces_and_width_do_not_count(query: str) -> None:
    assert found(GroundTruth({QUESTION: "In Paris."}), query) == "In Paris."


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert found(GroundTruth({"Où est-elle ?": "Ici."}), "Ou\u0300 est-elle ?") == "Ici."
    assert normalise("STRASSE") == normalise("Straße")


def test_other_words_are_not_found() -> None:
    truths = GroundTruth({QUESTION: "In Paris."})

    assert found(truths, "Where is the Eiffel Towers?") is None
    assert found(truths, "") is None
    assert found(truths, "Where?", {"id": "unknown"}) is None


def test_an_unknown_id_falls_back_to_the_query() -> None:
    truths = GroundTruth({QUESTION: "In Paris."})

    assert found(truths, QUESTION, {"ground_truth_id": "gone", "id": None}) == "In Paris."


def test_a_more_telling_id_wins_over_a_vaguer_one() -> None:
    truths = GroundTruth({"a": "first", "b": "second"})

    assert found(truths, "", {"id": "b", "ground_truth_id": "a"}) == "first"


def test_the_exact_query_wins_over_the_normalised_one() -> None:
    truths = GroundTruth({"Is it US?": "the country", "is it us": "the pronoun"})

    assert found(truths, "is it us") == "the pronoun"
    assert found(truths, "IS IT US") == "the country"


def test_a_match_says_what_it_was_found_by() -> None:
    truths = GroundTruth({QUESTION: "In Paris.", "q2": "In London."})

    by_id = truths.find_known("", {"id": "q2"})
    by_query = truths.find_known(QUESTION)
    by_normalised = truths.find_known(QUESTION.upper())

    assert by_id == GroundTruthMatch(text="In London.", matched_by="id")
    assert by_query == GroundTruthMatch(text="In Paris.", matched_by="query")
    assert by_normalised == GroundTruthMatch(text="In Paris.", matched_by="normalised_query")


def test_a_callable_knows_nothing_beforehand() -> None:
    def lookup(query: str, metadata: Mapping[str, object]) -> str:
        raise AssertionError("a synchronous search asks no callable")

    assert GroundTruth(lookup).find_known(QUESTION) is None


def test_ground_truths_are_true_also_where_none_is_known_beforehand() -> None:
    assert bool(GroundTruth(lambda query, metadata: None))
    assert bool(GroundTruth({}))


def test_a_blank_ground_truth_is_none() -> None:
    assert found(GroundTruth({QUESTION: " \n"}), QUESTION) is None
    assert len(GroundTruth({QUESTION: ""})) == 0


# --- broken sources ---


def test_an_error_of_a_ground_truth_file_is_an_error_of_a_file() -> None:
    assert issubclass(GroundTruthError, FileError)
    assert issubclass(FileError, ClaimspanError)


def test_a_mapping_to_something_else_than_texts_is_refused() -> None:
    with pytest.raises(ConfigError, match="to a int: give a mapping to texts"):
        GroundTruth({QUESTION: 42})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType] - the refusal is what is tested


def test_a_line_that_is_not_json_is_named_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.jsonl", f'{{"query": "q", "answer": "a"}}\n\n{{"{PRIVATE}')

    with pytest.raises(GroundTruthError, match=r"bad\.jsonl' line 3 is not JSON") as caught:
        GroundTruth(path)

    assert PRIVATE not in str(caught.value)


def test_a_line_that_is_no_object_is_named_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.jsonl", f'["{PRIVATE}"]\n')

    with pytest.raises(GroundTruthError, match="line 1 is not a JSON object") as caught:
        GroundTruth(path)

    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize(
    "row",
    [
        {"query": PRIVATE},
        {"answer": PRIVATE},
        {"query": PRIVATE, "answer": ""},
        {"query": PRIVATE, "answer": None},
        {"prompt": PRIVATE, "completion": PRIVATE},
    ],
    ids=lambda row: "+".join(row),
)
def test_a_row_without_answer_or_query_says_which_fields_are_known(
    tmp_path: Path, row: dict[str, str | None]
) -> None:
    good = {"query": "q", "answer": "a"}
    path = write(tmp_path / "bad.jsonl", f"{json.dumps(good)}\n{json.dumps(row)}")

    with pytest.raises(GroundTruthError, match="line 2 needs a ground truth") as caught:
        GroundTruth(path)

    message = str(caught.value)
    assert "ground_truth, gt_answer" in message
    assert "query, question, input" in message
    assert PRIVATE not in message


def test_wrong_columns_of_a_csv_are_named_by_the_first_line_of_data(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.csv", f"prompt,completion\n{PRIVATE},{PRIVATE}\n")

    with pytest.raises(GroundTruthError, match=r"bad\.csv' line 2 needs a ground truth") as caught:
        GroundTruth(path)

    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize("row", ['"unclosed,a', "q,a,one too many", "alone"])
def test_a_csv_with_a_broken_row_is_refused_and_loses_none(tmp_path: Path, row: str) -> None:
    path = write(tmp_path / "bad.csv", f"query,answer\nq1,a1\n{row}\nq2,a2\n")

    with pytest.raises(GroundTruthError, match=r"bad\.csv' line 3"):
        GroundTruth(path)


def test_a_cell_of_a_csv_may_be_long(tmp_path: Path) -> None:
    path = write(tmp_path / "long.csv", f"query,answer\nq,{'x' * 200_000}\n")

    match = GroundTruth(path).find_known("q")

    assert match is not None
    assert len(match.text) == 200_000


def test_a_field_of_another_type_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.jsonl", json.dumps({"query": "q", "answer": [PRIVATE]}))

    with pytest.raises(
        GroundTruthError, match="line 1: answer is of type list; write a text"
    ) as caught:
        GroundTruth(path)

    assert PRIVATE not in str(caught.value)


@pytest.mark.parametrize(
    ("written", "text"), [("42", "42"), ("3.5", "3.5"), ("true", "true"), ("false", "false")]
)
def test_a_ground_truth_may_be_a_number_or_a_boolean(
    tmp_path: Path, written: str, text: str
) -> None:
    path = write(tmp_path / "golden.jsonl", f'{{"query": "q", "ground_truth": {written}}}')

    match = GroundTruth(path).find_known("q")

    assert match is not None
    assert match.text == text


def test_the_nan_of_a_data_frame_waits_to_be_filled_in(tmp_path: Path) -> None:
    path = write(tmp_path / "golden.jsonl", '{"query": "q", "ground_truth": NaN}')

    assert GroundTruth(path).find_known("q") is None


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(GroundTruthError, match=r"absent\.jsonl' \(FileNotFoundError\)"):
        GroundTruth(tmp_path / "absent.jsonl")


def test_a_folder_is_no_file_of_ground_truths(tmp_path: Path) -> None:
    with pytest.raises(GroundTruthError, match="give an existing JSON-lines or CSV file"):
        GroundTruth(tmp_path)


@pytest.mark.parametrize(
    ("name", "message"),
    [("bad.jsonl", r"\(UnicodeDecodeError\).*in UTF-8"), ("bad.csv", r"line 2: not UTF-8")],
)
def test_a_file_in_another_encoding_is_refused(tmp_path: Path, name: str, message: str) -> None:
    path = tmp_path / name
    path.write_bytes("query,answer\nété,Ête\n".encode("latin-1"))

    with pytest.raises(GroundTruthError, match=message):
        GroundTruth(path)


@pytest.mark.parametrize("source", [42, None, [{"query": PRIVATE}]])
def test_a_source_of_another_type_is_named_by_its_type(source: object) -> None:
    with pytest.raises(ConfigError, match=f"is of type {type(source).__name__}") as caught:
        GroundTruth(source)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - the refusal is what is tested

    assert PRIVATE not in str(caught.value)


def _find(query: str, metadata: Mapping[str, object]) -> str | None:
    return None


async def _find_later(query: str, metadata: Mapping[str, object]) -> str | None:
    return None


@pytest.mark.parametrize(
    ("source", "is_blocking"),
    [({"q": "a"}, False), (_find, True), (_find_later, False)],
)
def test_only_a_synchronous_callable_needs_a_thread(
    source: Mapping[str, str] | Lookup, is_blocking: bool
) -> None:
    assert GroundTruth(source).is_blocking is is_blocking
