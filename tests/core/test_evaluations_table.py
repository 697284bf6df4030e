"""`Evaluations`: what `evaluate_many` returns: a sequence, a table, a frame, a Parquet file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pytest

from claimspan import Chunk, Evaluation, Evaluations, RagRecord, aevaluate_many, evaluate_many
from claimspan.errors import ConfigError, MissingExtraError
from claimspan.files import arrow
from claimspan.judges import LexicalJudge
from claimspan.metrics import METRICS
from claimspan.metrics.catalogue import WITHOUT_GROUND_TRUTH
from claimspan.results.rows import ResultRow, write_parquet

from command_line import invoke, run

CHUNK = Chunk(id="a", text="The Drava is 725 km long and rises in Italy.")
RECORDS = [
    RagRecord(
        id="drava",
        query="How long is the Drava?",
        chunks=(CHUNK,),
        response="The Drava is 900 km long. It rises in Italy.",
    ),
    RagRecord(query="How long is the Soča?", chunks=(CHUNK,), response="I do not know."),
]
AROUND = (
    [*("index", "id", "query", "response"), *("label", "reason", "blame")],
    [*("abstained", "claims", "undecided_claims", "judge", "cost_usd", "seconds", "error")],
)


@pytest.fixture(scope="module")
def evaluations() -> Evaluations:
    return evaluate_many(RECORDS, judge=LexicalJudge(), progress=False)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.jsonl"
    path.write_text("".join(f"{record.model_dump_json()}\n" for record in RECORDS))
    return path


def test_the_table_has_one_flat_dict_a_record_with_the_same_keys(evaluations: Evaluations) -> None:
    rows = evaluations.table()
    before, after = AROUND

    assert [list(row) for row in rows] == [[*before, *WITHOUT_GROUND_TRUTH, *after]] * 2
    assert {type(value) for row in rows for value in row.values()} <= {
        *(str, int, float, bool, type(None))
    }
    assert [(row["index"], row["id"]) for row in rows] == [(0, "drava"), (1, None)]
    assert [(row["abstained"], row["claims"]) for row in rows] == [(False, 2), (True, 0)]
    assert rows[0]["faithfulness"] == 0.5
    assert (rows[0]["label"], rows[0]["blame"]) == ("low", "generator")
    assert str(rows[0]["reason"]).startswith("faithfulness 0.50: 1 of 2 claims is in no chunk: '")
    assert (rows[1]["label"], rows[1]["reason"]) == ("unknown", None)
    assert json.loads(json.dumps(rows)) == rows


def test_a_metric_that_is_undefined_is_none_and_never_zero(evaluations: Evaluations) -> None:
    rows = evaluations.table()

    assert [row["faithfulness"] for row in rows] == [0.5, None]


def test_a_metric_has_a_column_if_a_record_has_it_or_was_asked_for_it() -> None:
    asked = evaluate_many(
        RECORDS, judge=LexicalJudge(), metrics=["recall", "faithfulness"], progress=False
    )

    found = [name for name in asked.table()[0] if name in METRICS]
    assert found == ["faithfulness", "recall"]  # in the order of all scores
    assert [row["recall"] for row in asked.table()] == [None, None]


def test_a_record_that_failed_says_why_in_its_row() -> None:
    failed = Evaluations(RECORDS[:1], [Evaluation(error="the judge is away")])

    assert failed.table()[0]["error"] == "the judge is away"
    assert (failed.table()[0]["label"], failed.table()[0]["reason"]) == ("unknown", None)
    assert repr(failed) == "<Evaluations of 1 records: 1 failed>"


def test_a_metric_of_the_users_own_has_a_column_in_every_row() -> None:
    own = Evaluations(RECORDS, [Evaluation(metrics={"tone": 0.5}), Evaluation()])

    assert [row["tone"] for row in own.table()] == [0.5, None]


def test_a_data_frame_has_numbers_for_metrics_also_where_no_record_has_one(
    evaluations: Evaluations,
) -> None:
    frame = evaluations.to_pandas()

    assert {str(frame[name].dtype) for name in WITHOUT_GROUND_TRUTH} == {"float64"}
    assert (str(frame["claims"].dtype), str(frame["abstained"].dtype)) == ("int64", "bool")
    assert frame["faithfulness"].mean() == 0.5  # the record without it does not count
    assert frame.loc[frame["abstained"], "query"].to_list() == ["How long is the Soča?"]


def test_a_data_frame_of_no_records_has_the_same_columns(evaluations: Evaluations) -> None:
    empty, full = evaluations[:0].to_pandas(), evaluations.to_pandas()

    assert (len(empty), list(empty.columns)) == (0, list(full.columns))
    assert list(pd.concat([empty, full]).dtypes[["groundedness"]]) == ["float64"]


def test_without_pandas_a_sentence_says_what_to_install(
    evaluations: Evaluations, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)

    with pytest.raises(MissingExtraError, match=r"pip install 'claimspan\[pandas\]'"):
        evaluations.to_pandas()
    assert len(evaluations.table()) == 2


async def test_evaluations_stay_with_their_records(evaluations: Evaluations) -> None:
    again = await aevaluate_many(RECORDS, judge=LexicalJudge(), progress=False)

    assert again.records == evaluations.records == tuple(RECORDS)
    assert (again[1].abstained, [each.abstained for each in again]) == (True, [False, True])
    assert again[1:].records == (RECORDS[1],)
    assert evaluations == evaluations[:] != evaluations[:1]
    assert evaluations != list(evaluations)


def test_a_record_without_its_evaluation_is_refused() -> None:
    with pytest.raises(ConfigError, match="2 records and 0 evaluations"):
        Evaluations(RECORDS, [])


# --- claimspan evaluate --parquet ---


def test_the_parquet_file_holds_what_the_table_holds(
    records: Path, tmp_path: Path, evaluations: Evaluations
) -> None:
    path = tmp_path / "t.parquet"
    printed = run("evaluate", str(records), "--judge", "lexical", "--parquet", str(path), "--json")
    frame = pd.read_parquet(path)
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")

    assert [{**row, "seconds": 0} for row in rows] == [
        {**row, "seconds": 0} for row in evaluations.table()
    ]
    assert {str(frame[name].dtype) for name in WITHOUT_GROUND_TRUTH} == {"float64"}
    assert json.loads(printed)["parquet"] == str(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_more_rows_than_fit_at_once_are_all_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "_WRITTEN_AT_ONCE", 2)
    rows = [ResultRow.of(n, RECORDS[0], Evaluation(error=f"{n} \ud800")) for n in range(5)]
    with (tmp_path / "t.parquet").open("wb") as file:
        write_parquet(arrow.ParquetFormat(), file, rows, ["tone"])
    frame = pd.read_parquet(tmp_path / "t.parquet")

    assert frame["index"].to_list() == [0, 1, 2, 3, 4]
    assert frame["error"].to_list() == [f"{n} \ufffd" for n in range(5)]
    assert str(frame["tone"].dtype) == "float64"


def test_without_pyarrow_it_is_said_before_a_judge_is_asked(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    told = invoke("evaluate", str(records), "--judge", "nobody", "--parquet", str(tmp_path / "t"))

    assert str(told.exception) == "'pyarrow' is not installed: pip install 'claimspan[pandas]'"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["records.jsonl"]
