"""Records out of files, whatever stands in their texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from claimspan import Chunk, RagRecord
from claimspan.files.record_files import read_records

LINE_BREAKS = "\u2028\u2029\u0085\u001c\u000b\u000c"
"""What Unicode or Python takes for the end of a line; the first three JSON lets stand as it is."""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_the_end_of_a_line_ends_a_record(tmp_path: Path, end: str) -> None:
    text = f"One{LINE_BREAKS}two."
    row = {"query": text, "response": text, "chunks": [{"id": "a", "text": text}]}
    path = tmp_path / "records.jsonl"
    lines = [json.dumps(row, ensure_ascii=False), "", json.dumps(row, ensure_ascii=False), ""]
    path.write_bytes(end.join(lines).encode())

    record = RagRecord(query=text, response=text, chunks=(Chunk(id="a", text=text),))
    assert read_records(path) == [record, record]
