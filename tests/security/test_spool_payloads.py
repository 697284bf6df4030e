"""What others write into a spool file is never run and never parsed without a bound.

Row S2 of the reliability matrix.
"""

from __future__ import annotations

import json
import pickle
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from claimspan_tracing.spool import Spool

from spool_jobs import job, rows

EXECUTED: Final[list[str]] = []


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return EXECUTED.append, ("unpickled",)


def changed(**fields: object) -> str:
    return json.dumps(json.loads(job().to_json()) | fields)


def nested(depth: int) -> str:
    return changed(record={"query": "q", "metadata": 0}).replace(": 0", ": " + "[" * depth)


PAYLOADS: Final[dict[str, object]] = {
    "a pickled object": pickle.dumps(Bomb()),
    "a pickled object as text": pickle.dumps(Bomb(), 0).decode("ascii"),
    "a class to make": json.dumps({"__class__": "os.system", "args": ["true"]}),
    "another field": changed(__class__="os.system"),
    "deep nesting": nested(10_000),
    "deep nesting that is closed": changed(extra=1).replace("1}", "[" * 9_000 + "]" * 9_000 + "}"),
    "a number of a million digits": changed(started=0).replace(
        '"started": 0', '"started": ' + "9" * 1_000_000
    ),
    "a wrong version": changed(version=2),
    "another record": changed(trace_id="f" * 32),
    "SQL": "'); DROP TABLE records; --",
    "nothing": "",
    "no text": 17,
}


def put(path: Path, payload: object) -> None:
    """Write a row as somebody else would who may write to the file."""
    Spool(path, lease_seconds=0.01).add(job())
    time.sleep(0.05)
    database = sqlite3.connect(path)
    database.execute("UPDATE records SET job = ?", (payload,))
    database.commit()
    database.close()


@pytest.mark.parametrize("name", PAYLOADS)
def test_a_payload_that_is_no_job_becomes_a_dead_letter(tmp_path: Path, name: str) -> None:
    path = tmp_path / "spool.db"
    put(path, PAYLOADS[name])
    started = time.monotonic()

    assert Spool(path).claim(10) == []

    assert time.monotonic() - started < 5
    ((state, reason),) = rows(path, "state, reason")
    assert state == "dead"
    assert reason
    assert EXECUTED == []


def test_a_dead_letter_does_not_quote_its_payload(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    put(path, changed(version="canary-5417"))
    Spool(path).claim(10)

    ((reason,),) = rows(path, "reason")
    assert "version" in str(reason)
    assert "canary" not in str(reason)


def test_a_payload_beyond_the_bound_is_not_even_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claimspan_tracing.spool.store.MAX_PAYLOAD_BYTES", 100)
    path = tmp_path / "spool.db"
    put(path, job().to_json())

    assert Spool(path).claim(10) == []
    assert rows(path, "state, reason") == [("dead", "the payload is no text of a bounded length")]


def test_one_bad_row_keeps_no_good_one_from_the_judge(tmp_path: Path) -> None:
    path = tmp_path / "spool.db"
    put(path, "garbage")
    Spool(path, lease_seconds=0.01).add(job(2))
    time.sleep(0.05)

    assert [row.job for row in Spool(path).claim(10)] == [job(2)]
