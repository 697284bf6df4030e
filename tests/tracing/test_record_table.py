"""The table of records: what moves a row, which row is taken, and that the books agree.

Row F21 of the reliability matrix.
"""

from __future__ import annotations

from collections import Counter
from contextvars import Context
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    rule,
)
from opentelemetry.trace import INVALID_SPAN

from claimspan_langchain._reader import LangChainReader
from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.decide.status import Status
from claimspan_tracing.job import Outcome
from claimspan_tracing.records import Event, Record, Records, Stage
from claimspan_tracing.records.record import HOLDS_PLACE, RUNS, STEPS
from claimspan_tracing.records.table import WEIGHED_SHARE
from claimspan_tracing.spool import Spool

from spool_jobs import job

MAX_WAIT = 30.0


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def tree() -> RunTree:
    return RunTree(INVALID_SPAN, LangChainReader(), Context())


def added(records: Records, number: int) -> Record:
    record = Record(job(number).key, INVALID_SPAN, None, Context(), judged=job(number))
    records.count("produced")
    assert records.add(record)
    return record


def table_of(n: int, clock: Clock) -> Records:
    """A table in which so many records wait for a judge, one a second."""
    records = Records(2 * n + 10, 1 << 40, clock=clock)
    for number in range(1, n + 1):
        clock.now += 1
        record = added(records, number)
        assert records.give_place(record, tree())
        assert records.next_unread() is record
        assert records.move(record, Event.DISPATCHED)
        assert records.wait_for_judge(record)
    return records


def test_the_newest_record_is_taken_first_with_the_time_that_it_has_waited() -> None:
    records = table_of(3, clock := Clock())
    clock.now += 1

    taken = [records.take(MAX_WAIT) for _ in range(4)]

    assert [each and (each[0].key, each[1]) for each in taken] == [
        (job(3).key, 1.0),
        (job(2).key, 2.0),
        (job(1).key, 3.0),
        None,
    ]
    assert {each[0].stage for each in taken if each} == {Stage.JUDGING}


def test_records_that_have_waited_too_long_stay_in_their_order_until_they_are_withdrawn() -> None:
    records = table_of(2, clock := Clock())
    clock.now += 2 * MAX_WAIT

    assert records.take(MAX_WAIT) is None
    # A clock that goes back is no clock of ours; it shows which of both is the newest still.
    clock.now -= 2 * MAX_WAIT
    newest = records.take(MAX_WAIT)

    assert newest is not None
    assert newest[0].key == job(2).key
    assert records.withdraw(job(1).key)
    assert not records.withdraw(job(2).key)


def put(records: Records, number: int, size: int) -> Record | None:
    """Give a place as a monitor does: weighed if the table asks for it."""
    one = tree()
    if records.must_weigh:
        one.size = size
    else:
        one.unweighed.append("an input")
    record = added(records, number)
    return record if records.give_place(record, one) else None


def bytes_of(records: Records) -> int:
    return records.stats(faults=0).queued_bytes


def test_one_tree_in_sixteen_is_weighed_and_the_others_count_as_much() -> None:
    records = Records(1_000, 1_000_000)
    weighed = list[bool]()
    for number in range(1, 2 * WEIGHED_SHARE + 1):
        weighed.append(records.must_weigh)
        put(records, number, 1_000)

    assert [number for number, was in enumerate(weighed) if was] == [0, WEIGHED_SHARE]
    assert bytes_of(records) == 2 * WEIGHED_SHARE * 1_000


def test_every_tree_is_weighed_once_a_quarter_of_the_bytes_is_taken() -> None:
    records = Records(1_000, 100_000)
    for number in range(1, 26):
        put(records, number, 1_000)

    assert all(records.must_weigh and put(records, number, 5_000) for number in range(26, 41))
    assert not put(records, 41, 5_000)
    assert bytes_of(records) == 25 * 1_000 + 15 * 5_000


def test_a_record_that_is_heavier_than_it_was_counted_says_whether_it_fits() -> None:
    records = Records(1_000, 100_000)
    first, second = put(records, 1, 1_000), put(records, 2, 1_000)
    assert first is not None
    assert second is not None

    assert records.reweigh(second, 99_000)
    assert not records.reweigh(first, 1_001)
    for record in (first, second):
        records.move(record, Event.ABANDONED)
    assert bytes_of(records) == 0
    assert records.reweigh(first, 1 << 40), "a shutdown has finished it"


@pytest.mark.parametrize("stage", Stage)
@pytest.mark.parametrize("event", Event)
def test_an_event_moves_a_record_as_the_table_of_steps_says_and_nowhere_else(
    stage: Stage, event: Event
) -> None:
    records = Records()
    record = added(records, 1)
    record.stage = stage

    moved = records.move(record, event)

    to = STEPS.get((stage, event))
    assert record.stage is (to or stage)
    assert moved == (to is not None and event is not Event.LOST)


def test_every_stage_can_be_reached_and_left() -> None:
    reached = {Stage.UNREAD}
    while more := {to for (stage, _), to in STEPS.items() if stage in reached} - reached:
        reached |= more

    assert reached == set(Stage)
    assert {stage for stage, _ in STEPS} == set(Stage)


class Sequences(RuleBasedStateMachine):
    """Random events over a few records, with and without a spool that others take rows from.

    It keeps no second model of the stages: what it holds against the table are the promises that
    follow for whoever reads the books and the spans.
    """

    rows = Bundle("rows")

    def __init__(self) -> None:
        super().__init__()
        self.records = Records(max_records=6, max_bytes=6_000, spool=self.spool())
        self.number = 0
        self.all: list[Record] = []
        self.visible: Counter[tuple[str, str]] = Counter()
        self.unread: set[tuple[str, str]] = set()

    def spool(self) -> Spool | None:
        return None

    def teardown(self) -> None:
        if self.records.spool is not None:
            self.records.spool.close()

    def ended(self, record: Record, status: Status) -> None:
        """As a writer does: the state is written by whoever is the one to end the record."""
        if self.records.end(record):
            self.visible[record.key] += 1
            self.records.finished(status)

    def ended_unscored(self, record: Record) -> None:
        if self.records.end_root([record], Outcome(status=Status.TIMEOUT)):
            self.ended(record, Status.TIMEOUT)

    @rule(target=rows, size=st.integers(0, 3_000))
    def comes(self, size: int) -> object:
        self.number += 1
        record, one = added(self.records, self.number), tree()
        one.size = size
        self.all.append(record)
        if self.records.give_place(record, one):
            self.unread.add(record.key)
        else:
            self.ended(record, Status.QUEUE_FULL)
            self.records.move(record, Event.ABANDONED)
        return record

    @rule(is_sampled=st.booleans())
    def is_read(self, is_sampled: bool) -> None:
        record = self.records.next_unread()
        if record is None:
            return
        self.unread.discard(record.key)
        if not is_sampled:
            self.ended(record, Status.NOT_SAMPLED)
            self.records.move(record, Event.SETTLED)
            self.records.move(record, Event.EXPORTED)
            return
        self.records.move(record, Event.DISPATCHED)
        if record.stage is Stage.WAITING and self.records.spool is not None:
            lease = self.records.spool.add(job(int(record.key[0], 16)))
            if lease is not None:
                self.records.acknowledged(record, lease)
        if record.stage is Stage.WAITING:
            self.records.wait_for_judge(record)

    @rule()
    def is_taken(self) -> None:
        taken = self.records.take(MAX_WAIT)
        assert taken is None or taken[0].stage is Stage.JUDGING

    @rule(record=rows)
    def is_overdue(self, record: Record) -> None:
        if self.records.withdraw(record.key) or self.records.move(record, Event.OVERDUE):
            self.ended_unscored(record)

    @rule(record=rows)
    def is_settled(self, record: Record) -> None:
        outcome = Outcome(status=Status.JUDGE_ERROR)
        if record.stage in RUNS and self.records.move(record, Event.SETTLED, outcome=outcome):
            self.ended(record, Status.JUDGE_ERROR)
            if record.lease is None:
                self.records.move(record, Event.EXPORTED)

    @rule(record=rows, event=st.sampled_from([Event.PARKED, Event.PUT_BACK, Event.LOST]))
    def is_moved(self, record: Record, event: Event) -> None:
        if event is Event.PUT_BACK and (record.stage, event) in STEPS:
            self.ended_unscored(record)
        self.records.move(record, event)

    @rule()
    def are_exported(self) -> None:
        self.records.exported([r for r in self.records.rows() if r.stage is Stage.WRITTEN])

    @rule()
    def are_taken_up(self) -> None:
        spool = self.records.spool
        for row in [] if spool is None else spool.claim(3):
            record = self.records.get(row.lease.key)
            if record is None:
                record = Record(row.lease.key, INVALID_SPAN, None, Context(), is_open=False)
                record.stage, record.is_counted = Stage.DONE, not row.is_foreign
            self.records.move(record, Event.TAKEN_UP, row=row)

    @rule()
    def shuts_down(self) -> None:
        outcome = Outcome(status=Status.SHUTDOWN)
        for record in self.records.end_root(self.records.open_rows(), outcome):
            self.ended(record, Status.SHUTDOWN)
        while (unread := self.records.next_unread()) is not None:
            self.unread.discard(unread.key)
        for record in self.records.rows():
            self.records.move(record, Event.ABANDONED)

    @invariant()
    def each_ends_once_and_none_that_another_process_has(self) -> None:
        for record in self.all:
            # Its spans are another process's: they are counted here, and never ended.
            is_lost = not record.is_open and not self.visible[record.key]
            assert not is_lost or record.stage is Stage.DONE
            assert self.visible[record.key] == (not record.is_open and not is_lost)

    @invariant()
    def the_books_are_those_of_the_rows(self) -> None:
        stats = self.records.stats(faults=0)
        still_open = sum(record.is_open for record in self.all)
        ended = sum(stats.skipped.values()) + sum(stats.dropped.values()) + stats.evaluated

        assert stats.pending == len(self.records.open_rows()) == still_open
        assert stats.produced == ended + stats.pending == len(self.all)

    @invariant()
    def places_are_those_of_the_stages(self) -> None:
        placed = [r for r in self.records.rows() if r.size is not None]

        assert all(record.stage in HOLDS_PLACE for record in placed)
        assert len(self.records) == len(placed) <= 6
        assert bytes_of(self.records) == sum(record.size or 0 for record in placed) <= 6_000

    @invariant()
    def nothing_that_is_open_is_forgotten(self) -> None:
        rows = self.records.rows()
        assert all(record in rows for record in self.all if record.is_open)

    @invariant()
    def a_flush_waits_as_long_as_a_judge_has_something(self) -> None:
        runs = any(record.stage in RUNS for record in self.records.rows())
        is_idle = self.records.wait_until_idle(0.0)

        assert is_idle == (not runs and not self.records.open_rows())


EXAMPLES: Final = settings(
    max_examples=150,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_random_events_leave_every_record_with_one_state_and_the_books_in_balance() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(Sequences, settings=EXAMPLES)


def test_random_events_over_a_spool_leave_every_record_with_one_state(tmp_path: Path) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    class Spooled(Sequences):
        """With a file; another process takes rows over when this one's lease seems to be over."""

        n_files = 0

        def spool(self) -> Spool:
            Spooled.n_files += 1
            return Spool(tmp_path / f"{Spooled.n_files}.db")

        @rule()
        def another_process_takes_rows(self) -> None:
            assert self.records.spool is not None
            self.records.spool.renew()
            other = Spool(tmp_path / f"{Spooled.n_files}.db", clock=lambda: 1 << 62)
            other.claim(2)
            other.close()

    run_state_machine_as_test(Spooled, settings=settings(EXAMPLES, max_examples=40))
