"""One judging process, as the application sees it: its questions, its answers and its end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
import sysconfig
from contextlib import suppress
from contextvars import Context
from typing import Final
from weakref import WeakSet

from claimspan import Evaluation, RagRecord
from claimspan.cost.budget import Budget
from claimspan.cost.usage import Usage
from claimspan.errors import BudgetExceededError, JudgeError, RecordLimitError
from claimspan_tracing.blocking import free_context
from claimspan_tracing.dispatch.frames import (
    LENGTH_BYTES,
    Answer,
    Ask,
    Booked,
    Cancel,
    Checked,
    Failed,
    Judged,
    Logged,
    NotReady,
    Ready,
    Release,
    Reserve,
    Settled,
    SetUp,
    ToChild,
    ToParent,
    child_frame,
    from_child,
    length_of,
)
from claimspan_tracing.dispatch.judge_errors import ChildJudgeError, ChildUnavailableError
from claimspan_tracing.dispatch.pacing import CpuShare

__all__ = ["ChildProcess", "ProcessEndedError"]

HEED_SECONDS: Final = 10.0
"""How long the process may take to leave off a record that nobody waits for any more; one that
computes without a pause is ended, so that it can judge the others."""

REAP_SECONDS: Final = 1.0
"""How long a process that was killed may take to end."""

MODULE: Final = "claimspan_tracing.dispatch.judging_child"

_logger: Final = logging.getLogger("claimspan")


class ProcessEndedError(JudgeError):
    """The judging process has ended with a question unanswered."""


class Question:
    """A record that is being judged, and who pays for it."""

    def __init__(self, number: int, judge: int, budget: Budget | None, context: Context) -> None:
        """Begin without an answer.

        Args:
            number: Names the question.
            judge: Number of the judge.
            budget: The application's budget.
            context: Has the meter of the record, by which the budget knows it.
        """
        self.number: Final = number
        self.judge: Final = judge
        self.budget: Final = budget
        self.context: Final = context
        self.answer: Final[asyncio.Future[Evaluation]] = asyncio.get_running_loop().create_future()
        self.spent: Final[dict[str, asyncio.Future[Usage]]] = {}
        """What the calls under way have cost, once that is known."""

    def ask(self, record: RagRecord) -> Ask:
        """Return the message that asks."""
        budget = self.budget
        return Ask(
            number=self.number,
            judge=self.judge,
            record=record,
            has_budget=budget is not None,
            calls_per_record=None if budget is None else budget.calls_per_record,
            tokens_per_record=None if budget is None else budget.tokens_per_record,
        )


class ChildProcess:
    """A judging process that was started. Everything but ``kill`` runs on the judge's loop."""

    def __init__(self, set_up: SetUp, pace: CpuShare) -> None:
        """Start the process.

        Args:
            set_up: What it judges with.
            pace: Counts what it computes.

        Raises:
            OSError: It cannot be started.
        """
        self._pace = pace
        self._questions: dict[int, Question] = {}
        self._unheeded: set[int] = set()
        # Reservations under way, which outlast the question that they are made for.
        self._booking: set[asyncio.Task[None]] = set()
        self._n_asked = 0
        self.loop: Final = asyncio.get_running_loop()
        self.ready: Final[asyncio.Future[None]] = self.loop.create_future()
        """Done when the judges are made; has the error where they cannot be."""
        self.has_ended = False
        ours, theirs = socket.socketpair()
        with theirs:
            self._socket = ours
            self._process = _started(theirs)
        _running.add(self)
        self._reading = self.loop.create_task(self._read(set_up), context=free_context())

    # --- on the judge's loop ---

    async def judge(self, question: Question, record: RagRecord) -> Evaluation:
        """Have a record judged.

        Raises:
            ProcessEndedError: The process has ended meanwhile.
            JudgeError: The judge has failed.
        """
        self._questions[question.number] = question
        try:
            self._send(question.ask(record))
            return await question.answer
        except asyncio.CancelledError:
            # It stays a question until the process has left it off: what it has cost comes first.
            self._cancel(question.number)
            raise

    def new_question(self, judge: int, budget: Budget | None, context: Context) -> Question:
        """Return a question to this process; the arguments are those of ``Question``."""
        self._n_asked += 1
        return Question(self._n_asked, judge, budget, context)

    def release(self) -> None:
        """Let it judge with the whole of a core; no effect before it is ready."""
        if self.ready.done() and not self.has_ended:
            self._send(Release())

    def kill(self, timeout: float = REAP_SECONDS) -> None:
        """End the process, whatever it does, and reap it; on any thread."""
        with suppress(OSError):
            self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout)

    def forget_in_fork(self) -> None:
        """Leave the process to the parent of this one: it ends with the parent alone."""
        # Without this copy of the socket closed, it would outlive the parent.
        self._socket.close()
        self._process.returncode = 0

    async def _read(self, set_up: SetUp) -> None:
        """Take what the process says, until it has ended."""
        reason = "its socket was closed"
        writer: asyncio.StreamWriter | None = None
        try:
            reader, writer = await asyncio.open_connection(sock=self._socket)
            self._writer = writer
            self._send(set_up)
            while True:
                head = await reader.readexactly(LENGTH_BYTES)
                self._take(from_child(await reader.readexactly(length_of(head))))
        except (asyncio.IncompleteReadError, OSError):
            pass
        except Exception as error:  # noqa: BLE001 - what cannot be read is of a process that is no use
            reason = f"it said what cannot be read ({type(error).__name__})"
        finally:
            self.kill()
            if writer is not None:
                writer.close()
            self._end(_how(self._process.returncode) or reason)

    def _end(self, reason: str) -> None:
        self.has_ended = True
        _running.discard(self)
        error = ProcessEndedError(f"the judging process has ended: {reason}")
        if not self.ready.done():
            self.ready.set_exception(error)
            self.ready.exception()  # nobody may wait for it
        for question in self._questions.values():
            if not question.answer.done():
                question.answer.set_exception(error)
                question.answer.exception()
        # A call that nobody knows the cost of is booked at its upper bound.
        for task in self._booking:
            task.cancel()

    def _send(self, message: ToChild) -> None:
        self._writer.write(child_frame(message))

    def _cancel(self, number: int) -> None:
        if self.has_ended:
            return
        self._unheeded.add(number)
        self._send(Cancel(number=number))
        self.loop.call_later(HEED_SECONDS, self._kill_unless_heeded, number)

    def _kill_unless_heeded(self, number: int) -> None:
        if number in self._unheeded and not self.has_ended:
            self.kill()

    def _take(self, message: ToParent) -> None:
        match message:
            case Ready():
                self.ready.set_result(None)
            case NotReady():
                self.ready.set_exception(ChildJudgeError(message.reason, is_ours=True))
                self.ready.exception()
            case Judged() | Failed():
                self._answered(message)
            case Logged():
                logging.getLogger(message.logger).log(message.level, "%s", message.text)
            case Reserve() | Settled() | Checked() | Booked():
                self._book(message)

    def _answered(self, message: Judged | Failed) -> None:
        self._pace.count(message.cpu_seconds)
        self._unheeded.discard(message.number)
        question = self._questions.pop(message.number, None)
        if question is None or question.answer.done():
            return
        if isinstance(message, Judged):
            question.answer.set_result(message.evaluation)
        else:
            question.answer.set_exception(_error_of(message))

    # --- the budget ---

    def _book(self, message: Reserve | Settled | Checked | Booked) -> None:
        question = self._questions.get(message.number)
        if isinstance(message, Settled):
            spent = None if question is None else question.spent.get(message.key)
            if spent is not None and not spent.done():
                spent.set_result(message.spent)
            return
        if question is None or question.budget is None:
            return
        match message:
            case Reserve():
                question.spent[message.key] = self.loop.create_future()
                call = self._reserve(question, question.budget, message)
            case Checked():
                call = self._check(question.budget, message)
            case Booked():
                call = question.budget.book(message.usage)
        task = self.loop.create_task(call, context=question.context)
        self._booking.add(task)
        task.add_done_callback(self._booking.discard)

    async def _reserve(self, question: Question, budget: Budget, message: Reserve) -> None:
        try:
            async with budget.reserve(message.maximum) as reservation:
                self._send(Answer(key=message.key, refusal="", is_of_record=False))
                reservation.spent = await question.spent[message.key]
        except BudgetExceededError as error:
            self._send(_refusal(message.key, error))
        finally:
            del question.spent[message.key]

    async def _check(self, budget: Budget, message: Checked) -> None:
        try:
            await budget.check()
        except BudgetExceededError as error:
            self._send(_refusal(message.key, error))
        else:
            self._send(Answer(key=message.key, refusal="", is_of_record=False))


_running: Final[WeakSet[ChildProcess]] = WeakSet()


def _forget_all_in_fork() -> None:
    for each in list(_running):
        each.forget_in_fork()
    _running.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget_all_in_fork)


def _started(theirs: socket.socket) -> subprocess.Popen[bytes]:
    # Spans of the judge's requests are the application's to make, and it has switched them off.
    environment = {**os.environ, "PYTHONPATH": _import_path(), "OTEL_SDK_DISABLED": "true"}
    return subprocess.Popen(  # noqa: S603 - our own module, by the interpreter that runs us
        [sys.executable, "-P", "-m", MODULE, str(theirs.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        env=environment,
        pass_fds=(theirs.fileno(),),
    )


def _import_path() -> str:
    """What this process can import, and nothing that only lies in the working directory.

    The standard library comes first. An application may put a folder in front of it that has a
    ``json.py``: the application has imported its own ``json`` by then, but a new process has not.
    """
    standard = (sysconfig.get_path("stdlib"), sysconfig.get_config_var("DESTSHARED"))
    known = [each for each in standard if each]  # not every build tells where its extensions are
    paths = [os.path.abspath(each) for each in (*known, *sys.path)]
    return os.pathsep.join(dict.fromkeys(paths))


def _error_of(message: Failed) -> JudgeError:
    match message.why:
        case "budget":
            return BudgetExceededError(message.reason)
        case "unavailable":
            return ChildUnavailableError(message.reason, is_ours=message.is_ours)
        case _:
            return ChildJudgeError(message.reason, is_ours=message.is_ours)


def _refusal(key: str, error: BudgetExceededError) -> Answer:
    is_of_record = isinstance(error, RecordLimitError)
    return Answer(key=key, refusal=str(error), is_of_record=is_of_record)


def _how(code: int | None) -> str:
    """How a process has ended, by its exit code; empty where that says nothing."""
    if not code:
        return ""
    if code > 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return signal.Signals(-code).name
    return f"signal {-code}"
