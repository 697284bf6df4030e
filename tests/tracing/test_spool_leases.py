"""Rows of the spool, and who works on them. Rows F10 and P4 of the reliability matrix."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest

from claimspan_tracing import Job
from claimspan_tracing.job import JobKey
from claimspan_tracing.spool import Lease, Root, Spool

from spool_jobs import job, outcome, rows

LEASE_SECONDS = 0.2


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "spool.db"


def added(spool: Spool, number: int = 1) -> Lease:
    lease = spool.add(job(number))
    assert lease is not None
    return lease


def dead(path: Path) -> Spool:
    """A spool whose process is about to look dead, as it says nothing more."""
    return Spool(path, lease_seconds=LEASE_SECONDS)


def test_what_was_added_is_on_disk_when_the_call_returns(path: Path) -> None:
    kept = job(text="ščž 🙂 \u202e")

    assert Spool(path).add(kept) == Lease(kept.key, 1)

    assert rows(path, "state, root, attempts") == [("leased", "held", 1)]
    assert Job.from_json(str(rows(path, "job")[0][0])) == kept


def test_a_key_is_acknowledged_once(path: Path) -> None:
    spool = Spool(path)
    added(spool)

    assert spool.add(job()) is None
    assert len(rows(path)) == 1


def test_rows_of_a_living_process_are_not_taken_over(path: Path) -> None:
    living, other = Spool(path), Spool(path)
    lease = added(living)
    waiting = added(living, 2)
    living.put_back(waiting, 0.0, counted=False)

    assert other.claim(10) == []
    assert [row.lease.key for row in living.claim(10)] == [waiting.key]
    assert living.write(lease, outcome())


def test_rows_of_a_process_that_says_nothing_more_are_taken_over_with_their_state(
    path: Path,
) -> None:
    gone, heir = dead(path), Spool(path)
    written, held, ended = added(gone, 1), added(gone, 2), added(gone, 3)
    gone.write(written, outcome("known"))
    gone.end_root([ended], outcome("ended"))
    assert heir.claim(10) == []
    time.sleep(1.5 * LEASE_SECONDS)

    found = heir.claim(10)

    assert [row.lease.key for row in found] == [written.key, held.key, ended.key]
    assert [row.outcome for row in found] == [outcome("known"), None, None]
    assert [row.root for row in found] == [Root.HELD, Root.HELD, Root.ENDED]
    assert found[2].root_outcome == outcome("ended")
    assert all(row.is_foreign for row in found)


def test_a_process_that_says_it_is_alive_keeps_its_rows(path: Path) -> None:
    living, other = dead(path), Spool(path)
    added(living)
    for _ in range(4):
        time.sleep(LEASE_SECONDS / 2)
        living.renew()
        assert other.claim(10) == []


def test_a_lease_that_was_lost_changes_nothing_any_more(path: Path) -> None:
    slow, heir = dead(path), Spool(path)
    lost = added(slow)
    time.sleep(1.5 * LEASE_SECONDS)
    (row,) = heir.claim(10)
    slow.renew()

    assert not slow.write(lost, outcome("too late"))
    assert slow.end_root([lost], outcome()) == []
    slow.delete([lost])
    slow.kill(lost, "too late")

    assert heir.write(row.lease, outcome("in time"))
    assert rows(path, "state, attempts") == [("written", 2)]


def test_a_process_that_closes_its_spool_gives_its_rows_back_at_once_and_unharmed(
    path: Path,
) -> None:
    for _ in range(5):
        spool = Spool(path, max_attempts=1)
        if not rows_exist(path):
            added(spool)
        else:
            assert len(spool.claim(10)) == 1
        spool.close()

    assert rows(path, "state, owner, attempts") == [("waiting", None, 0)]


def rows_exist(path: Path) -> bool:
    return path.exists() and bool(rows(path))


def test_a_row_that_ends_every_process_is_a_dead_letter_after_three_attempts(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    added(Spool(path, lease_seconds=0.01))
    taken = 0
    for _ in range(5):
        time.sleep(0.03)
        taken += len(Spool(path, lease_seconds=0.01).claim(10))

    assert taken == 2  # beside the process that has added it
    ((state, reason, died_at),) = rows(path, "state, reason, died_at")
    assert (state, reason) == ("dead", "3 attempts to evaluate it ended without an outcome")
    assert isinstance(died_at, float)
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        "claimspan gave up 1 records of its spool"
    ]


def test_a_row_that_ends_processes_does_not_use_up_the_attempts_of_those_beside_it(
    path: Path,
) -> None:
    first = Spool(path, lease_seconds=0.01)
    deadly, *others = [added(first, number).key for number in range(1, 5)]
    finished: list[JobKey] = []
    for _ in range(10):
        time.sleep(0.03)
        spool = Spool(path, lease_seconds=0.01)
        taken = spool.claim(10)
        while taken and deadly not in [row.lease.key for row in taken]:
            finished += [row.lease.key for row in taken]
            spool.delete([row.lease for row in taken])
            taken = spool.claim(10)

    assert sorted(finished) == sorted(others)
    assert rows(path, "state, span_id") == [("dead", deadly[1])]


def test_a_row_at_its_last_attempt_waits_until_no_other_is_under_way(path: Path) -> None:
    added(Spool(path, lease_seconds=0.01))
    time.sleep(0.03)
    assert len(Spool(path, lease_seconds=0.01).claim(10)) == 1
    time.sleep(0.03)
    heir = Spool(path)

    assert heir.claim(10, is_alone=False) == []
    assert len(heir.claim(10, is_alone=True)) == 1


def test_a_row_that_waits_for_the_judge_uses_up_no_attempt(path: Path) -> None:
    spool = Spool(path)
    lease = added(spool)
    for _ in range(10):
        spool.put_back(lease, 0.0, counted=False)
        (row,) = spool.claim(10)
        lease = row.lease

    assert lease.attempts == 1


def test_a_row_that_was_put_back_is_left_alone_for_its_time(path: Path) -> None:
    spool = Spool(path)
    lease = added(spool)
    spool.put_back(lease, 0.2, counted=True)

    assert spool.claim(10) == []
    time.sleep(0.25)
    assert [row.lease for row in spool.claim(10)] == [Lease(lease.key, 2)]


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_wall_clock_that_is_set_moves_no_lease(
    path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    real = time.time
    living, other = Spool(path), Spool(path)
    lease = added(living)

    monkeypatch.setattr(time, "time", lambda: real() + 3600 * hours)

    other.renew()
    assert other.claim(10) == []
    living.renew()
    assert living.write(lease, outcome())


@pytest.mark.parametrize("moved", [-(10**15), 10**15])
def test_a_lease_of_an_earlier_start_of_the_machine_is_over(path: Path, moved: int) -> None:
    added(Spool(path))
    database = sqlite3.connect(path)
    # The clock began anew: what was written before is far ahead of it, or of another boot.
    database.execute("UPDATE owners SET until = until + ?", (moved,))
    database.commit()
    database.close()

    assert len(Spool(path).claim(10)) == 1


def test_a_lease_of_another_start_of_the_machine_is_over(path: Path) -> None:
    added(Spool(path))
    database = sqlite3.connect(path)
    database.execute("UPDATE owners SET boot = 'another'")
    database.commit()
    database.close()

    assert len(Spool(path).claim(10)) == 1


def test_dead_letters_are_kept_for_seven_days(path: Path) -> None:
    spool = Spool(path)
    for number in (1, 2):
        spool.kill(added(spool, number), "why")
    database = sqlite3.connect(path)
    day = 24 * 3600
    database.execute("UPDATE records SET died_at = ? WHERE id = 1", (time.time() - 7.1 * day,))
    database.execute("UPDATE records SET died_at = ? WHERE id = 2", (time.time() - 6.9 * day,))
    database.commit()
    database.close()

    spool.renew()

    assert rows(path, "trace_id") == [(job(2).trace_id,)]


def test_a_row_whose_spans_were_exported_leaves_no_text_in_the_file(path: Path) -> None:
    spool = Spool(path)
    lease = spool.add(job(text="canary-5417"))
    assert lease is not None
    spool.delete([lease])
    spool.close()  # the log is written back

    assert rows(path) == []
    assert all(b"canary-5417" not in file.read_bytes() for file in path.parent.iterdir())


def test_two_processes_never_take_up_the_same_row(path: Path) -> None:
    gone = dead(path)
    for number in range(1, 41):
        added(gone, number)
    time.sleep(1.5 * LEASE_SECONDS)
    spools = [Spool(path) for _ in range(4)]

    taken = [row.lease.key for _ in range(4) for spool in spools for row in spool.claim(3)]

    assert len(taken) == len(set(taken)) == 40


def test_a_row_is_taken_up_as_fast_where_many_wait(tmp_path: Path) -> None:
    def milliseconds(n: int) -> float:
        spool = Spool(tmp_path / f"{n}.db")
        for number in range(1, n + 1):
            spool.put_back(added(spool, number), 0.0, counted=False)
        return min(_taken_up(spool) for _ in range(20))

    # To sort all that wait takes twenty times as long.
    assert milliseconds(5_000) < 6 * milliseconds(50)


def _taken_up(spool: Spool) -> float:
    started = time.thread_time()
    (row,) = spool.claim(1)
    spent = time.thread_time() - started
    spool.put_back(row.lease, 0.0, counted=False)
    return spent * 1e3


def test_a_text_that_no_file_can_hold_harms_nothing(path: Path) -> None:
    spool = Spool(path)
    lease = added(spool)

    assert spool.write(lease, outcome("half a character: \ud800"))
    assert spool.add(replace(job(2), route="half a character: \ud800")) is None
    assert spool.add(job(3)) is not None
    assert rows(path) == [("leased",), ("leased",)]
