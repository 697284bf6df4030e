"""Records come in the tables, files, names and chunks that people have; no loss is silent."""

from __future__ import annotations

import json
import re
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claimspan import Chunk, RagRecord, evaluate, evaluate_many
from claimspan.errors import ConfigError, FileError, MissingExtraError
from claimspan.evaluation.evaluate import records_of
from claimspan.files import read_records
from claimspan.files.chunks import chunks_of, value_in
from claimspan.files.names import NAMES, accepted_names
from claimspan.files.raw_rows import SkippedRow
from claimspan.files.record_files import RecordFile

from command_line import invoke, run
from scripted import ScriptedJudge

pa: Any = import_module("pyarrow")  # has no types
ipc: Any = import_module("pyarrow.ipc")
parquet: Any = import_module("pyarrow.parquet")

FACT: Final = "The Drava is 725 km long."
SECRET: Final = "only in the file, and in no message"  # noqa: S105 - content
ROW: Final[Mapping[str, object]] = {
    "question": "How long is the Drava?",
    "answer": FACT,
    "contexts": [FACT, 'It\'s a "river".'],
    "ground_truth": "725 km.",
}
RECORD: Final = RagRecord(
    query="How long is the Drava?",
    response=FACT,
    chunks=chunks_of([FACT, 'It\'s a "river".']),
    ground_truth="725 km.",
)
EVALUATION: Final = Path(__file__).parents[2] / "docs" / "evaluation.md"


def lines(path: Path, *rows: Mapping[str, object]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def frame(n: int = 1) -> pd.DataFrame:
    return pd.DataFrame([dict(ROW)] * n)


def arrow_stream(path: Path) -> None:
    table = pa.Table.from_pylist([dict(ROW)])
    with ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)


WRITERS: Final[Mapping[str, Callable[[Path], object]]] = {
    "table.csv": lambda path: frame().to_csv(path, index=False),
    "arrays.csv": lambda path: (
        frame().assign(contexts=pd.Series([np.array(ROW["contexts"])])).to_csv(path, index=False)
    ),
    "upper.csv": lambda path: (
        frame()
        .rename(columns={"question": "Question", "ground_truth": "Ground Truth"})
        .to_csv(path, index=False)
    ),
    "index.csv": lambda path: frame().to_csv(path),
    "lines.jsonl": lambda path: frame().to_json(path, orient="records", lines=True),
    "table.parquet": lambda path: frame().to_parquet(path),
    "any name": lambda path: frame().to_parquet(path),
    "table.feather": lambda path: frame().to_feather(path),
    "data-00000-of-00001.arrow": arrow_stream,
}


# --- files ---


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_pandas_or_pyarrow_has_written_holds_the_record(
    tmp_path: Path, name: str
) -> None:
    WRITERS[name](tmp_path / name)

    assert read_records(tmp_path / name) == [RECORD]
    assert "1 of 1 records evaluated" in run(
        "evaluate", str(tmp_path / name), "--judge", "lexical", "--no-progress"
    )


def test_parquet_of_many_batches_is_read_in_order(tmp_path: Path) -> None:
    path = tmp_path / "many.parquet"
    frame(1_000).assign(id=range(1_000)).to_parquet(path, row_group_size=300)

    assert [record.id for record in read_records(path)] == [str(i) for i in range(1_000)]


def test_a_large_parquet_is_not_held_in_memory(tmp_path: Path) -> None:
    rows = [{**ROW, "contexts": [f"{i} " * 3_000]} for i in range(2_000)]
    path = tmp_path / "large.parquet"
    pd.DataFrame(rows).to_parquet(path, row_group_size=100, compression=None)

    tracemalloc.start()
    try:
        n_records = sum(1 for _ in RecordFile(path).records())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert n_records == 2_000
    assert peak < path.stat().st_size / 4


def test_without_pyarrow_a_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame().to_parquet(tmp_path / "table.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    error = invoke("evaluate", str(tmp_path / "table.parquet")).exception

    assert isinstance(error, MissingExtraError)
    assert str(error) == "'pyarrow' is not installed: pip install 'claimspan[pandas]'"


@pytest.mark.parametrize("name", ["table.parquet", "table.feather", "stream.arrow"])
def test_a_damaged_table_is_named_and_not_quoted(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS.get(name, arrow_stream)(path)
    path.write_bytes(path.read_bytes()[:60])

    with pytest.raises(FileError, match="is damaged behind record 0") as raised:
        read_records(path)

    assert repr(str(path)) in str(raised.value)
    assert FACT not in str(raised.value)


def test_a_row_of_parquet_with_a_broken_text_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    texts = pa.array([b"q0", b"\xff", b"q2"]).view(pa.string())
    parquet.write_table(pa.table({"query": texts, "response": ["r"] * 3}), path)
    rows = list(RecordFile(path).rows())

    assert [isinstance(row, SkippedRow) for row in rows] == [False, True, False]


def test_a_parquet_of_numbers_dates_and_gaps_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    table = frame(2).assign(
        answer=pd.Series([1577, None]), when=pd.Timestamp("2026-01-01"), score=1.5
    )
    table.to_parquet(path)
    skipped = tmp_path / "skipped.jsonl"
    told = invoke("evaluate", str(path), "--judge", "lexical", "--skipped", str(skipped), "--json")
    found = json.loads(told.stdout.splitlines()[-1])

    assert [row.record.response for row in RecordFile(path).records()] == ["1577"]
    assert found["file"]["skipped_by_reason"] == {
        "response is missing": {"count": 1, "first_records": [2]}
    }
    assert found["file"]["not_read"] == ["when", "score"]
    assert len(skipped.read_text().splitlines()) == 1


@pytest.mark.parametrize("cell", ["['a' 'b', 'c']", "['a' ... 'c']", "['a", "['a\\q']", '["a"'])
def test_a_list_that_could_be_two_or_is_cut_off_costs_its_row_alone(
    tmp_path: Path, cell: str
) -> None:
    path = tmp_path / "table.csv"
    pd.DataFrame([{**ROW, "contexts": cell}, ROW]).to_csv(path, index=False)
    rows = list(RecordFile(path).rows())

    (skipped,) = (row for row in rows if isinstance(row, SkippedRow))
    assert skipped.reason == "chunks is not a list of texts or of objects with a text"
    assert len(rows) == 3


def test_a_passage_that_begins_with_a_bracket_is_a_passage() -> None:
    passages = ["[1] The Drava is long.", "[...] The Drava.", "A text."]

    assert [chunks_of(each)[0].text for each in passages] == passages


@given(st.lists(st.text()), st.booleans())
def test_a_list_of_texts_is_read_back_from_what_python_prints(
    texts: list[str], spaced: bool
) -> None:
    printed = repr(texts).replace("', '", "',\n '") if spaced and "'" not in "".join(texts) else ""

    assert value_in(printed or repr(texts)) == texts


@given(st.lists(st.text(min_size=1), min_size=1, max_size=20))
@settings(max_examples=50)
def test_a_list_of_texts_is_read_back_from_what_numpy_prints(texts: list[str]) -> None:
    array = np.array(texts, dtype=object)

    assert value_in(str(array)) == texts


HOSTILE: Final[list[Callable[[int], str]]] = [
    lambda n: "['" + "\\'" * n,
    lambda n: "['" + "\\q'" * n,
    lambda n: "[" + "'a' " * n + "]",
    lambda n: "[" + "' \"" * n,
    lambda n: "[" * n,
    lambda n: "[" + " " * n + "'a'",
    lambda n: "['a'" + " " * n + "x",
]


@pytest.mark.parametrize("make", HOSTILE)
def test_a_printed_list_takes_time_in_proportion_to_its_length(make: Callable[[int], str]) -> None:
    def seconds(n: int) -> float:
        text = make(n)
        best = float("inf")
        for _ in range(3):
            started = time.thread_time()
            value_in(text)
            best = min(best, time.thread_time() - started)
        return best

    # Four times the length: sixteen times the time if each character were looked at for each.
    assert seconds(80_000) < 10 * max(seconds(20_000), 0.001)


# --- names ---


def test_the_documentation_and_the_messages_have_the_names_of_the_one_list(tmp_path: Path) -> None:
    rows = re.findall(r"^\| `(\w+)` \| (`.*`) \|$", EVALUATION.read_text(), re.MULTILINE)
    documented = {field: tuple(re.findall(r"`(\w+)`", names)) for field, names in rows}
    path = lines(tmp_path / "other.jsonl", {"frage": SECRET})

    assert documented == NAMES
    with pytest.raises(ConfigError, match=re.escape(accepted_names())) as raised:
        records_of([{"frage": SECRET}])
    assert SECRET not in str(raised.value)
    assert accepted_names() in str(invoke("evaluate", str(path)).exception)
    assert all(name in accepted_names() for names in NAMES.values() if names[1:] for name in names)


SPELLINGS: Final[list[Callable[[str], str]]] = [
    str,
    str.upper,
    str.title,
    lambda name: name.replace("_", " "),
]


@pytest.mark.parametrize("spell", SPELLINGS)
@pytest.mark.parametrize("field", ["query", "response", "chunks", "ground_truth"])
def test_each_name_is_read_in_any_spelling(field: str, spell: Callable[[str], str]) -> None:
    usual = {"query": "q", "response": "r", "chunks": ["c"], "ground_truth": "g"}
    for name in NAMES[field]:
        row = {spell(name) if key == field else key: value for key, value in usual.items()}
        (record,) = records_of([row])

        assert (record.query, record.response, record.ground_truth) == ("q", "r", "g")
        assert [chunk.text for chunk in record.chunks] == ["c"]


def test_of_two_names_of_a_field_the_first_of_the_list_is_read_and_the_other_is_named(
    tmp_path: Path,
) -> None:
    path = lines(tmp_path / "records.jsonl", {**ROW, "prompt": "Use the context: ...", "extra": 1})
    found = json.loads(run("evaluate", str(path), "--judge", "lexical", "--json").splitlines()[-1])

    assert found["file"]["not_read"] == ["prompt", "extra"]
    assert read_records(path) == [RECORD]
    told = run("evaluate", str(path), "--judge", "lexical", "--no-progress")
    assert "columns that were not read (--map FIELD=COLUMN reads one): prompt, extra" in told


def test_keys_without_end_are_not_all_kept(tmp_path: Path) -> None:
    rows = ({**ROW, f"key {i} {'x' * 100}": 1} for i in range(100))
    path = lines(tmp_path / "records.jsonl", *rows)
    found = json.loads(run("evaluate", str(path), "--judge", "lexical", "--json").splitlines()[-1])

    assert len(found["file"]["not_read"]) == 20
    assert max(map(len, found["file"]["not_read"])) == 60


# --- columns that the user names ---


def test_map_reads_columns_of_any_name(tmp_path: Path) -> None:
    row = {"asked": "q", "said": "r", "my.evidence": [FACT], "reference": "unused"}
    path = lines(tmp_path / "records.jsonl", row)
    maps = ("question=asked", "answer=said", "context=my.evidence", "ground_truth=")
    options = [word for each in maps for word in ("--map", each)]
    columns = {"question": "asked", "answer": "said", "Context": "my.evidence", "reference": None}
    found = json.loads(
        run("evaluate", str(path), *options, "--judge", "lexical", "--json").splitlines()[-1]
    )

    assert found["file"]["not_read"] == ["reference"]
    assert found["file"]["missing"] == {"ground_truth": 1, "id": 1, "metadata": 1}
    (record,) = read_records(path, columns=columns)
    assert record == RagRecord(query="q", response="r", chunks=chunks_of(FACT))
    assert records_of([row], columns) == [record]
    assert evaluate(row, columns=columns, judge=ScriptedJudge()).metrics


def test_a_column_that_is_mapped_is_no_other_field_any_more() -> None:
    # In tables of Phoenix the reference is what was retrieved.
    row = {"input": "q", "output": "r", "reference": FACT}
    (record,) = records_of([row], {"context": "reference"})

    assert ([chunk.text for chunk in record.chunks], record.ground_truth) == ([FACT], None)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["frage=prompt"], "'frage' is no field of a record: give one of query, response, chunks"),
        (["question"], "--map needs FIELD=COLUMN"),
        (["question=a", "query=b"], "--map names one field twice"),
        (["question=asked"], "has no column 'asked': check --map"),
        (["id=number"], "no record has anything in the column 'number', which id is mapped to"),
    ],
)
def test_a_map_that_cannot_be_is_said(tmp_path: Path, options: list[str], told: str) -> None:
    path = lines(tmp_path / "records.jsonl", ROW)
    words = [word for each in options for word in ("--map", each)]
    error = invoke("evaluate", str(path), *words, "--judge", "lexical").exception

    assert isinstance(error, ConfigError)
    assert told in str(error)


@pytest.mark.parametrize(
    "value", [[SECRET + "."], f"{SECRET}.", [{"page_content": f"{SECRET}."}], f"['{SECRET}.']"]
)
def test_a_context_that_would_be_lost_ends_the_run_unless_it_is_asked_for(
    tmp_path: Path, value: object
) -> None:
    row = {"question": "q", "answer": "r", "evidence": value, "model": "gpt-4o", "tags": ["a b"]}
    path = lines(tmp_path / "records.jsonl", row)
    error = invoke("evaluate", str(path), "--judge", "lexical").exception

    assert isinstance(error, ConfigError)
    assert "no record has chunks, and 'evidence' is not read: give --map context=evidence" in str(
        error
    )
    assert SECRET not in str(error)
    with pytest.raises(ConfigError, match="'evidence' is not read"):
        evaluate(row, judge=ScriptedJudge())
    assert evaluate(row, judge=ScriptedJudge(), columns={"context": ""}).response_claims
    told = run("evaluate", str(path), "--judge", "lexical", "--map", "context=", "--no-progress")
    assert "no chunks in 1 of 1 records" in told
    assert "reads one): evidence, model, tags" in told


@pytest.mark.parametrize(
    "more",
    [
        {"model": "gpt-4o-mini", "title": "Annual report of 2022", "tags": ["a b", "c"], "n": 3},
        {"reference": f"{SECRET}.", "expected": f"{SECRET}."},
    ],
)
def test_other_columns_do_not_end_a_run_without_context(more: Mapping[str, object]) -> None:
    assert len(records_of([{"question": "q", "answer": "r", **more}])) == 1


def test_a_record_with_chunks_shows_that_the_context_is_read() -> None:
    rows: list[Mapping[str, object]] = [ROW, {"question": "q", "answer": "r", "evidence": [FACT]}]

    assert len(records_of(rows)) == 2


# --- chunks ---


class Held:
    """A document as a class of a framework has it."""

    def __init__(self, **parts: object) -> None:
        self.__dict__.update(parts)


@pytest.mark.parametrize(
    ("given", "chunk"),
    [
        ("t", Chunk(id=Chunk.content_id("t"), text="t")),
        ({"text": "t", "id": 7}, Chunk(id="7", text="t")),
        ({"content": "t", "meta": {"page": 3}}, Chunk(id="i", text="t", metadata={"page": 3})),
        ({"page_content": "t", "metadata": {}}, Chunk(id="i", text="t")),
        ({"document": {"page_content": "t"}, "score": 0.5}, Chunk(id="i", text="t", score=0.5)),
        ({"document": "t", "score": 0.5}, Chunk(id="i", text="t", score=0.5)),
        ({"node": {"id_": "n", "text": "t"}, "score": 0.5}, Chunk(id="n", text="t", score=0.5)),
        (["t", 0.5], Chunk(id="i", text="t", score=0.5)),
        (({"document": {"text": "t"}}, np.float64(0.5)), Chunk(id="i", text="t", score=0.5)),
        (Held(page_content="t", id=None, metadata={"at": {1}}), Chunk(id="i", text="t")),
        (Held(content="t", id="h", score=0.5, meta={}), Chunk(id="h", text="t", score=0.5)),
        (Chunk(id="mine", text="t"), Chunk(id="mine", text="t")),
    ],
)
def test_a_chunk_is_read_in_every_form(given: object, chunk: Chunk) -> None:
    expected = chunk.model_copy(update={"id": Chunk.content_id("t")}) if chunk.id == "i" else chunk

    assert chunks_of([given]) == (expected,)


@pytest.mark.parametrize(
    "given", [7, [7], [None], [{}], {"document": {"node": {"node": "t"}}}, [["t"]]]
)
def test_what_has_no_text_is_no_chunk(given: object) -> None:
    with pytest.raises(
        ConfigError, match="chunks is not a list of texts or of objects with a text"
    ):
        records_of([{**ROW, "contexts": given}])


# --- values of Python ---


class RowsOnly:
    """Iterates over dicts and has a shape, as a Dataset of Hugging Face: `datasets` is no extra."""

    shape = (2, 4)

    def __iter__(self) -> Iterator[Mapping[str, object]]:
        yield from (dict(ROW), dict(ROW))


def parquet_frame(tmp_path: Path) -> pd.DataFrame:
    frame(2).to_parquet(tmp_path / "table.parquet")
    return pd.read_parquet(tmp_path / "table.parquet")  # lists are arrays of numpy here


def test_many_records_come_in_every_table(tmp_path: Path) -> None:
    frame(2).to_csv(tmp_path / "table.csv", index=False)
    tables: list[Any] = [
        *([ROW, ROW], (RECORD, ROW), (dict(ROW) for _ in range(2)), RowsOnly(), frame(2)),
        *(parquet_frame(tmp_path), pd.read_csv(tmp_path / "table.csv")),
        pa.Table.from_pylist([dict(ROW)] * 2),
    ]
    for table in tables:
        evaluations = evaluate_many(table, judge=ScriptedJudge(), progress=False)

        assert evaluations.records == (RECORD, RECORD)
        assert all(each.metrics for each in evaluations)


def test_what_a_frame_has_in_place_of_a_value_is_absent() -> None:
    gaps = [None, float("nan"), pd.NA, pd.NaT, np.float64("nan")]
    table = pd.DataFrame({"question": "q", "answer": [0, 1.5, True, 1577.0, np.int64(3)]}).assign(
        ground_truth=pd.Series(gaps, dtype=object)
    )
    records = records_of(table)

    assert [record.ground_truth for record in records] == [None] * 5
    assert [record.response for record in records] == ["0", "1.5", "true", "1577", "3"]


def test_rows_that_are_no_records_are_counted_before_a_judge_is_asked() -> None:
    judge = ScriptedJudge()
    rows: list[Mapping[str, object]] = [
        *(ROW, {"question": SECRET}, {"question": "q", "answer": {"text": SECRET}}),
    ]

    with pytest.raises(ConfigError, match=r"record 2 of 3: response is missing \(2 of 3") as raised:
        evaluate_many(rows, judge=judge)

    assert SECRET not in str(raised.value)
    assert not judge.extractions


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (dict(ROW), "records are of type dict: give a list of records or dicts"),
        ("records.jsonl", "records are of type str: give a list of records or dicts"),
        (RECORD, "records are of type RagRecord: give a list"),
        (7, "records are of type int: give a list"),
        ([7], "a record is of type int: give RagRecord"),
    ],
)
def test_what_is_no_table_is_said(given: Any, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        evaluate_many(given, judge=ScriptedJudge())
