"""The order in which jobs leave the queue, and which of them stay in it."""

from __future__ import annotations

from contextvars import Context

from opentelemetry.trace import INVALID_SPAN

from claimspan_langchain._reader import LangChainReader
from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.dispatch.memory_queue import RecordQueue

from spool_jobs import job

MAX_WAIT = 30.0


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def queue_of(n: int, clock: Clock) -> RecordQueue:
    """A queue in which so many jobs wait, one a second."""
    queue = RecordQueue(2 * n + 10, 1 << 40, clock=clock)
    for number in range(1, n + 1):
        clock.now += 1
        queue.put(job(number).key, RunTree(INVALID_SPAN, LangChainReader(), Context()))
        queue.take()
        assert queue.put_job(job(number))
    return queue


def test_the_newest_job_is_taken_first_with_the_time_that_it_has_waited() -> None:
    queue = queue_of(3, clock := Clock())
    clock.now += 1

    taken = [queue.take_job(MAX_WAIT) for _ in range(4)]

    assert [each and (each[0].key, each[1]) for each in taken] == [
        (job(3).key, 1.0),
        (job(2).key, 2.0),
        (job(1).key, 3.0),
        None,
    ]


def test_jobs_that_have_waited_too_long_stay_in_their_order_until_they_are_withdrawn() -> None:
    queue = queue_of(2, clock := Clock())
    clock.now += 2 * MAX_WAIT

    assert queue.take_job(MAX_WAIT) is None
    # A clock that goes back is no clock of ours; it shows which of both is the newest still.
    clock.now -= 2 * MAX_WAIT
    newest = queue.take_job(MAX_WAIT)

    assert newest is not None
    assert newest[0].key == job(2).key
    assert queue.withdraw(job(1).key)
    assert not queue.withdraw(job(2).key)
