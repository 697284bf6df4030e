"""Has records judged in a process of its own, which is started again when it dies."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Final, Literal
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
from claimspan.judges import Judge, default_judge, default_name
from claimspan.judges.choice import JudgeLike, environment_options
from claimspan.judges.protocol import PortableJudge
from claimspan.loading import load_object
from claimspan_tracing.blocking import free_context
from claimspan_tracing.decide.sampling import Sampler, first_judge_of
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.pacing import CpuShare

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
"""Judges records on a thread of this process, or in a process of its own."""

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

ALONE: Final = 2
"""Processes that have died with a record under way, after which it is judged by itself."""

_WAYS: Final = (
    "give a name ('lexical', 'local', 'openai:MODEL'), or a judge with a method arguments() that "
    "returns the keyword arguments of its class as JSON values; else leave worker='process' out"
)
_ARGUMENTS: Final = TypeAdapter[Mapping[str, JsonValue]](Mapping[str, JsonValue])

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
    """Return the specification from which another process makes an equal judge.

    Args:
        given: The judge, the name of one, or None for that of the environment.

    Raises:
        ConfigError: There is no such thing for this judge.
    """
    if given is None or given == "":
        # Read now: a process that is started later has the judge of the monitor all the same.
        return JudgeSpec(name=default_name(), options=environment_options())
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
    """The first message to a judging process, before it makes its judges."""

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
        """Prepare; nothing is started yet."""
        self._supervisor: _Supervisor | None = None
        self.pace = CpuShare(max_cpu_share)
        """Counts what the process computes."""
        self.set_up = SetUp(
            judges=tuple(specs),
            metrics=tuple(each.data() for each in selections),
            max_cpu_share=max_cpu_share,
        )
        """The first message to the next process."""

    def judging(self, judge: int, budget: Budget | None) -> Judging:
        """Return what evaluates with the judge at that place of the specs, under a budget."""
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
            self._supervisor.tell("release")

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


@dataclass(slots=True, eq=False)
class _Question:
    """A record that is being judged, and who pays for it."""

    asked: tuple[int, str, str | None]
    """The place of the judge, the record and the limits of the budget for it, as JSON."""

    budget: Budget | None

    context: Context
    """Has the meter by which the budget knows the record."""

    answer: asyncio.Future[Evaluation]

    deaths: int = 0
    """Processes that have died while they judged it."""

    is_under_way: bool = False
    """Whether the process has it."""


class _Supervisor:
    """What belongs to one event loop: its open questions, and the process in charge of them.

    A record that was under way when a process died is left to the next one. It fails only if it was
    the only one when another died. Of a process that was ended because it did not leave a record
    off, the reason is known, and no other record is suspected.
    """

    def __init__(self, process: JudgeProcess) -> None:
        self.loop: Final = asyncio.get_running_loop()
        self._process: Final = process
        self._numbers: Final = count(1)
        self._questions: dict[int, _Question] = {}
        # What calls have cost, by the key of their reservation; None if that is not known.
        self._spent: dict[str, asyncio.Future[Usage | None]] = {}
        # Bookings outlast the question that they are made for.
        self._booking: set[asyncio.Task[None]] = set()
        self._child: _Child | None = None
        self._life: asyncio.Task[None] | None = None
        self._deaths = 0
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
        asked = judge, record.model_dump_json(), limits
        number, answer = next(self._numbers), self.loop.create_future()
        question = _Question(asked, budget, copy_context(), answer)
        self._questions[number] = question
        self.summon()
        try:
            return await question.answer
        except asyncio.CancelledError:
            self._cancel(number)
            raise

    def summon(self) -> None:
        """Have the process judge what waits; start one if there is none."""
        if self._life is None:
            self._life = self.loop.create_task(self._live(), context=free_context())
        under_way = [each.deaths for each in self._questions.values() if each.is_under_way]
        waiting = [each for each in self._questions.items() if not each[1].is_under_way]
        for number, question in sorted(waiting, key=lambda each: (-each[1].deaths, each[0])):
            # A record that was under way when a process died may be what killed it. One of these
            # at a time goes on beside others, and after a second death it goes on by itself: if
            # the process dies once more, no other record fails for it.
            most = max(under_way, default=0)
            is_alone = max(question.deaths, most) >= ALONE
            is_free = not under_way if is_alone else not (question.deaths and most)
            if is_free and self._child is not None and self._child.is_ready:
                question.is_under_way = True
                under_way.append(question.deaths)
                self.tell("judge", number, *question.asked)

    def tell(self, what: str, *values: JsonValue) -> None:
        if self._child is not None:
            self._child.tell(what, *values)

    def end(self, timeout: float) -> None:
        """End the process for good, on any thread."""
        self._is_over = True
        if self._child is not None:
            self._child.end(timeout)

    def forget_in_fork(self) -> None:
        """Leave the process to the parent of this one: it ends with that alone."""
        if self._child is not None:
            # With this copy of the socket open, it would outlive the parent.
            self._child.socket.close()
            self._child.process.returncode = 0
            self._child = None

    # --- the life of a process ---

    async def _live(self) -> None:
        """Start a process after the pause that is due, and leave to the next what it leaves."""
        await asyncio.sleep(max(0.0, self._not_before - time.monotonic()))
        if self._is_over:
            return
        try:
            child = self._child = _Child(self._hear, self._set_up)
            self.loop.call_later(START_SECONDS, self._end_unless_ready, child)
            with closing(child):
                await self.loop.create_unix_connection(lambda: child, sock=child.socket)
                await child.has_ended.wait()
        except (OSError, ValueError, RuntimeError) as error:
            self._child = None
            self._refuse(f"it cannot be started ({type(error).__name__})")
        else:
            self._ended(child)

    def _set_up(self) -> tuple[str, str, int]:
        return "set up", self._process.set_up.model_dump_json(), _logger.getEffectiveLevel()

    def _end_unless_ready(self, child: _Child) -> None:
        if not child.is_ready:
            child.refusal = f"its judge was not made within {START_SECONDS:g} s"
            child.end(REAP_SECONDS)

    def _ended(self, child: _Child) -> None:
        """Leave the records of the process to the next one."""
        how = child.end(REAP_SECONDS)
        self._child = self._life = None
        if self._is_over:
            return
        for spent in self._spent.values():  # what its calls have cost is not known
            if not spent.done():
                spent.set_result(None)
        if child.refusal or (self._deaths and not child.is_ready):
            self._refuse(child.refusal or f"it has ended before its judge was made: {how}")
            return
        under_way = [each for each in self._questions.items() if each[1].is_under_way]
        for number, question in under_way:
            question.is_under_way = False
            if question.answer.done():  # it was cancelled
                del self._questions[number]
            elif child.is_overdue or len(under_way) > 1 or not question.deaths:
                question.deaths += not child.is_overdue
            else:
                times = "twice" if question.deaths == 1 else "three times"
                why = f"the judging process has ended: {how}, {times} while this record was judged"
                self._answer(number, ChildJudgeError(why))
        if not child.is_overdue:
            self._pause(how)
        if self._questions:
            self.summon()

    def _refuse(self, reason: str) -> None:
        """Fail every question; what comes after a pause is asked anew."""
        self._life = None
        self._refusal = f"the judging process: {reason}"
        self._pause(reason)
        for number in list(self._questions):
            self._answer(number, CannotStartError(self._refusal))

    def _pause(self, how: str) -> None:
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._deaths, 10))
        self._deaths += 1
        self._not_before = time.monotonic() + pause
        _logger.warning(
            "claimspan: the judging process has ended (%s); the next starts in %g s", how, pause
        )

    # --- what it says ---

    def _hear(self, child: _Child, said: JsonValue) -> None:
        match said:
            case ["ready"]:
                child.is_ready, self._refusal = True, ""
                self.summon()
            case ["refused", str(reason)]:
                child.refusal = reason
            case ["log", str(logger), int(level), str(text)]:
                logging.getLogger(logger).log(level, "%s", text)
            case ["reserve", str(key), int(number), str(maximum)]:
                question = self._questions.get(number)
                if question is None or question.budget is None:
                    # A thread of a judge goes on after its record was left off.
                    self._admit(key, BudgetExceededError("its record is judged no longer"))
                    return
                self._spent[key] = self.loop.create_future()
                wanted = Usage.model_validate_json(maximum)
                self._book(question, self._reserve(question.budget, key, wanted))
            case ["spent", str(key), str(spent)] if key in self._spent:
                self._spent[key].set_result(Usage.model_validate_json(spent))
            case ["judged" | "failed" as how, int(number), str(result), str(unbooked), float(used)]:
                self._deaths = 0
                self._process.pace.count(used)
                usage, question = Usage.model_validate_json(unbooked), self._questions[number]
                if question.budget is not None and not usage.is_nothing:
                    self._book(question, question.budget.book(usage))
                if how == "judged":
                    self._answer(number, Evaluation.model_validate_json(result))
                else:
                    self._answer(number, Failure.model_validate_json(result).error())
                self.summon()  # others may have waited for its end
            case _:  # the call was given up before the budget was asked
                pass

    def _answer(self, number: int, answer: Evaluation | JudgeError) -> None:
        waiting = self._questions.pop(number).answer
        if waiting.done():  # it was cancelled
            return
        if isinstance(answer, Evaluation):
            waiting.set_result(answer)
        else:
            waiting.set_exception(answer)
            waiting.exception()  # its task may be cancelled at the same time

    def _cancel(self, number: int) -> None:
        """Take a question back, or have the process leave it off."""
        question = self._questions.get(number)
        if question is None:
            return
        if not question.is_under_way:
            del self._questions[number]
            return
        self.tell("cancel", number)
        # It stays a question until the process has left it off: what it has cost comes first.
        self.loop.call_later(HEED_SECONDS, self._end_unless_heeded, number, context=free_context())

    def _end_unless_heeded(self, number: int) -> None:
        if self._child is not None and number in self._questions:
            self._child.is_overdue = True
            self._child.end(REAP_SECONDS)

    # --- the budget ---

    def _book(self, question: _Question, call: Coroutine[object, object, None]) -> None:
        task = self.loop.create_task(call, context=question.context)
        self._booking.add(task)
        task.add_done_callback(self._booking.discard)

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
        reason = None if error is None else str(error)
        self.tell("answer", key, reason, isinstance(error, RecordLimitError))


class _Child(asyncio.Protocol):
    """A judging process that was started, and the socket by which both talk in lines of JSON."""

    def __init__(
        self,
        hear: Callable[[_Child, JsonValue], None],
        set_up: Callable[[], tuple[str, str, int]],
    ) -> None:
        """Start a process; runs on the loop.

        Args:
            hear: Gets its messages.
            set_up: Returns the first message to it, when it can be told.

        Raises:
            OSError: No process can be started.
        """
        self._hear, self._set_up = hear, set_up
        self._pieces: list[bytes] = []
        self._transport: asyncio.WriteTransport | None = None
        self.has_ended: Final = asyncio.Event()
        """Set when its socket is closed, and all that it has said was heard."""
        self.is_ready = False
        """Whether its judges are made."""
        self.refusal = ""
        """Why they cannot be made."""
        self.is_overdue = False
        """Whether it was ended because it did not leave off a record."""
        # What this process can import, and nothing that only lies in the working directory. The
        # standard library comes first. An application may put a folder in front of it that has a
        # ``json.py``: it has imported its own ``json`` by then, but a new process has not.
        standard = (sysconfig.get_path("stdlib"), sysconfig.get_config_var("DESTSHARED"))
        known = [each for each in standard if each]  # not every build tells where extensions are
        paths = dict.fromkeys(os.path.abspath(each) for each in (*known, *sys.path))
        self.socket, theirs = socket.socketpair()
        with theirs, ExitStack() as unless_started:
            unless_started.callback(self.socket.close)
            self.process = subprocess.Popen(  # noqa: S603 - our own module, by our interpreter
                [sys.executable, "-P", "-m", MODULE],
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

    def tell(self, what: str, *values: JsonValue) -> None:
        """Send it a line; nothing if it has ended."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(json.dumps([what, *values]).encode() + b"\n")

    def end(self, timeout: float) -> str:
        """End the process, even if it hangs, and reap it; returns how it has ended."""
        with suppress(OSError):
            self.process.kill()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout)
        code = self.process.returncode or 0
        with suppress(ValueError):
            return signal.Signals(-code).name
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def close(self) -> None:
        """Close the socket: the process ends by that alone."""
        if self._transport is None:
            self.socket.close()
        else:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set it up, before any other task of the loop can tell it something."""
        if isinstance(transport, asyncio.WriteTransport):
            self._transport = transport
            self.tell(*self._set_up())

    def data_received(self, data: bytes) -> None:
        """Hear each line that is complete by now."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            line = b"".join((*self._pieces, end))
            self._pieces.clear()
            self._hear(self, json.loads(line))
        self._pieces.append(rest)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note that it has ended."""
        self.has_ended.set()


_supervisors: Final[WeakSet[_Supervisor]] = WeakSet()

# Kept, since asyncio complains of a task that is destroyed before its end.
_of_parent: Final[list[_Supervisor]] = []


def _forget_all_in_fork() -> None:
    for each in list(_supervisors):
        each.forget_in_fork()
        _of_parent.append(each)
    _supervisors.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_forget_all_in_fork)
