"""The judging process: ``python -m claimspan_tracing.dispatch.child FOLDER NUMBER``.

It has a judge and nothing else: no spans, no count of the budget, no ground truths. Its standard
input is a socket, by which both ring. It ends when that is closed, however the application ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextlib import suppress as ignore
from contextvars import Context
from pathlib import Path
from typing import Final

from claimspan import RagRecord, aevaluate
from claimspan.concurrency import keep_pace
from claimspan.cost.budget import Budget, Reservation
from claimspan.cost.usage import Meter, Usage
from claimspan.errors import (
    BudgetExceededError,
    ClaimspanError,
    JudgeError,
    JudgeUnavailableError,
    RecordLimitError,
)
from claimspan.evaluation.selection import Selection
from claimspan_tracing.dispatch.daemon_executor import DaemonExecutor
from claimspan_tracing.dispatch.pacing import CpuShare
from claimspan_tracing.dispatch.process import Failure, SetUp, is_raised_by_us
from claimspan_tracing.dispatch.questions import READY, RELEASE, RING, QuestionFile
from claimspan_tracing.suppression import suppress
from claimspan_tracing.text import clean

__all__: list[str] = []

ALONE: Final = 2
"""Processes that have died with a record under way, after which it is judged by itself."""

NICENESS: Final = 10
"""Of this process: if the machine has no core to spare, the application comes first."""

MAX_LOGGED: Final = 2_000
"""Characters of a line for the log."""

MOST_LINES: Final = 1_000
"""Lines that wait for the log of the application; later ones are dropped."""


class _Child:
    """Judges what the monitor asks for, on the event loop of the main thread."""

    def __init__(self, folder: Path, number: int) -> None:
        # What a judge reads is no ring, and what it prints is no output of the application's.
        self._bell = socket.socket(fileno=os.dup(0))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        with ignore(OSError):
            os.dup2(2, 1)
        # Who ends the application signals its whole group. It still has records to be judged
        # then, and we end with it.
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
        with ignore(OSError):
            os.nice(NICENESS)
        self.asked: Final[dict[str, Future[None]]] = {}
        """Reservations that the budget has not decided on."""
        self._number = number
        self._file = QuestionFile(folder)
        self.sql: Final = self._file.sql
        told = self.sql.execute("SELECT content, log_level FROM set_up").fetchone()
        content, self._log_level = told
        self._set_up = SetUp.model_validate_json(content)
        self._pace = CpuShare(self._set_up.max_cpu_share, whole_process=True)
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(DaemonExecutor(self._pace))
        self._pace.install(self._loop)
        self._under_way: dict[int, tuple[int, asyncio.Task[None]]] = {}
        self._reported = 0.0

    def run(self) -> None:
        """Make the judges, and judge until the application has ended."""
        threading.Thread(target=self._listen, name="claimspan-bell", daemon=True).start()
        logging.basicConfig(level=self._log_level, handlers=[_LogHandler(self)])
        try:
            self._judges = [
                (spec.make(), Selection.from_data(metrics))
                for spec, metrics in zip(self._set_up.judges, self._set_up.metrics, strict=True)
            ]
        except BaseException as error:  # noqa: BLE001 - the module of a judge may raise anything
            shown = str(error) if isinstance(error, ClaimspanError) else type(error).__name__
            self.sql.execute("UPDATE set_up SET refusal=?", (clean(shown),))
            os._exit(0)
        asyncio.set_event_loop(self._loop)
        self._loop.call_soon(self._look, context=Context())
        with ignore(OSError):  # the application has ended
            self._bell.sendall(READY)
        while True:
            # A callback of a judge that calls sys.exit must not end the others.
            with ignore(BaseException):
                self._loop.run_forever()

    def ring(self) -> None:
        """Have the monitor look into the file."""
        with ignore(OSError):  # it has rung often enough, or the application has ended
            self._bell.send(RING, socket.MSG_DONTWAIT)

    def _listen(self) -> None:
        # A thread of its own: a judge that blocks the loop keeps this process no longer.
        try:
            while rung := self._bell.recv(4_096):
                if RELEASE in rung:
                    self._pace.release()
                self._loop.call_soon_threadsafe(self._look, context=Context())
        finally:
            shutil.rmtree(self._file.folder, ignore_errors=True)
            os._exit(0)  # at once: native code may be under way

    def _look(self) -> None:
        """Take what the monitor has written since the last look."""
        try:
            cancelled: list[tuple[int]] = self.sql.execute(
                "SELECT number FROM question WHERE state='cancelled'"
            ).fetchall()
            answered: list[tuple[str, str | None, bool]] = self.sql.execute(
                "UPDATE reservation SET state='heard' WHERE state='answered' "
                "RETURNING key, refusal, is_of_record"
            ).fetchall()
            waiting: list[tuple[int, int]] = self.sql.execute(
                "SELECT number, deaths FROM question WHERE state='waiting' ORDER BY -deaths, number"
            ).fetchall()
            for number, deaths in waiting:
                # A record that was under way when a process died may be what killed it. One of
                # these at a time goes on beside others, and after a second death it goes on by
                # itself: if the process dies once more, no other record fails for it.
                most = max((each for each, _ in self._under_way.values()), default=0)
                is_alone = max(deaths, most) >= ALONE
                if not self._under_way if is_alone else not (deaths and most):
                    self._begin(number, deaths)
        except sqlite3.Error:
            os._exit(os.EX_IOERR)
        for (number,) in cancelled:
            if number in self._under_way:
                self._under_way[number][1].cancel()
        for key, refusal, is_of_record in answered:
            asked = self.asked.pop(key, None)
            if asked is None or not asked.set_running_or_notify_cancel():
                continue  # it was given up meanwhile
            if refusal is None:
                asked.set_result(None)
            else:
                kind = RecordLimitError if is_of_record else BudgetExceededError
                asked.set_exception(kind(refusal))

    def _begin(self, number: int, deaths: int) -> None:
        row: tuple[int, str, str | None] | None = self.sql.execute(
            "UPDATE question SET state='taken', owner=? WHERE number=? AND state='waiting' "
            "RETURNING judge, record, limits",
            (self._number, number),
        ).fetchone()
        if row is None:  # it was cancelled meanwhile
            return
        judge, record, limits = row
        budget = None if limits is None else _MonitorBudget(self, number, *json.loads(limits))
        task = self._loop.create_task(self._judge(number, judge, record, budget), context=Context())
        self._under_way[number] = deaths, task

    async def _judge(
        self, number: int, judge: int, record: str, budget: _MonitorBudget | None
    ) -> None:
        suppress()
        keep_pace(self._pace)
        state, (chosen, metrics) = "judged", self._judges[judge]
        try:
            found = await aevaluate(
                RagRecord.model_validate_json(record), judge=chosen, metrics=metrics, budget=budget
            )
            result = found.model_dump_json()
        except BaseException as error:  # noqa: BLE001 - a judge may raise anything; the monitor is told
            state, result = "failed", _failure(error).model_dump_json()
        del self._under_way[number]
        unbooked = Usage() if budget is None else budget.unbooked
        # CPU time of this process since the last report.
        before, self._reported = self._reported, time.process_time()
        row = (state, result, unbooked.model_dump_json(), self._reported - before)
        try:
            self.sql.execute(
                "UPDATE question SET state=?, result=?, unbooked=?, cpu_seconds=? "
                "WHERE number=? AND owner=?",
                (*row, number, self._number),
            )
        except sqlite3.Error:
            os._exit(os.EX_IOERR)
        self.ring()
        self._look()  # others may have waited for its end


class _MonitorBudget(Budget):
    """Reserves each call of one record with the budget of the application, which alone counts."""

    def __init__(
        self,
        child: _Child,
        question: int,
        counts_tokens: bool,
        calls_per_record: int | None,
        tokens_per_record: int | None,
    ) -> None:
        super().__init__(calls_per_record=calls_per_record, tokens_per_record=tokens_per_record)
        self.unbooked = Usage()
        """What was spent without a reservation, for the application to book."""
        self._child = child
        self._question = question
        self._counts_tokens = counts_tokens
        self._booked = Usage()

    @property
    def counts_tokens(self) -> bool:
        """As in the base class."""
        return self._counts_tokens

    def booked_for(self, meter: Meter) -> Usage:
        """As in the base class; there is one record."""
        return self._booked

    @asynccontextmanager
    async def reserve(self, maximum: Usage) -> AsyncGenerator[Reservation]:
        """As in the base class."""
        child, reservation, spent = self._child, Reservation(maximum), Usage()
        key, asked = secrets.token_hex(8), Future[None]()
        child.asked[key] = asked  # of any thread: a judge may have an event loop of its own
        wanted = "INSERT INTO reservation (key, question, maximum) VALUES (?, ?, ?)"
        child.sql.execute(wanted, (key, self._question, maximum.model_dump_json()))
        child.ring()
        try:
            await asyncio.wrap_future(asked)
            try:
                yield reservation
            finally:
                spent = reservation.spent
        finally:
            # Also if this was cancelled first: the budget may have room for the call by now.
            child.asked.pop(key, None)
            settled = "UPDATE reservation SET state='spent', spent=? WHERE key=?"
            child.sql.execute(settled, (spent.model_dump_json(), key))
            child.ring()
            self._booked += spent

    async def check(self) -> None:
        """As in the base class; the application has checked before it asked."""

    async def book(self, usage: Usage) -> None:
        """As in the base class."""
        self.unbooked += usage


class _LogHandler(logging.Handler):
    """Leaves the log of this process to the application's."""

    def __init__(self, child: _Child) -> None:
        super().__init__()
        self._child = child

    def emit(self, record: logging.LogRecord) -> None:
        # Without its traceback, which may quote what a judge has read.
        with ignore(Exception):
            self._child.sql.execute(
                "INSERT INTO log (logger, level, text) SELECT ?, ?, ? "
                "WHERE (SELECT count(*) FROM log) < ?",
                (record.name, record.levelno, record.getMessage()[:MAX_LOGGED], MOST_LINES),
            )
            self._child.ring()


def _failure(error: BaseException) -> Failure:
    reason, is_ours = clean(str(error)), is_raised_by_us(error)
    match error:
        case BudgetExceededError():
            return Failure(kind="budget", reason=reason, is_ours=is_ours)
        case JudgeUnavailableError():
            return Failure(kind="unavailable", reason=reason, is_ours=is_ours)
        case JudgeError():
            return Failure(kind="judge", reason=reason, is_ours=is_ours)
        case _:
            raised = f"the judge raised {type(error).__name__}"
            return Failure(kind="judge", reason=raised, is_ours=True)


if __name__ == "__main__":
    _Child(Path(sys.argv[1]), int(sys.argv[2])).run()
