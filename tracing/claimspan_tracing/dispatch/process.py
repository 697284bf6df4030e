"""Has records judged in a process of its own, which is started again when it dies."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import sysconfig
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeVar
from weakref import WeakSet

from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter, ValidationError

from claimspan import Evaluation, RagRecord
from claimspan.cost.budget import Budget
from claimspan.cost.usage import Usage, metered
from claimspan.daemon_threads import has_greenlets
from claimspan.errors import (
    BudgetExceededError,
    ConfigError,
    JudgeError,
    JudgeUnavailableError,
    RecordLimitError,
)
from claimspan.evaluation.selection import Selection
from claimspan.judges import JUDGE_VARIABLE, Judge, default_judge
from claimspan.judges.choice import JudgeLike, environment_options
from claimspan.judges.protocol import PortableJudge
from claimspan.loading import load_object
from claimspan_tracing.blocking import free_context
from claimspan_tracing.decide.sampling import Sampler, first_judge_of
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.pacing import CpuShare
from claimspan_tracing.dispatch.questions import READY, RELEASE, RING, QuestionFile

__all__ = [
    "Failure",
    "JudgeProcess",
    "JudgeSpec",
    "Judging",
    "SetUp",
    "WorkerKind",
    "checked_worker",
    "is_raised_by_us",
    "spec_of",
]

Judging = Callable[[RagRecord], Awaitable[Evaluation]]
"""Evaluates a record; raises a ``JudgeError`` if the judge fails."""

WorkerKind = Literal["thread", "process"]
"""Where records are judged: on a thread of this process, or in a process of its own."""

WORKER_VARIABLE: Final = "CLAIMSPAN_WORKER"
"""Environment variable that says where records are judged, if the option does not."""

MODULE: Final = "claimspan_tracing.dispatch.child"

START_SECONDS: Final = 60.0
"""How long a judge may take to be made: its module may import a framework."""

HEED_SECONDS: Final = 10.0
"""How long the process may take to leave off a record that is waited for no longer; one that
computes without a pause is ended, so that the others can be judged."""

REAP_SECONDS: Final = 1.0
"""How long a process that was killed may take to end."""

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
"""Seconds before a process that has died is started again; twice as long after each death in a
row, so that a judge that dies at once does not occupy the machine by starting."""

_WAYS: Final = (
    "give a name ('lexical', 'local', 'openai:MODEL'), or a judge with a method arguments() that "
    "returns the keyword arguments of its class as JSON values; else leave worker='process' out"
)
_ARGUMENTS: Final = TypeAdapter[Mapping[str, JsonValue]](Mapping[str, JsonValue])

_T = TypeVar("_T")
_logger: Final = logging.getLogger("claimspan")


# --- what to judge with ---


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSpec:
    """How to make a judge. It is JSON: nothing that is unpickled could run code of others."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str = ""
    """As ``default_judge`` takes it; empty if ``maker`` is given."""

    options: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Options of the judge with that name, as ``default_judge`` takes them."""

    maker: str = ""
    """The class of the judge, as ``package.module:name``."""

    arguments: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """Its keyword arguments."""

    def make(self) -> Judge:
        """Make the judge.

        Raises:
            ConfigError: It cannot be made here.
        """
        if not self.maker:
            return default_judge(self.name, options=self.options)
        made = load_object(self.maker)
        judge = made(**self.arguments) if callable(made) else made
        if not isinstance(judge, Judge):
            raise ConfigError(f"{self.maker} makes a {type(judge).__name__}, which is no judge")
        return judge


def spec_of(given: JudgeLike | None) -> JudgeSpec:
    """Return what another process makes an equal judge from.

    Args:
        given: The judge, the name of one, or None for that of the environment.

    Raises:
        ConfigError: There is no such thing for this judge.
    """
    if given is None or given == "":
        # Read now: a process that is started later has the judge of the monitor all the same.
        chosen = os.environ.get(JUDGE_VARIABLE) or "lexical"
        return JudgeSpec(name=chosen, options=environment_options())
    if isinstance(given, str):
        return JudgeSpec(name=given)
    kind = type(given)
    if not isinstance(given, PortableJudge):
        raise ConfigError(f"worker='process' cannot make a {kind.__name__} in its process: {_WAYS}")
    found: object = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    if found is not kind or kind.__module__ == "__main__":
        raise ConfigError(
            f"worker='process' cannot import {kind.__qualname__} from {kind.__module__!r}: define "
            "the judge at the top of a module that can be imported, not in the script that is run"
        )
    try:
        arguments = _ARGUMENTS.validate_python(given.arguments())
    except ValidationError:
        raise ConfigError(
            f"arguments() of {kind.__name__} returns something else than JSON values by name: "
            f"{_WAYS}"
        ) from None
    return JudgeSpec(maker=f"{kind.__module__}:{kind.__qualname__}", arguments=dict(arguments))


def checked_worker(
    worker: WorkerKind | None,
    judge: JudgeLike | None,
    sampler: Sampler,
    dispatch: Dispatcher | None,
) -> tuple[JudgeSpec, ...]:
    """Return what a process of its own makes the judges from; nothing for a thread.

    Raises:
        ConfigError: There is no such worker, records are judged elsewhere anyway, or the judge
            cannot be made in another process.
    """
    wanted = worker or os.environ.get(WORKER_VARIABLE, "") or "thread"
    if wanted not in ("thread", "process"):
        raise ConfigError(f"worker is {wanted!r}: give 'thread' or 'process'")
    if wanted == "thread" or (dispatch is not None and worker is None):
        return ()
    if dispatch is not None:
        raise ConfigError("worker='process' cannot go with dispatch: leave one of them out")
    if not sys.executable:
        raise ConfigError(
            "worker='process' needs sys.executable, which an embedded interpreter lacks: leave it "
            "out, or set sys.executable to a Python that has the same packages"
        )
    if has_greenlets():
        raise ConfigError(
            "worker='process' cannot start its process where gevent has patched subprocess: leave "
            "it out; the judge has threads of its own there, too"
        )
    first = first_judge_of(sampler)
    return (spec_of(judge), *([] if first is None else [spec_of(first)]))


class SetUp(BaseModel):
    """What a judging process is told before it makes its judges."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    judges: tuple[JudgeSpec, ...]
    metrics: tuple[Mapping[str, JsonValue], ...]
    max_cpu_share: float


# --- how judges fail ---


class Failure(BaseModel):
    """Why a record has no evaluation, as the judging process says it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    kind: Literal["budget", "unavailable", "judge"]
    reason: str
    is_ours: bool

    def error(self) -> JudgeError:
        """The error of the judge."""
        if self.kind == "budget":
            return BudgetExceededError(self.reason)
        kind = ChildUnavailableError if self.kind == "unavailable" else ChildJudgeError
        return kind(self.reason, is_ours=self.is_ours)


class ChildJudgeError(JudgeError):
    """A judge has failed in the judging process."""

    def __init__(self, reason: str, *, is_ours: bool = True) -> None:
        """Set the reason.

        Args:
            reason: What the judge said.
            is_ours: Whether a judge of ours said it, whose messages quote no text of a record.
        """
        self.is_ours = is_ours
        super().__init__(reason)


class CannotStartError(ChildJudgeError):
    """The judging process cannot be started, or its judge cannot be made there."""


class ChildUnavailableError(ChildJudgeError, JudgeUnavailableError):
    """The judge is away, says the judging process."""


def is_raised_by_us(error: BaseException) -> bool:
    """Whether a judge of ours has raised: what judges of others say may quote what they read."""
    if isinstance(error, ChildJudgeError):
        return error.is_ours
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    module = "" if step is None else str(step.tb_frame.f_globals.get("__name__", ""))
    return module.partition(".")[0] == "claimspan"


# --- the process ---


class JudgeProcess:
    """The judging process of a monitor. Runs on the judge's event loop, but for ``close``."""

    def __init__(
        self, specs: Sequence[JudgeSpec], selections: Sequence[Selection], max_cpu_share: float
    ) -> None:
        """Prepare; nothing is started yet.

        Args:
            specs: What the judges are made from.
            selections: What each of them measures.
            max_cpu_share: Share of a core that the process may take.
        """
        self._supervisor: _Supervisor | None = None
        self.pace = CpuShare(max_cpu_share)
        """Counts what the process computes."""
        self.set_up = SetUp(
            judges=tuple(specs),
            metrics=tuple(each.data() for each in selections),
            max_cpu_share=max_cpu_share,
        )
        """What the next process is told."""

    def judging(self, judge: int, budget: Budget | None) -> Judging:
        """Return what evaluates with one of the judges.

        Args:
            judge: Its place in the specs.
            budget: Bounds it; counted in this process.
        """
        return partial(self._evaluate, judge, budget)

    def count_with(self, pace: CpuShare) -> None:
        """Have the CPU time of the process counted, too, by what counts this one's."""
        self.pace = pace

    def warm_up(self) -> None:
        """Start the process before the first record is to be judged."""
        self._on_loop().summon()

    def release(self) -> None:
        """Judge with the whole of a core from now on."""
        self.set_up = self.set_up.model_copy(update={"max_cpu_share": 1.0})
        if self._supervisor is not None:
            self._supervisor.ring(RELEASE)

    def close(self, timeout: float) -> None:
        """End the process, and wait for its end; on any thread."""
        if self._supervisor is not None:
            self._supervisor.end(timeout)

    async def _evaluate(self, judge: int, budget: Budget | None, record: RagRecord) -> Evaluation:
        with metered():  # the budget knows the calls of a record by its meter
            if budget is not None:
                await budget.check()
            return await self._on_loop().evaluate(judge, budget, record)

    def _on_loop(self) -> _Supervisor:
        """Return the supervisor; another one if a thread that hangs was given up."""
        if self._supervisor is None or self._supervisor.loop is not asyncio.get_running_loop():
            if self._supervisor is not None:
                self._supervisor.end(REAP_SECONDS)
            self._supervisor = _Supervisor(self)
        return self._supervisor


@dataclass(frozen=True, slots=True)
class _Question:
    """A record that is being judged, and who pays for it."""

    budget: Budget | None
    context: Context
    """Has the meter by which the budget knows the record."""
    answer: asyncio.Future[Evaluation]


class _Supervisor:
    """What belongs to one event loop: the file, its open questions, and the process in charge.

    A record that was under way when a process died is left to the next one. It fails only if it was
    the only one when another died. Of a process that was ended because it did not leave a record
    off, the reason is known, and no other record is suspected.
    """

    def __init__(self, process: JudgeProcess) -> None:
        self.loop: Final = asyncio.get_running_loop()
        self._process: Final = process
        self._file: QuestionFile | None = None
        self._questions: dict[int, _Question] = {}
        # What calls have cost, by the key of their reservation; None if that is not known.
        self._spent: dict[str, asyncio.Future[Usage | None]] = {}
        # Bookings outlast the question that they are made for.
        self._booking: set[asyncio.Task[None]] = set()
        self._child: _Child | None = None
        self._starting: asyncio.TimerHandle | None = None
        self._n_started = self._deaths = 0
        self._not_before = 0.0
        self._refusal = ""
        self._is_over = False
        _supervisors.add(self)

    async def evaluate(self, judge: int, budget: Budget | None, record: RagRecord) -> Evaluation:
        if self._refusal and time.monotonic() < self._not_before:
            raise CannotStartError(self._refusal)  # the same judge cannot be made now either
        limits = None
        if budget is not None:
            per_record = budget.calls_per_record, budget.tokens_per_record
            limits = json.dumps([budget.counts_tokens, *per_record])
        row = judge, record.model_dump_json(), limits
        asked = "INSERT INTO question (judge, record, limits) VALUES (?, ?, ?) RETURNING number"
        number = self._with_file(lambda file: int(file.sql.execute(asked, row).fetchone()[0]))
        if number is None:
            raise CannotStartError(self._refusal)
        question = _Question(budget, copy_context(), self.loop.create_future())
        self._questions[number] = question
        self.summon()
        try:
            return await question.answer
        except asyncio.CancelledError:
            self._cancel(number)
            raise

    def summon(self) -> None:
        """Have the process look into the file; start one if there is none."""
        if self._child is None and self._starting is None:
            pause = max(0.0, self._not_before - time.monotonic())
            self._starting = self.loop.call_later(
                pause, self._with_file, self._start, context=free_context()
            )
        self.ring(RING)

    def ring(self, what: bytes) -> None:
        if self._child is not None:
            with suppress(OSError):  # it has rung often enough, or the process has ended
                self._child.bell.send(what)

    def end(self, timeout: float, *, is_here: bool = False) -> None:
        """End the process and delete the file.

        Args:
            timeout: Seconds to wait for the end of the process.
            is_here: On the loop, to begin anew; else on any thread, for good.
        """
        child, file = self._child, self._file
        self._is_over = not is_here
        if child is not None:
            child.end(timeout)
        if file is not None:
            file.delete()
        if is_here or not self.loop.is_running():  # else a thread that hangs may be using them
            self._child = self._file = None
            if child is not None:
                self.loop.remove_reader(child.bell)
                child.bell.close()
            if file is not None:
                file.sql.close()

    def forget_in_fork(self) -> None:
        """Leave process and file to the parent of this process: they end with it alone."""
        if self._child is not None:
            # With this copy of the socket open, it would outlive the parent.
            self._child.bell.close()
            self._child.process.returncode = 0
        if self._file is not None:
            self._file.forget_in_fork()
        self._child = self._file = None

    def _with_file(self, use: Callable[[QuestionFile], _T]) -> _T | None:
        """Use the file, or a new one; if that fails, so does every question, and this is None."""
        try:
            if self._file is None:
                self._file = QuestionFile()
            return use(self._file)
        except (OSError, ValueError, RuntimeError, sqlite3.Error, ConfigError) as error:
            raised = type(error).__name__
            self._refuse(f"it cannot be started, or use its file in TMPDIR ({raised})")
            return None

    def _start(self, file: QuestionFile) -> None:
        self._starting = None
        if self._is_over:
            return
        told = (self._process.set_up.model_dump_json(), _logger.getEffectiveLevel())
        file.sql.execute("UPDATE set_up SET content=?, log_level=?, refusal=''", told)
        self._n_started += 1
        child = self._child = _Child(file.folder, self._n_started)
        self.loop.add_reader(child.bell, self._rung, child)
        self.loop.call_later(START_SECONDS, self._end_unless_ready, child)

    def _end_unless_ready(self, child: _Child) -> None:
        if child is self._child and not child.is_ready:
            self._refuse(f"its judge was not made within {START_SECONDS:g} s")

    def _rung(self, child: _Child) -> None:
        try:
            rung = child.bell.recv(4_096)
        except BlockingIOError:
            return
        except OSError:
            rung = b""
        if READY in rung:
            child.is_ready, self._refusal = True, ""
        if rung:
            self._with_file(self._look)
        else:
            self._with_file(partial(self._ended, child))

    def _look(self, file: QuestionFile) -> None:
        """Take what the process has written since the last look."""
        sql = file.sql
        logged: list[tuple[int, str, int, str]] = sql.execute(
            "DELETE FROM log RETURNING number, logger, level, text"
        ).fetchall()
        for _, logger, level, text in sorted(logged):
            logging.getLogger(logger).log(level, "%s", text)
        asked: list[tuple[str, int, str]] = sql.execute(
            "UPDATE reservation SET state='open' WHERE state='asked' "
            "RETURNING key, question, maximum"
        ).fetchall()
        for key, number, maximum in asked:
            question = self._questions.get(number)
            if question is None or question.budget is None:
                # A thread of a judge goes on after its record was left off.
                self._admit(key, BudgetExceededError("its record is judged no longer"))
                continue
            self._spent[key] = self.loop.create_future()
            wanted = Usage.model_validate_json(maximum)
            self._book(question, self._reserve(question.budget, key, wanted))
        settled: list[tuple[str, str]] = sql.execute(
            "DELETE FROM reservation WHERE state='spent' RETURNING key, spent"
        ).fetchall()
        for key, spent in settled:
            if key in self._spent:  # else the call was given up before the budget was asked
                self._spent[key].set_result(Usage.model_validate_json(spent))
        finished: list[tuple[int, str, str, str, float]] = sql.execute(
            "DELETE FROM question WHERE state IN ('judged', 'failed') "
            "RETURNING number, state, result, unbooked, cpu_seconds"
        ).fetchall()
        for number, state, result, unbooked, cpu_seconds in finished:
            self._deaths = 0
            self._process.pace.count(cpu_seconds)
            usage, question = Usage.model_validate_json(unbooked), self._questions[number]
            if question.budget is not None and not usage.is_nothing:
                self._book(question, question.budget.book(usage))
            if state == "judged":
                self._answer(number, Evaluation.model_validate_json(result))
            else:
                self._answer(number, Failure.model_validate_json(result).error())

    def _answer(self, number: int, answer: Evaluation | JudgeError) -> None:
        waiting = self._questions.pop(number).answer
        if waiting.done():  # it was cancelled
            return
        if isinstance(answer, Evaluation):
            waiting.set_result(answer)
        else:
            waiting.set_exception(answer)
            waiting.exception()  # its task may be cancelled at the same time

    # --- the end of a question, and of a process ---

    def _cancel(self, number: int) -> None:
        """Take a question back, or have the process leave it off."""
        if number not in self._questions:
            return
        waiting = "DELETE FROM question WHERE number=? AND state='waiting'"
        taken = "UPDATE question SET state='cancelled' WHERE number=? AND state='taken'"
        if self._with_file(lambda file: file.sql.execute(waiting, (number,)).rowcount):
            del self._questions[number]
            return
        self._with_file(lambda file: file.sql.execute(taken, (number,)))
        self.summon()
        # It stays a question until the process has left it off: what it has cost comes first.
        self.loop.call_later(HEED_SECONDS, self._end_unless_heeded, number, context=free_context())

    def _end_unless_heeded(self, number: int) -> None:
        if self._child is not None and number in self._questions:
            self._with_file(partial(self._ended, self._child, is_overdue=True))

    def _ended(self, child: _Child, file: QuestionFile, *, is_overdue: bool = False) -> None:
        """Leave what the process was judging to the next one."""
        how = child.end(REAP_SECONDS)
        self.loop.remove_reader(child.bell)
        child.bell.close()
        self._child = None
        if self._is_over:
            return
        sql = file.sql
        sql.execute("DELETE FROM reservation WHERE state<>'spent'")
        self._look(file)
        self._settle_rest()
        (refusal,) = sql.execute("SELECT refusal FROM set_up").fetchone()
        if refusal or (self._deaths and not child.is_ready):
            self._refuse(refusal or f"it has ended before its judge was made: {how}")
            return
        under_way: list[tuple[int, int, str]] = sql.execute(
            "SELECT number, deaths, state FROM question WHERE owner=?", (child.number,)
        ).fetchall()
        for number, deaths, state in under_way:
            if state == "taken" and (is_overdue or len(under_way) > 1 or not deaths):
                back = "UPDATE question SET state='waiting', owner=NULL, deaths=? WHERE number=?"
                sql.execute(back, (deaths + (not is_overdue), number))
                continue
            times = "twice" if deaths == 1 else "three times"
            why = f"the judging process has ended: {how}, {times} while this record was judged"
            self._answer(number, ChildJudgeError(why))
            sql.execute("DELETE FROM question WHERE number=?", (number,))
        if not is_overdue:
            self._pause(how)
        if self._questions:
            self.summon()

    def _refuse(self, reason: str) -> None:
        """Fail every question; what comes after a pause is asked anew, with another file."""
        self._refusal = f"the judging process: {reason}"
        self._pause(reason)
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None
        self.end(REAP_SECONDS, is_here=True)
        for number in list(self._questions):
            self._answer(number, CannotStartError(self._refusal))
        self._settle_rest()

    def _pause(self, how: str) -> None:
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._deaths, 10))
        self._deaths += 1
        self._not_before = time.monotonic() + pause
        _logger.warning(
            "claimspan: the judging process has ended (%s); the next starts in %g s", how, pause
        )

    # --- the budget ---

    def _book(self, question: _Question, call: Coroutine[object, object, None]) -> None:
        task = self.loop.create_task(call, context=question.context)
        self._booking.add(task)
        task.add_done_callback(self._booking.discard)

    def _settle_rest(self) -> None:
        """Book the calls of a process that has died, whose cost is not known."""
        for spent in self._spent.values():
            if not spent.done():
                spent.set_result(None)

    async def _reserve(self, budget: Budget, key: str, maximum: Usage) -> None:
        spent = self._spent[key]
        try:
            async with budget.reserve(maximum) as reservation:
                if spent.done():  # the call was given up before it was admitted
                    reservation.spent = Usage()
                    return
                self._admit(key)
                # What is not known is booked at its upper bound, as the call may have been made.
                reservation.spent = await spent or maximum
        except BudgetExceededError as error:
            self._admit(key, error)
        finally:
            del self._spent[key]

    def _admit(self, key: str, error: BudgetExceededError | None = None) -> None:
        answered = "UPDATE reservation SET state='answered', refusal=?, is_of_record=? WHERE key=?"
        row = error and str(error), isinstance(error, RecordLimitError), key
        self._with_file(lambda file: file.sql.execute(answered, row))
        self.ring(RING)


class _Child:
    """A judging process that was started, and the socket by which both ring."""

    def __init__(self, folder: Path, number: int) -> None:
        # What this process can import, and nothing that only lies in the working directory. The
        # standard library comes first. An application may put a folder in front of it that has a
        # ``json.py``: it has imported its own ``json`` by then, but a new process has not.
        standard = (sysconfig.get_path("stdlib"), sysconfig.get_config_var("DESTSHARED"))
        known = [each for each in standard if each]  # not every build tells where extensions are
        paths = dict.fromkeys(os.path.abspath(each) for each in (*known, *sys.path))
        self.bell, theirs = socket.socketpair()
        self.bell.setblocking(False)
        with theirs, ExitStack() as unless_started:
            unless_started.callback(self.bell.close)
            self.process = subprocess.Popen(  # noqa: S603 - our own module, by our interpreter
                [sys.executable, "-P", "-m", MODULE, str(folder), str(number)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                # Spans of the judge's requests are the application's to make, and it makes none.
                env={
                    **os.environ,
                    "PYTHONPATH": os.pathsep.join(paths),
                    "OTEL_SDK_DISABLED": "true",
                },
            )
            unless_started.pop_all()
        self.number: Final = number
        self.is_ready = False
        """Whether its judges are made."""

    def end(self, timeout: float) -> str:
        """End the process, whatever it does, and reap it; returns how it has ended."""
        with suppress(OSError):
            self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout)
        code = self.process.returncode or 0
        with suppress(ValueError):
            return signal.Signals(-code).name
        return f"signal {-code}" if code < 0 else f"exit code {code}"


_supervisors: Final[WeakSet[_Supervisor]] = WeakSet()


def _forget_all_in_fork() -> None:
    for each in list(_supervisors):
        each.forget_in_fork()
    _supervisors.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget_all_in_fork)
