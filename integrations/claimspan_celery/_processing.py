"""Handles one delivery of a job: validate, evaluate, write, or try again later.

Redis keeps what workers share about jobs: how often each was delivered, which are done, and which
were given up. Without it only the fixed span id of a carrier, and the limits of the broker itself,
stand between a job and a second evaluation.
"""

from __future__ import annotations

import json
import logging
import reprlib
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal

from claimspan.errors import ConfigError
from claimspan_celery._broker import MAX_BYTES, why
from claimspan_tracing import Job, Outcome, Status, semconv
from claimspan_tracing.adapters import RemoteEvaluation, meter

__all__ = [
    "DAY_SECONDS",
    "Disposal",
    "JobStore",
    "Processing",
    "RedisStore",
    "Result",
    "WorkerLimits",
]

_logger: Final = logging.getLogger("claimspan")

SPARE_SECONDS: Final = 60.0
"""Time of a task beside its evaluation, for pauses and exports; at most as long as that."""

PREFIX: Final = "claimspan"

DAY_SECONDS: Final = 86_400

LETTER_SECONDS: Final = 7 * DAY_SECONDS
"""How long a dead letter is kept."""

WRITING_SECONDS: Final = 60
"""How long a worker may take to write scores; after it another may try. An exporter gives up after
10 s by default, and is asked three times."""

DEAD_LETTERS: Final = 1_000
"""Dead letters kept; the oldest makes way."""

MAX_REFUSED: Final = 64 * 1024
"""Characters that are kept of a message that is no job."""

Turn = Literal["mine", "taken", "done"]
"""``mine``, if this worker may write the scores; ``taken``, if another is at it; ``done``."""

WRITE_ATTEMPTS: Final = 3
"""How often a worker tries to export a carrier before it gives the job back."""

OUTAGE: Final = 2
"""Failures in a row from which on judge or exporter is taken to be down. A failure among jobs that
succeed is taken to be the job's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    """The limits of a worker. All workers of one queue should have the same.

    Raises:
        ConfigError: A number is not positive, or ``visibility_seconds`` is too short.
    """

    job_seconds: float = 120.0
    """Time that one evaluation may take. The limits of the tasks follow from it."""

    max_deliveries: int = 5
    """Deliveries after which a job is given up, and put among the dead letters."""

    done_seconds: int = 2 * DAY_SECONDS
    """How long a job counts as done. Keep it longer than jobs live in the broker, which is a day
    unless the dispatcher says otherwise."""

    visibility_seconds: float = 0.0
    """With Redis as broker: how long a job whose worker has died stays away before another worker
    gets it. Must be longer than a task may take; 0 takes twice that time."""

    def __post_init__(self) -> None:
        if min(self.job_seconds, self.max_deliveries, self.done_seconds) <= 0:
            raise ConfigError("a number given to WorkerLimits is not positive")
        if self.visibility_seconds and self.visibility_seconds <= self.hard_seconds:
            raise ConfigError(
                f"visibility_seconds is {self.visibility_seconds:g}, and a task may take "
                f"{self.hard_seconds:g} s: give more, or a job is delivered again while it is "
                "evaluated"
            )

    @property
    def pause_seconds(self) -> float:
        """Longest pause of a task while judge or exporter is down."""
        return min(SPARE_SECONDS, self.job_seconds) / 2

    @property
    def soft_seconds(self) -> float:
        """Time after which a task is interrupted."""
        return self.job_seconds + 2 * self.pause_seconds

    @property
    def hard_seconds(self) -> float:
        """Time after which the process of a task is killed."""
        return self.soft_seconds + self.pause_seconds

    @property
    def visibility(self) -> float:
        """The visibility timeout in force."""
        return self.visibility_seconds or 2 * self.hard_seconds


class Result(StrEnum):
    """What became of a delivery; the value of ``claimspan.job.result``."""

    EVALUATED = "evaluated"
    """The scores are written."""

    NO_SCORES = "no_scores"
    """The judge found nothing to score, or the budget is spent; trying again would not help."""

    DUPLICATE = "duplicate"
    """The job was done before; nothing was written."""

    AGAIN = "again"
    """The job went back to the queue."""

    REJECTED = "rejected"
    """The message is no job of this version, or too big; it is not tried again, and is among the
    dead letters."""

    EXPIRED = "expired"
    """The job was older than the application allows; Celery threw it away."""

    DEAD = "dead"
    """The job was delivered too often, and is given up; it is among the dead letters."""


@dataclass(frozen=True, slots=True)
class Disposal:
    """The next step for a message."""

    result: Result
    outcome: str | None = None
    """With ``again``: the outcome that was paid for already and only has to be written."""

    pause: float = 0.0
    """With ``again``: seconds to wait before the message goes back."""


class JobStore:
    """Remembers nothing, for workers without a Redis."""

    def delivered(self, key: str) -> int:
        """Count a delivery of a job; returns the number so far.

        Raises:
            Exception: What the client of a store raises, as every method here may.
        """
        return 1

    def uncount(self, key: str) -> None:
        """Take back one delivery, which was in vain through no fault of the job."""

    def is_done(self, key: str) -> bool:
        """Whether the scores were written."""
        return False

    def begin(self, key: str) -> Turn:
        """Ask for the turn to write the scores; one worker at a time has it."""
        return "mine"

    def end(self, key: str, *, written: bool) -> None:
        """Give back the turn, and remember whether the scores were written."""

    def bury(self, letter: str) -> None:
        """Keep a job that is given up, as JSON with its reason, which the log has anyway."""

    def count(self, result: str) -> None:
        """Count what became of a job, which the metric counts anyway."""

    def refuse(self, reason: str, message: object) -> None:
        """Bury the beginning of a message that is no job, as far as it is text, with the reason."""
        _logger.warning("claimspan: a message is thrown away, because %s", reason)
        text = message.decode("utf-8", "replace") if isinstance(message, bytes) else message
        kept = text if isinstance(text, str) else reprlib.repr(text)  # bounded in depth, too
        self.bury(json.dumps({"reason": reason, "message": kept[:MAX_REFUSED]}))


class RedisStore(JobStore):
    """Keeps it in Redis, under keys that begin with ``claimspan:``."""

    def __init__(self, url: str, done_seconds: int) -> None:
        """Set the server, as ``redis://host:6379/0``; it is connected to with the first call.

        Raises:
            ConfigError: The URL cannot be read.
        """
        import redis

        client: Any = redis.Redis  # its methods are partly untyped
        # A server that does not answer must not keep a worker from its other duties.
        try:
            self._redis: Any = client.from_url(url, socket_timeout=5, socket_connect_timeout=5)
        except ValueError:
            # Without the error's own text, which may quote a part of the password.
            raise ConfigError(
                "the URL of the Redis cannot be read: give one like redis://localhost:6379/0, "
                "with every sign of a password encoded that has a meaning in URLs"
            ) from None
        self._done_seconds = done_seconds

    def check(self, place: str, remedy: str) -> None:
        """Connect to the server once.

        Raises:
            ConfigError: It cannot be reached; says where it is, and the remedy.
        """
        try:
            self._redis.ping()
        except Exception as error:  # noqa: BLE001 - whatever it is, jobs would meet it too
            raise ConfigError(
                f"the Redis{place} of the workers cannot be reached ({why(error)}): {remedy}"
            ) from None

    def delivered(self, key: str) -> int:
        """Count a delivery, in a counter that is kept for as long as done jobs are."""
        pipe = self._redis.pipeline()
        pipe.incr(f"{PREFIX}:deliveries:{key}")
        pipe.expire(f"{PREFIX}:deliveries:{key}", self._done_seconds)
        return int(pipe.execute()[0])

    def uncount(self, key: str) -> None:
        """Take back one delivery."""
        pipe = self._redis.pipeline()
        pipe.decr(f"{PREFIX}:deliveries:{key}")
        # Another worker may have done the job meanwhile, and removed the counter: this makes it.
        pipe.expire(f"{PREFIX}:deliveries:{key}", self._done_seconds)
        pipe.execute()

    def is_done(self, key: str) -> bool:
        """Whether the scores were written."""
        return bool(self._redis.get(f"{PREFIX}:done:{key}") == b"done")

    def begin(self, key: str) -> Turn:
        """Ask for the turn, which ends by itself if its worker dies."""
        name = f"{PREFIX}:done:{key}"
        if self._redis.set(name, "writing", nx=True, ex=WRITING_SECONDS):
            return "mine"
        return "done" if self._redis.get(name) == b"done" else "taken"

    def end(self, key: str, *, written: bool) -> None:
        """Give back the turn."""
        if written:
            pipe = self._redis.pipeline()
            pipe.set(f"{PREFIX}:done:{key}", "done", ex=self._done_seconds)
            pipe.delete(f"{PREFIX}:deliveries:{key}")
            pipe.execute()
        else:
            self._redis.delete(f"{PREFIX}:done:{key}")

    def bury(self, letter: str) -> None:
        """Put a letter at the head of the list ``claimspan:dead``."""
        pipe = self._redis.pipeline()
        pipe.lpush(f"{PREFIX}:dead", letter)
        pipe.ltrim(f"{PREFIX}:dead", 0, DEAD_LETTERS - 1)
        pipe.expire(f"{PREFIX}:dead", LETTER_SECONDS)
        pipe.execute()

    def count(self, result: str) -> None:
        """Count in the hash ``claimspan:jobs``."""
        self._redis.hincrby(f"{PREFIX}:jobs", result, 1)


class Processing:
    """Processes deliveries in one process; make it after the fork."""

    def __init__(self, remote: RemoteEvaluation, store: JobStore, limits: WorkerLimits) -> None:
        """Connect the parts."""
        self.remote: Final = remote
        """Evaluates, and writes scores."""
        self._store = store
        self._limits = limits
        self._failures = 0
        self._counter = meter().create_counter(
            semconv.JOBS_COUNTER, unit="{job}", description="Jobs by what a worker did with them."
        )

    def process(self, text: object, outcome_text: object = None) -> Disposal:
        """Process one delivery of a job, with the outcome if an earlier delivery has evaluated it.

        Raises:
            Exception: The store cannot be reached; the message has to go back.
        """
        try:
            job, outcome = _parsed(text, outcome_text)
        except ConfigError as error:
            self._store.refuse(str(error), text)
            return self._counted(Disposal(Result.REJECTED))
        key = f"{job.trace_id}-{job.span_id}"
        if self._store.is_done(key):
            return self._counted(Disposal(Result.DUPLICATE))
        deliveries = self._store.delivered(key)
        if deliveries > self._limits.max_deliveries:
            return self._counted(self._given_up(job, deliveries - 1, "delivered too often"))
        return self._counted(self._evaluated(key, job, outcome, deliveries))

    def _evaluated(self, key: str, job: Job, outcome: Outcome | None, deliveries: int) -> Disposal:
        if outcome is None:
            outcome = self.remote.evaluate(job, self._limits.job_seconds)
            if _is_worth_another_try(outcome):
                is_last = deliveries >= self._limits.max_deliveries
                if is_last and not self._failures and not outcome.unavailable:
                    return self._given_up(job, deliveries, outcome.reason or outcome.status.value)
                return self._again(key, is_away=outcome.unavailable)
        return self._written(key, job, outcome)

    def _written(self, key: str, job: Job, outcome: Outcome) -> Disposal:
        turn = self._store.begin(key)
        if turn == "done":
            return Disposal(Result.DUPLICATE)
        if turn == "taken":  # another worker has the same job, and is about to write its scores
            return self._again(key, outcome)
        written = False
        try:
            written = self._write(job, outcome)
        finally:
            self._store.end(key, written=written)
        if not written:
            return self._again(key, outcome)
        self._failures = 0
        return Disposal(Result.EVALUATED if outcome.evaluation else Result.NO_SCORES)

    def _write(self, job: Job, outcome: Outcome) -> bool:
        for attempt in range(WRITE_ATTEMPTS):
            time.sleep(attempt)
            if self.remote.write(job, outcome):
                return True
        return False

    def _again(
        self, key: str, outcome: Outcome | None = None, *, is_away: bool = False
    ) -> Disposal:
        self._failures += 1
        if outcome is not None or is_away or self._failures >= OUTAGE:
            # Judge or backend is down. The job is not to blame, and must not become a dead letter.
            self._store.uncount(key)
        pause = min(self._limits.pause_seconds, 2.0 ** min(self._failures - 1, 10))
        return Disposal(Result.AGAIN, outcome.to_json() if outcome else None, pause)

    def _given_up(self, job: Job, deliveries: int, reason: str) -> Disposal:
        letter = {"reason": reason, "deliveries": deliveries, "job": job.to_json()}
        self._store.bury(json.dumps(letter))
        _logger.error(
            "claimspan: the job of trace %s is given up after %d deliveries: %s",
            job.trace_id,
            deliveries,
            reason,
        )
        return Disposal(Result.DEAD)

    def _counted(self, verdict: Disposal) -> Disposal:
        self._counter.add(1, {semconv.JOB_RESULT: verdict.result.value})
        self._store.count(verdict.result.value)
        return verdict


def _parsed(text: object, outcome_text: object) -> tuple[Job, Outcome | None]:
    """Validate what came from the broker.

    Raises:
        ConfigError: It is no job of this version, or too big.
    """
    if not isinstance(text, str) or not isinstance(outcome_text, str | None):
        raise ConfigError("it holds no text")
    if max(len(text), len(outcome_text or "")) > MAX_BYTES:
        raise ConfigError(f"it is longer than {MAX_BYTES:,} characters")
    # The parser bounds the depth by itself, and refuses fields that a job does not have.
    job = Job.from_json(text)
    return job, None if outcome_text is None else Outcome.from_json(outcome_text)


def _is_worth_another_try(outcome: Outcome) -> bool:
    """Whether the judge failed, rather than found nothing to score."""
    failed = outcome.status in (Status.JUDGE_ERROR, Status.TIMEOUT, Status.SHUTDOWN)
    return failed and outcome.evaluation is None
