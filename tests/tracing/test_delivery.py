"""Deliveries: what is put is sent, sent again, or counted as lost; on real threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from opentelemetry import context as otel_context

from claimspan.errors import DeliveryError
from claimspan_tracing.deliver.delivery import Delivery
from claimspan_tracing.suppression import is_suppressed


@dataclass
class Backend:
    """What a delivery sends to: refuses while it is told to, and keeps what it took."""

    error: BaseException | None = None
    took: list[object] = field(default_factory=list[object])
    calls: list[list[object]] = field(default_factory=list[list[object]])
    gate: threading.Event = field(default_factory=threading.Event)
    entered: threading.Event = field(default_factory=threading.Event)

    def send(self, items: Sequence[object]) -> Sequence[object]:
        self.calls.append(list(items))
        self.entered.set()
        assert self.gate.wait(60)
        if self.error is not None:
            raise self.error
        self.took += items
        return ()


@pytest.fixture
def backend() -> Iterator[Backend]:
    backend = Backend()
    backend.gate.set()
    yield backend
    backend.gate.set()


def wait_until(is_so: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def threads(name: str) -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == f"claimspan-{name}"]


def test_items_arrive_once_in_their_order_and_in_batches(backend: Backend) -> None:
    backend.gate.clear()
    delivery = Delivery[object]("order", backend.send, batch_size=10)

    for i in range(25):
        delivery.put(i)
    assert backend.entered.wait(20)
    backend.gate.set()

    assert delivery.flush(20)
    assert backend.took == list(range(25))
    assert max(map(len, backend.calls)) <= 10
    assert delivery.lost == 0
    delivery.close()


def test_many_threads_put_and_flush_at_once_and_nothing_is_lost_or_sent_twice(
    backend: Backend,
) -> None:
    delivery = Delivery[object]("many", backend.send)

    def put(start: int) -> None:
        for i in range(500):
            delivery.put(start + i)
            if i % 100 == 0:
                delivery.flush(0.001)
                delivery.close()

    workers = [threading.Thread(target=put, args=(1000 * n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert delivery.flush(20)
    assert sorted(map(str, backend.took)) == sorted(
        str(1000 * n + i) for n in range(8) for i in range(500)
    )
    assert delivery.lost == 0
    delivery.close()
    wait_until(lambda: not threads("many"))


def test_a_batch_that_raises_is_sent_again_until_it_is_taken(backend: Backend) -> None:
    backend.error = ConnectionError()
    delivery = Delivery[object]("again", backend.send)

    delivery.put("a")
    wait_until(lambda: len(backend.calls) >= 2)
    backend.error = None

    assert delivery.flush(20)
    assert backend.took == ["a"]
    assert delivery.lost == 0
    delivery.close()


@pytest.mark.parametrize("error", [SystemExit(1), KeyboardInterrupt(), GeneratorExit()])
def test_whatever_sending_raises_the_thread_goes_on(backend: Backend, error: BaseException) -> None:
    backend.error = error
    delivery = Delivery[object]("base", backend.send)

    delivery.put("a")
    wait_until(lambda: bool(backend.calls))
    backend.error = None

    assert delivery.flush(20)
    assert backend.took == ["a"]
    delivery.close()


def test_a_flush_while_sending_fails_is_false_in_time_and_the_items_stay(backend: Backend) -> None:
    backend.error = ConnectionError()
    delivery = Delivery[object]("down", backend.send)
    delivery.put("a")

    started = time.monotonic()
    assert not delivery.flush(0.5)
    assert time.monotonic() - started < 10

    backend.error = None
    assert delivery.flush(20)
    assert (backend.took, delivery.lost) == (["a"], 0)
    delivery.close()


def test_a_flush_does_not_wait_for_the_long_pause_of_a_backend_that_was_down(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("claimspan_tracing.deliver.delivery.LONGEST_PAUSE", 600.0)
    monkeypatch.setattr("claimspan_tracing.deliver.delivery.SHORTEST_PAUSE", 600.0)
    backend.error = ConnectionError()
    delivery = Delivery[object]("pause", backend.send)
    delivery.put("a")
    wait_until(lambda: bool(backend.calls))
    backend.error = None

    wait_until(lambda: delivery.flush(0.1))
    assert backend.took == ["a"]
    delivery.close()


def test_what_nobody_took_in_time_is_lost_and_counted_once(backend: Backend) -> None:
    backend.error = ConnectionError()
    delivery = Delivery[object]("late", backend.send, give_up_after=0.0)

    for i in range(3):
        delivery.put(i)

    assert delivery.flush(20)
    assert delivery.lost == 3
    assert sum(map(len, backend.calls)) == 3
    delivery.close()


def test_what_is_refused_for_good_is_lost_at_once_and_stops_nobody_else(backend: Backend) -> None:
    backend.error = DeliveryError("401: set a key", final=True)
    delivery = Delivery[object]("final", backend.send)

    delivery.put("a")
    wait_until(lambda: delivery.lost == 1)
    backend.error = None
    delivery.put("b")

    assert delivery.flush(20)
    assert (backend.took, delivery.lost) == (["b"], 1)
    delivery.close()


def test_beyond_the_bound_the_newest_are_lost_and_counted_and_nobody_waits(
    backend: Backend,
) -> None:
    backend.gate.clear()
    delivery = Delivery[object]("full", backend.send, batch_size=2, max_waiting=5)

    delivery.put(0)
    assert backend.entered.wait(20)
    for i in range(1, 100):
        delivery.put(i)
    assert delivery.lost == 95  # what is being sent has a place, too
    backend.gate.set()

    assert delivery.flush(20)
    assert backend.took == [0, 1, 2, 3, 4]
    delivery.close()


def test_items_that_are_to_be_sent_again_do_not_hold_up_the_others() -> None:
    took: list[object] = []
    is_stored = threading.Event()

    def send(items: Sequence[str]) -> Sequence[str]:
        again = [each for each in items if each.startswith("early") and not is_stored.is_set()]
        took.extend(each for each in items if each not in again)
        return again

    delivery = Delivery[str]("partial", send, batch_size=2)
    for i in range(6):
        delivery.put(f"early{i}")
    for i in range(6):
        delivery.put(f"other{i}")
    wait_until(lambda: len(took) == 6)
    assert took == [f"other{i}" for i in range(6)]
    is_stored.set()

    assert delivery.flush(20)
    assert sorted(map(str, took[6:])) == [f"early{i}" for i in range(6)]
    assert delivery.lost == 0
    delivery.close()


def test_items_that_are_equal_or_the_same_are_told_apart_by_number() -> None:
    sent: list[list[str]] = []
    same = "same"

    def send(items: Sequence[str]) -> Sequence[str]:
        sent.append(list(items))
        return items[:1] if len(sent) == 1 else ()

    gate = threading.Event()
    delivery = Delivery[str]("same", lambda items: send(items) if gate.wait(60) else ())
    delivery.put(same)
    delivery.put(same)
    delivery.put(same)
    gate.set()

    assert delivery.flush(20)
    assert sum(map(len, sent)) == 4  # three, and one of them again
    assert delivery.lost == 0
    delivery.close()


def test_a_sender_that_returns_copies_loses_them_but_says_so() -> None:
    delivery = Delivery[list[int]]("copies", lambda items: [list(each) for each in items])

    delivery.put([1])

    assert delivery.flush(20)
    assert delivery.lost == 1
    delivery.close()


def test_a_closed_delivery_ends_its_thread_and_still_delivers_what_comes_later(
    backend: Backend,
) -> None:
    delivery = Delivery[object]("closed", backend.send)
    delivery.start()
    assert threads("closed")
    delivery.close()
    wait_until(lambda: not threads("closed"))

    for i in range(200):  # an item may come at any moment of the thread's end
        delivery.put(i)
        if i % 10 == 0:
            delivery.flush(20)

    assert delivery.flush(20)
    assert backend.took == list(range(200))
    wait_until(lambda: not threads("closed"))


def test_a_stopped_delivery_loses_what_waits_and_ends_also_where_sending_fails(
    backend: Backend,
) -> None:
    backend.gate.clear()
    backend.error = ConnectionError()
    delivery = Delivery[object]("stopped", backend.send, batch_size=1)
    for i in range(3):
        delivery.put(i)
    assert backend.entered.wait(20)

    delivery.stop()
    assert delivery.lost == 2
    backend.gate.set()

    wait_until(lambda: not threads("stopped"))
    assert delivery.lost == 3
    assert len(backend.calls) == 1


def test_a_thread_runs_in_an_empty_context_with_instrumentation_suppressed() -> None:
    seen: list[tuple[bool, object]] = []

    def send(items: Sequence[str]) -> Sequence[str]:
        seen.append((is_suppressed(), otel_context.get_value("tenant")))
        return ()

    token = otel_context.attach(otel_context.set_value("tenant", "a"))
    try:
        delivery = Delivery[str]("context", send)
        delivery.put("a")
        assert delivery.flush(20)
    finally:
        otel_context.detach(token)

    assert seen == [(True, None)]
    delivery.close()


def test_what_sends_may_flush_without_waiting_for_itself() -> None:
    flushed: list[bool] = []

    def send(items: Sequence[str]) -> Sequence[str]:
        flushed.append(delivery.flush(60))
        return ()

    delivery = Delivery[str]("itself", send)
    delivery.put("a")

    assert delivery.flush(20)
    assert flushed == [False]
    delivery.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_delivers_its_own_items_and_none_of_its_parents(tmp_path: Path) -> None:
    code = """
import os, sys, threading
from claimspan_tracing.deliver.delivery import Delivery
gate, entered, took = threading.Event(), threading.Event(), []
def send(items):
    entered.set()
    assert gate.wait(60)
    took.extend(items)
    return ()
delivery = Delivery("forked", send, max_waiting=2)
for item in ("a", "b", "c"):
    delivery.put(item)
assert entered.wait(20)
with delivery._changed:  # the fork copies a lock that no thread of the child holds
    pid = os.fork()
gate.set()
if pid == 0:
    assert delivery.lost == 0
    delivery.put("child")
    ok = delivery.flush(20) and took == ["child"] and delivery.lost == 0
    os._exit(0 if ok else 1)
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status), delivery.flush(20), took, delivery.lost)
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.stdout.split() == ["0", "True", "['a',", "'b']", "1"], done.stderr


def test_a_thread_that_hangs_does_not_keep_the_process(tmp_path: Path) -> None:
    code = """
import atexit, threading
from claimspan_tracing.deliver.delivery import Delivery
delivery = Delivery("hangs", lambda items: threading.Event().wait())
delivery.put("a")
atexit.register(delivery.put, "b")
atexit.register(delivery.flush, 0.1)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stderr) == (0, "")
