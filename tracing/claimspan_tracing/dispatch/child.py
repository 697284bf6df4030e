"""The judging process: ``python -m claimspan_tracing.dispatch.child``.

It has a judge and nothing else: no spans, no count of the budget, no ground truths. Its standard
input is a socket, by which both talk in lines of JSON. It ends when that is closed, however the
application ends.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
import select
import signal
import socket
import threading
import time
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import asynccontextmanager
from contextlib import suppress as ignore
from contextvars import Context
from typing import Final

from pydantic import JsonValue

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
from claimspan_tracing.suppression import suppress
from claimspan_tracing.text import clean

__all__: list[str] = []

NICENESS: Final = 10
"""Of this process: if the machine has no core to spare, the application comes first."""

MAX_LOGGED: Final = 2_000
"""Characters of a line for the log."""


class _Child:
    """Judges the monitor's questions, on the event loop of the main thread."""

    def __init__(self) -> None:
        # What a judge reads is not ours, and what it prints is no output of the application's.
        self._socket = socket.socket(fileno=os.dup(0))
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
        self._lock = threading.Lock()
        self._lines = self._socket.makefile("rb")
        first = self._lines.readline()
        if not first:  # the application has ended
            os._exit(0)
        _, content, self._log_level = json.loads(first)
        self._set_up = SetUp.model_validate_json(content)
        self._pace = CpuShare(self._set_up.max_cpu_share, whole_process=True)
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(DaemonExecutor(self._pace))
        self._pace.install(self._loop)
        self._under_way: dict[int, asyncio.Task[None]] = {}
        self._reported = 0.0

    def run(self) -> None:
        threading.Thread(target=self._listen, name="claimspan-lines", daemon=True).start()
        logging.basicConfig(level=self._log_level, handlers=[_LogHandler(self)])
        try:
            self._judges = [
                (spec.make(), Selection.from_data(metrics))
                for spec, metrics in zip(self._set_up.judges, self._set_up.metrics, strict=True)
            ]
        except BaseException as error:  # noqa: BLE001 - the module of a judge may raise anything
            shown = str(error) if isinstance(error, ClaimspanError) else type(error).__name__
            self.tell("refused", clean(shown))
            os._exit(0)
        asyncio.set_event_loop(self._loop)
        self.tell("ready")
        while True:
            # A callback of a judge that calls sys.exit must not end the others.
            with ignore(BaseException):
                self._loop.run_forever()

    def tell(self, what: str, *values: JsonValue, is_worth_a_wait: bool = True) -> None:
        """Send the monitor a line, from any thread; one not worth a wait may be dropped."""
        line = json.dumps([what, *values]).encode() + b"\n"
        with self._lock, ignore(OSError):  # the application has ended
            if is_worth_a_wait or select.select((), (self._socket,), (), 0)[1]:
                self._socket.sendall(line)

    def _listen(self) -> None:
        # A thread of its own: a judge that blocks the loop keeps this process no longer.
        with ignore(OSError):  # the application was killed
            for line in self._lines:
                said = json.loads(line)
                if said == ["release"]:
                    self._pace.release()
                else:
                    self._loop.call_soon_threadsafe(self._hear, said, context=Context())
        os._exit(0)  # at once: native code may be under way

    def _hear(self, said: JsonValue) -> None:
        match said:
            case ["judge", int(number), int(judge), str(record), (str() | None) as limits]:
                budget = _MonitorBudget(self, number, *json.loads(limits)) if limits else None
                call = self._judge(number, judge, record, budget)
                self._under_way[number] = self._loop.create_task(call, context=Context())
            case ["cancel", int(number)] if number in self._under_way:
                self._under_way[number].cancel()
            case ["answer", str(key), (str() | None) as refusal, bool(is_of_record)]:
                asked = self.asked.pop(key, None)
                if asked is None or not asked.set_running_or_notify_cancel():
                    return  # it was given up meanwhile
                if refusal is None:
                    asked.set_result(None)
                else:
                    kind = RecordLimitError if is_of_record else BudgetExceededError
                    asked.set_exception(kind(refusal))
            case _:  # its end was told before the cancellation was heard
                pass

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
        used = self._reported - before
        self.tell(state, number, result, unbooked.model_dump_json(), used)


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
        """Spending without a reservation, for the application to book."""
        self._child = child
        self._question = question
        self._counts_tokens = counts_tokens
        self._booked = Usage()

    @property
    def counts_tokens(self) -> bool:
        return self._counts_tokens

    def booked_for(self, meter: Meter) -> Usage:
        """As in the base class; there is one record."""
        return self._booked

    @asynccontextmanager
    async def reserve(self, maximum: Usage) -> AsyncGenerator[Reservation]:
        child, reservation, spent = self._child, Reservation(maximum), Usage()
        key, asked = secrets.token_hex(8), Future[None]()
        child.asked[key] = asked  # of any thread: a judge may have an event loop of its own
        child.tell("reserve", key, self._question, maximum.model_dump_json())
        try:
            await asyncio.wrap_future(asked)
            try:
                yield reservation
            finally:
                spent = reservation.spent
        finally:
            # Also if this was cancelled first: the budget may have room for the call by now.
            child.asked.pop(key, None)
            child.tell("spent", key, spent.model_dump_json())
            self._booked += spent

    async def check(self) -> None:
        """As in the base class; the application has checked before it asked."""

    async def book(self, usage: Usage) -> None:
        self.unbooked += usage


class _LogHandler(logging.Handler):
    """Leaves the log of this process to the application's."""

    def __init__(self, child: _Child) -> None:
        super().__init__()
        self._child = child

    def emit(self, record: logging.LogRecord) -> None:
        # Without its traceback, which may quote what a judge has read.
        with ignore(Exception):
            line = record.name, record.levelno, record.getMessage()[:MAX_LOGGED]
            self._child.tell("log", *line, is_worth_a_wait=False)


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
    _Child().run()
