"""The order in which jobs leave the queue, and which of them stay in it."""

from __future__ import annotations

from contextvars import Context

from opentelemetry.trace import INVALID_SPAN

from claimspan_langchain._reader import LangChainReader
from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.dispatch.memory_queue import WEIGHED_SHARE, RecordQueue

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


def put(queue: RecordQueue, number: int, size: int) -> bool:
    """Put a tree as a monitor does: weighed where the queue asks for it."""
    tree = RunTree(INVALID_SPAN, LangChainReader(), Context())
    if queue.must_weigh:
        tree.size = size
    else:
        tree.unweighed.append("an input")
    return queue.put(job(number).key, tree)


def test_one_tree_in_sixteen_is_weighed_and_the_others_count_as_much() -> None:
    queue = RecordQueue(1_000, 1_000_000)
    weighed = list[bool]()
    for number in range(1, 2 * WEIGHED_SHARE + 1):
        weighed.append(queue.must_weigh)
        put(queue, number, 1_000)

    assert [number for number, was in enumerate(weighed) if was] == [0, WEIGHED_SHARE]
    assert queue.n_bytes == 2 * WEIGHED_SHARE * 1_000


def test_every_tree_is_weighed_once_a_quarter_of_the_bytes_is_taken() -> None:
    queue = RecordQueue(1_000, 100_000)
    for number in range(1, 26):
        put(queue, number, 1_000)

    assert all(queue.must_weigh and put(queue, number, 5_000) for number in range(26, 41))
    assert not put(queue, 41, 5_000)
    assert queue.n_bytes == 25 * 1_000 + 15 * 5_000


def test_a_record_that_is_heavier_than_it_was_counted_says_whether_it_fits() -> None:
    queue = RecordQueue(1_000, 100_000)
    put(queue, 1, 1_000)
    put(queue, 2, 1_000)

    assert queue.reweigh(job(2).key, 99_000)
    assert not queue.reweigh(job(1).key, 1_001)
    queue.release(job(1).key)
    queue.release(job(2).key)
    assert queue.n_bytes == 0
    assert queue.reweigh(job(1).key, 1 << 40), "a shutdown has finished it"
