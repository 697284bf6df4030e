"""``claimspan spool``: what is in a spool, for people and for programs."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from claimspan.errors import ConfigError
from claimspan_tracing import Monitor
from claimspan_tracing.spool import Spool

from command_line import invoke, run
from spool_jobs import job, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A spool with one row that is worked on, one that waits, and one dead letter."""
    path = tmp_path / "spool.db"
    spool = Spool(path)
    leases = [lease for number in (1, 2, 3) if (lease := spool.add(job(number)))]
    spool.put_back(leases[1], 0.0, counted=True)
    spool.kill(leases[2], "the judge\x1b[31m gave up")
    return path


def test_states_ages_and_dead_letters_are_shown(path: Path) -> None:
    lines = run("spool", str(path)).splitlines()

    assert lines[0] == f"{path}: 1 dead, 1 leased, 1 waiting"
    assert lines[1].startswith("the oldest has waited for ")
    assert lines[2] == f"dead  {job(3).trace_id[:8]}  the judge<U+001B>[31m gave up"


def test_nothing_in_the_file_commands_the_terminal(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("UPDATE records SET trace_id = '\x1b[2J' || id, reason = 'a\u202eb\r\nc\x9b'")
    database.commit()
    database.close()

    shown = run("spool", str(path))

    assert not any(sign in shown for sign in ("\x1b", "\x9b", "\u202e", "\r"))


def test_as_json_it_is_all_there(path: Path) -> None:
    shown = json.loads(run("spool", str(path), "--json"))

    assert shown["states"] == {"dead": 1, "leased": 1, "waiting": 1}
    assert 0 <= shown["oldest_seconds"] < 60
    assert shown["dead"] == [
        {
            "trace_id": job(3).trace_id,
            "span_id": job(3).span_id,
            "reason": "the judge\x1b[31m gave up",
        }
    ]
    assert shown["retried"] == 0


def test_dead_letters_are_tried_again_on_request(path: Path) -> None:
    assert "1 dead letters wait" in run("spool", str(path), "--retry-dead")

    assert rows(path, "state, attempts") == [("leased", 1), ("waiting", 1), ("waiting", 0)]
    assert [row.job for row in Spool(path).claim(10)] == [job(3)]


def test_an_empty_spool_says_so(path: Path) -> None:
    database = sqlite3.connect(path)
    database.execute("DELETE FROM records")
    database.commit()
    database.close()

    assert run("spool", str(path)) == f"{path}: empty\n"


@pytest.mark.parametrize("content", [None, b"garbage" * 1000, b""])
def test_another_file_is_an_error_and_stays_as_it_is(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "other"
    if content is not None:
        path.write_bytes(content)

    result = invoke("spool", str(path))

    assert isinstance(result.exception, ConfigError)
    assert (path.read_bytes() if path.exists() else None) == content


@pytest.mark.parametrize("place", ["", ".", "/"])
def test_a_directory_is_an_error_for_the_command_and_for_a_monitor(place: str) -> None:
    assert isinstance(invoke("spool", place).exception, ConfigError)
    with pytest.raises(ConfigError, match="is a directory"):
        Monitor(spool=place)


@pytest.mark.parametrize("value", [123, b"spool.db", "spool\0.db", "spool\ud800.db"])
def test_what_is_no_path_is_an_error_when_the_monitor_is_made(value: str) -> None:
    with pytest.raises(ConfigError, match="give the path of a file"):
        Monitor(spool=value)
