"""The file of results of a run keeps what was paid for, and harms no other file."""

from __future__ import annotations

from pathlib import Path

import pytest

from claimspan.errors import ConfigError
from claimspan.evaluation.result import Evaluation
from claimspan.records import RagRecord
from claimspan.results.rows import ResultRow
from claimspan_tracing.run.files import DatasetItem, RunFile

ITEMS = [DatasetItem("Wie groß?"), DatasetItem("Wie schön?")]


def row(index: int) -> ResultRow:
    record = RagRecord(query=ITEMS[index].query, response="So schön wie groß.")
    return ResultRow.of(index, record, Evaluation())


@pytest.mark.parametrize("scored", [True, False])
def test_a_run_goes_on_wherever_the_one_before_it_was_killed(scored: bool, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    file = RunFile(path, ITEMS, scored=scored)
    for index in range(2):
        file.add(row(index))
    file.close()
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1

    # Also within a character of several bytes.
    for end in range(first, len(whole) - 1):
        path.write_bytes(whole[:end])
        file = RunFile(path, ITEMS, scored=scored)
        file.close()
        assert list(file.done) == [0]
        assert path.read_bytes() == whole[:first]


@pytest.mark.parametrize(
    "content",
    [
        b'{"database": "settings"}',
        b'{"query": "a question"}',
        b'{"index": {}}',
        b"\x89PNG",
        b"notes",
    ],
)
@pytest.mark.parametrize("scored", [True, False])
def test_a_file_of_another_kind_is_left_as_it_is(
    content: bytes, scored: bool, tmp_path: Path
) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content)

    with pytest.raises(ConfigError, match="line 1 is no result of this kind"):
        RunFile(path, ITEMS, scored=scored)

    assert path.read_bytes() == content


def test_a_file_is_written_by_one_run_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    file = RunFile(path, ITEMS, scored=True)
    file.add(row(0))

    with pytest.raises(ConfigError, match="another run writes"):
        RunFile(path, ITEMS, scored=True)

    file.add(row(1))
    file.close()
    again = RunFile(path, ITEMS, scored=True)
    again.close()
    assert sorted(again.done) == [0, 1]
