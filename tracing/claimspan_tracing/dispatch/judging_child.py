"""The judging process: ``python -m claimspan_tracing.dispatch.judging_child FD``.

It has a judge and nothing else: no spans, no budget, no ground truths. It ends when the socket to
the application closes, however the application has ended.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from contextlib import suppress as ignore
from contextvars import Context
from typing import Final, Literal

from claimspan import aevaluate
from claimspan.concurrency import keep_pace
from claimspan.errors import (
    BudgetExceededError,
    ClaimspanError,
    JudgeError,
    JudgeUnavailableError,
)
from claimspan.evaluation.selection import Selection
from claimspan.judges import Judge
from claimspan_tracing.dispatch.daemon_executor import DaemonExecutor
from claimspan_tracing.dispatch.forwarded_budget import ForwardedBudget
from claimspan_tracing.dispatch.frames import (
    LENGTH_BYTES,
    Answer,
    Ask,
    Cancel,
    Failed,
    Judged,
    Logged,
    NotReady,
    Ready,
    Release,
    SetUp,
    ToChild,
    ToParent,
    length_of,
    parent_frame,
    to_child,
)
from claimspan_tracing.dispatch.judge_errors import is_raised_by_us
from claimspan_tracing.dispatch.pacing import CpuShare
from claimspan_tracing.suppression import suppress

__all__ = ["main"]

NICENESS: Final = 10
"""Of this process: where the machine has no core to spare, the application comes first."""

MAX_LOGGED: Final = 2_000
"""Characters of a line for the log."""


class Line:
    """The socket to the application."""

    def __init__(self, descriptor: int) -> None:
        """Take over the socket that the application has left open."""
        self._socket = socket.socket(fileno=descriptor)
        self._sending = threading.Lock()

    def send(self, message: ToParent) -> None:
        """Send a message, from any thread; without an application to send it to, end."""
        try:
            with self._sending:
                self._socket.sendall(parent_frame(message))
        except OSError:
            end()

    def receive(self) -> ToChild | None:
        """Return the next message; None where the application has ended."""
        head = self._read(LENGTH_BYTES)
        body = None if head is None else self._read(length_of(head))
        return None if body is None else to_child(body)

    def _read(self, size: int) -> bytes | None:
        read = bytearray()
        while len(read) < size:
            try:
                part = self._socket.recv(size - len(read))
            except OSError:
                return None
            if not part:
                return None
            read += part
        return bytes(read)


class Judging:
    """Judges what the application asks for, on the event loop of the main thread."""

    def __init__(
        self, line: Line, judges: list[tuple[Judge, Selection]], max_cpu_share: float
    ) -> None:
        """Prepare the loop.

        Args:
            line: The socket to the application.
            judges: The judges, by the number that questions name, each with what it measures.
            max_cpu_share: Share of a core that this process may take.
        """
        self._line = line
        self._judges = judges
        self._pace = CpuShare(max_cpu_share, whole_process=True)
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(DaemonExecutor(self._pace))
        self._pace.install(self._loop)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._budgets: dict[int, ForwardedBudget] = {}
        self._reported = 0.0

    def run(self) -> None:
        """Judge until the application has ended."""
        asyncio.set_event_loop(self._loop)
        threading.Thread(target=self._receive, name="claimspan-line", daemon=True).start()
        while True:
            # A callback of a judge that calls sys.exit must not end the others.
            with ignore(BaseException):
                self._loop.run_forever()

    def _receive(self) -> None:
        # A thread of its own: a judge that blocks the loop keeps this process no longer.
        while (message := self._line.receive()) is not None:
            self._loop.call_soon_threadsafe(self._take, message, context=Context())
        end()

    def _take(self, message: ToChild) -> None:
        match message:
            case Ask():
                task = self._loop.create_task(self._judge(message), context=Context())
                self._tasks[message.number] = task
            case Cancel() if message.number in self._tasks:
                self._tasks[message.number].cancel()
            case Answer():
                for budget in self._budgets.values():
                    budget.take(message)
            case Release():
                self._pace.release()
            case _:
                pass

    async def _judge(self, ask: Ask) -> None:
        suppress()
        keep_pace(self._pace)
        budget = ForwardedBudget(ask, self._line.send) if ask.has_budget else None
        if budget is not None:
            self._budgets[ask.number] = budget
        try:
            judge, selection = self._judges[ask.judge]
            evaluation = await aevaluate(ask.record, judge=judge, metrics=selection, budget=budget)
        except BaseException as error:  # noqa: BLE001 - a judge may raise anything; the application is told
            self._line.send(self._failed(ask.number, error))
        else:
            cpu = self._cpu_seconds()
            self._line.send(Judged(number=ask.number, evaluation=evaluation, cpu_seconds=cpu))
        finally:
            del self._tasks[ask.number]
            self._budgets.pop(ask.number, None)

    def _failed(self, number: int, error: BaseException) -> Failed:
        why: Literal["budget", "unavailable", "judge", "cancelled"] = "judge"
        reason, is_ours = str(error), is_raised_by_us(error)
        match error:
            case BudgetExceededError():
                why = "budget"
            case JudgeUnavailableError():
                why = "unavailable"
            case asyncio.CancelledError():
                why = "cancelled"
            case JudgeError():
                pass
            case _:
                reason, is_ours = f"the judge raised {type(error).__name__}", True
        cpu = self._cpu_seconds()
        return Failed(number=number, why=why, reason=reason, is_ours=is_ours, cpu_seconds=cpu)

    def _cpu_seconds(self) -> float:
        """CPU time of this process since the last report."""
        before, self._reported = self._reported, time.process_time()
        return self._reported - before


class LineHandler(logging.Handler):
    """Sends the log of this process to the application's."""

    def __init__(self, line: Line) -> None:
        """Take records of every level that loggers let through."""
        super().__init__()
        self._line = line

    def emit(self, record: logging.LogRecord) -> None:
        """Send a record; a traceback stays here, as it may quote what a judge has read."""
        with ignore(Exception):
            text = record.getMessage()[:MAX_LOGGED]
            self._line.send(Logged(logger=record.name, level=record.levelno, text=text))


def end() -> None:
    """End at once: nothing here has to be put away, and native code may be under way."""
    os._exit(0)


def main(descriptor: int) -> None:
    """Judge for the application at the other end of a socket, until it ends.

    Args:
        descriptor: File descriptor of the socket.
    """
    _stand_apart()
    line = Line(descriptor)
    message = line.receive()
    if not isinstance(message, SetUp):
        end()
        return
    logging.basicConfig(level=message.log_level, handlers=[LineHandler(line)])
    try:
        judges = [
            (spec.make(), Selection.from_data(metrics))
            for spec, metrics in zip(message.judges, message.metrics, strict=True)
        ]
    except BaseException as error:  # noqa: BLE001 - the module of a judge may raise anything
        shown = str(error) if isinstance(error, ClaimspanError) else type(error).__name__
        line.send(NotReady(reason=shown))
        end()
        return
    line.send(Ready())
    Judging(line, judges, message.max_cpu_share).run()


def _stand_apart() -> None:
    """Stay out of the way of the application: of its terminal, its signals and its cores."""
    # Whoever ends the application signals its whole group. It still has records to be judged then,
    # and we end with it.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    with ignore(OSError):
        os.dup2(2, 1)  # what a judge prints is no output of the application's
    if hasattr(os, "nice"):
        with ignore(OSError):
            os.nice(NICENESS)


if __name__ == "__main__":
    main(int(sys.argv[1]))
