"""The threads that end spans and providers start whatever else runs as they do."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from claimspan.daemon_threads import DaemonThread, start_daemon
from claimspan_tracing import lifecycle
from claimspan_tracing.lifecycle import ExitThreads


def test_a_finalizer_in_a_thread_that_begins_does_not_stop_whoever_starts_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The interpreter waits for a new thread to begin, and that may collect garbage first: of a
    # provider that nothing uses any more, which a thread is to shut down.
    threads, stuck = ExitThreads(), list[str]()

    def collecting(run: Callable[[], object], name: str) -> DaemonThread:
        beginning = threading.Thread(target=threads.run, args=(lambda: None,), daemon=True)
        beginning.start()
        beginning.join(5)
        if beginning.is_alive():
            stuck.append(name)
        return start_daemon(run, name)

    monkeypatch.setattr(lifecycle, "start_daemon", collecting)
    threads.reserve(2)

    assert stuck == []
    threads.release(2)


def test_threads_that_cannot_start_are_started_by_the_next_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads, started = ExitThreads(), list[str]()

    def refused(run: Callable[[], object], name: str) -> DaemonThread:
        raise RuntimeError("can't start new thread")

    def counted(run: Callable[[], object], name: str) -> DaemonThread:
        started.append(name)
        return start_daemon(run, name)

    monkeypatch.setattr(lifecycle, "start_daemon", refused)
    with pytest.raises(RuntimeError):
        threads.reserve(2)
    monkeypatch.setattr(lifecycle, "start_daemon", counted)

    assert threads.run(lambda: None).wait(5)
    assert len(started) == 2
    threads.release(2)
