"""Where ground truths are read from, how one is found, and what a broken source says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from claimspan import GroundTruth
from claimspan.errors import ConfigError, GroundTruthError
from claimspan.files.ground_truth import normalise

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


# --- sources ---


def test_json_lines_are_read_and_blank_lines_skipped(jsonl: Path) -> None:
    truths = GroundTruth(jsonl)

    assert len(truths) == 2
    assert truths.find(QUESTION) == "In Paris."
    assert truths.find("Where is Big Ben?") == "In London."


def test_a_path_may_be_a_string(jsonl: Path) -> None:
    assert GroundTruth(str(jsonl)).find(QUESTION) == "In Paris."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_csv_is_read_with_and_without_a_byte_order_mark(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "truths.CSV"
    text = 'query,ground_truth,id\r\n"Où est la tour, au juste ?","À Paris,\r\nen France.",7\r\n'
    path.write_bytes(text.encode(encoding))

    truths = GroundTruth(path)

    assert len(truths) == 1
    assert truths.find("Où est la tour, au juste ?") == "À Paris,\r\nen France."
    assert truths.find("", {"id": 7}) == "À Paris,\r\nen France."


def test_json_lines_are_read_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "truths.jsonl"
    path.write_bytes('{"query": "q", "answer": "é"}'.encode("utf-8-sig"))

    assert GroundTruth(path).find("q") == "é"


@pytest.mark.parametrize("query", ["query", "question", "input"])
@pytest.mark.parametrize(
    "answer", ["ground_truth", "gt_answer", "ground_truth_answer", "reference", "answer"]
)
def test_every_name_of_the_fields_is_known(tmp_path: Path, query: str, answer: str) -> None:
    path = write(tmp_path / "truths.jsonl", json.dumps({query: QUESTION, answer: "In Paris."}))

    assert GroundTruth(path).find(QUESTION) == "In Paris."


def test_a_mapping_is_found_by_query_and_by_id() -> None:
    truths = GroundTruth({QUESTION: "In Paris.", "q2": "In London."})

    assert len(truths) == 2
    assert truths.find(QUESTION) == "In Paris."
    assert truths.find("anything", {"query_id": "q2"}) == "In London."


def test_a_callable_is_asked_with_query_and_metadata() -> None:
    asked: list[tuple[str, Mapping[str, object]]] = []

    def lookup(query: str, metadata: Mapping[str, object]) -> str | None:
        asked.append((query, metadata))
        return "In Paris." if metadata else None

    truths = GroundTruth(lookup)

    assert truths.find(QUESTION, {"tenant": 3}) == "In Paris."
    assert truths.find("unknown") is None
    assert asked == [(QUESTION, {"tenant": 3}), ("unknown", {})]
    assert len(truths) == 0


def test_what_a_callable_raises_reaches_the_caller() -> None:
    def lookup(query: str, metadata: Mapping[str, object]) -> str | None:
        raise LookupError(query)

    with pytest.raises(LookupError):
        GroundTruth(lookup).find(QUESTION)


def test_a_ground_truth_is_taken_as_it_is() -> None:
    truths = GroundTruth({})

    assert GroundTruth.of(truths) is truths
    assert GroundTruth.of({QUESTION: "In Paris."}).find(QUESTION) == "In Paris."


# --- finding ---


@pytest.mark.parametrize("key", ["ground_truth_id", "query_id", "question_id", "id"])
def test_a_truth_is_found_by_each_key_that_may_hold_an_id(jsonl: Path, key: str) -> None:
    truths = GroundTruth(jsonl)

    assert truths.find("reworded", {key: "q1"}) == "In Paris."
    assert truths.find("reworded", {key: 2}) == "In London."
    assert truths.find("reworded", {f"my_{key}": "q1"}) is None


@pytest.mark.parametrize("key", ["ground_truth_id", "query_id", "question_id", "id"])
def test_a_file_may_name_its_ids_in_each_way(tmp_path: Path, key: str) -> None:
    path = write(tmp_path / "truths.jsonl", json.dumps({key: "q9", "answer": "In Rome."}))

    assert GroundTruth(path).find("no query in the file", {"id": "q9"}) == "In Rome."


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
    assert GroundTruth({QUESTION: "In Paris."}).find(query) == "In Paris."


def test_composed_and_decomposed_letters_are_the_same() -> None:
    assert GroundTruth({"Où est-elle ?": "Ici."}).find("Ou\u0300 est-elle ?") == "Ici."
    assert normalise("STRASSE") == normalise("Straße")


def test_other_words_are_not_found() -> None:
    truths = GroundTruth({QUESTION: "In Paris."})

    assert truths.find("Where is the Eiffel Towers?") is None
    assert truths.find("") is None
    assert truths.find("Where?", {"id": "unknown"}) is None


def test_an_id_wins_over_the_query() -> None:
    truths = GroundTruth({QUESTION: "In Paris.", "q2": "In London."})

    assert truths.find(QUESTION, {"id": "q2"}) == "In London."


def test_an_unknown_id_falls_back_to_the_query() -> None:
    truths = GroundTruth({QUESTION: "In Paris."})

    assert truths.find(QUESTION, {"ground_truth_id": "gone", "id": None}) == "In Paris."


def test_a_more_telling_id_wins_over_a_vaguer_one() -> None:
    truths = GroundTruth({"a": "first", "b": "second"})

    assert truths.find("", {"id": "b", "ground_truth_id": "a"}) == "first"


def test_the_exact_query_wins_over_the_normalised_one() -> None:
    truths = GroundTruth({"Is it US?": "the country", "is it us": "the pronoun"})

    assert truths.find("is it us") == "the pronoun"
    assert truths.find("IS IT US") == "the country"


# --- broken sources ---


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


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(GroundTruthError, match=r"absent\.jsonl' \(FileNotFoundError\)"):
        GroundTruth(tmp_path / "absent.jsonl")


def test_a_folder_is_no_file_of_ground_truths(tmp_path: Path) -> None:
    with pytest.raises(GroundTruthError, match="give an existing JSON-lines or CSV file"):
        GroundTruth(tmp_path)


@pytest.mark.parametrize("name", ["bad.jsonl", "bad.csv"])
def test_a_file_in_another_encoding_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes("query,answer\nété,Ête\n".encode("latin-1"))

    with pytest.raises(GroundTruthError, match=r"\(UnicodeDecodeError\).*in UTF-8"):
        GroundTruth(path)


@pytest.mark.parametrize("source", [42, None, [{"query": PRIVATE}]])
def test_a_source_of_another_type_is_named_by_its_type(source: object) -> None:
    with pytest.raises(ConfigError, match=f"ground_truth is a {type(source).__name__}") as caught:
        GroundTruth(source)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - the refusal is what is tested

    assert PRIVATE not in str(caught.value)
