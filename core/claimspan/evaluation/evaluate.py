"""Evaluate a record: claims out of the texts, verdicts on the claims, metrics from the verdicts."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final, TypeGuard, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from claimspan.concurrency import gather_or_cancel
from claimspan.cost.usage import Usage, metered
from claimspan.errors import ConfigError, JudgeError
from claimspan.evaluation.verdict_matrices import check, ground_truth_of, guarded
from claimspan.judges.protocol import Judge
from claimspan.metrics.claims import METRICS, Undefined, measure
from claimspan.metrics.coverage import ContextCoverage, coverage
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.text.injection import suspects_injection
from claimspan.verdicts import Claim, Label, ScoreMode, VerdictMatrix

__all__ = ["Evaluation", "aevaluate", "aevaluate_many", "evaluate", "evaluate_many"]

MAX_CLAIMS: Final = 50
"""Claims judged per text: an answer of 10,000 claims must not cost 10,000 checks."""

EVALUATION_SECONDS: Final = 300.0
"""No evaluation goes on for longer, whatever its judge does."""

_T = TypeVar("_T")


class Evaluation(BaseModel):
    """Everything that was found out about one record."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    metrics: Mapping[str, float] = Field(default_factory=dict[str, float])
    """Name to value between 0 and 1; a metric that is undefined here is absent."""

    undefined: Mapping[str, str] = Field(default_factory=dict[str, str])
    """Name to reason, for each metric that is absent."""

    response_claims: tuple[Claim, ...] = ()
    """The claims of the response, in its order."""

    ground_truth_claims: tuple[Claim, ...] = ()
    """The claims of the ground truth, in its order; empty without a ground truth."""

    response_vs_chunks: VerdictMatrix | None = None
    """Shape ``(n_response_claims, n_chunks)``."""

    response_vs_ground_truth: VerdictMatrix | None = None
    """Shape ``(n_response_claims, 1)``; None without a ground truth."""

    ground_truth_vs_response: VerdictMatrix | None = None
    """Shape ``(n_ground_truth_claims, 1)``; None without a ground truth."""

    ground_truth_vs_chunks: VerdictMatrix | None = None
    """Shape ``(n_ground_truth_claims, n_chunks)``; None without a ground truth."""

    claims_dropped: int = 0
    """Claims beyond the cap, of both texts together, that were not judged."""

    judge_name: str = ""
    """Which judge gave the verdicts."""

    judge_version: str = ""
    """Its version; empty where it has none."""

    usage: Usage = Usage()
    """What the verdicts have cost."""

    undecided: Mapping[str, int] = Field(default_factory=dict[str, int])
    """Why the judge left verdicts undecided, and how many; empty where it cannot say."""

    notes: Mapping[str, int] = Field(default_factory=dict[str, int])
    """What the judge did otherwise than it usually does, and for how many verdicts."""

    injection_suspected: tuple[str, ...] = ()
    """Texts that seem to speak to the judge: ``response``, ``ground_truth``, ``chunks[0]``, ..."""

    error: str | None = None
    """Why there are no verdicts; None where there are."""

    @property
    def score_mode(self) -> ScoreMode | None:
        """Whether verdicts come with probabilities; None where there are no verdicts."""
        modes: set[ScoreMode] = {
            m.score_mode for m in self._matrices if m is not None and m.score_mode
        }
        return "mixed" if len(modes) > 1 else next(iter(modes), None)

    @property
    def context_coverage(self) -> ContextCoverage | None:
        """How much of the ground truth the chunks hold, by probability; None without one."""
        return (
            None if self.ground_truth_vs_chunks is None else coverage(self.ground_truth_vs_chunks)
        )

    @property
    def _matrices(self) -> tuple[VerdictMatrix | None, ...]:
        return (
            self.response_vs_chunks,
            self.response_vs_ground_truth,
            self.ground_truth_vs_response,
            self.ground_truth_vs_chunks,
        )

    @property
    def unknown_claims(self) -> int:
        """Number of claims, of both texts, with a verdict that the judge could not decide."""
        return _undecided_rows(self.response_vs_chunks, self.response_vs_ground_truth) + (
            _undecided_rows(self.ground_truth_vs_chunks, self.ground_truth_vs_response)
        )


def _undecided_rows(*matrices: VerdictMatrix | None) -> int:
    rows = {i for m in matrices if m is not None for i, row in enumerate(m.rows) if None in row}
    return len(rows)


async def aevaluate(
    record: RagRecord,
    *,
    judge: Judge | None = None,
    undefined: Undefined = "omit",
    max_claims: int = MAX_CLAIMS,
    deadline_seconds: float = EVALUATION_SECONDS,
) -> Evaluation:
    """Evaluate one record.

    Args:
        record: What to evaluate. Without a ground truth only ``faithfulness`` and
            ``contradicted_by_chunks`` are defined.
        judge: Who decides; None takes ``default_judge()``.
        undefined: ``"omit"`` leaves out what has no value, ``"zero"`` is ragchecker 0.1.9.
        max_claims: Claims judged per text; what is beyond is counted in ``claims_dropped``.
        deadline_seconds: When the judge is stopped, in seconds from the start.

    Raises:
        JudgeError: The judge failed, was too slow, or returned something else than was asked for.
        ConfigError: ``max_claims`` or ``deadline_seconds`` is not positive.
    """
    if max_claims < 1:
        raise ConfigError(f"max_claims is {max_claims!r}: give 1 or more")
    if not deadline_seconds > 0:
        raise ConfigError(f"deadline_seconds is {deadline_seconds!r}: give more than 0")
    judge = judge or _default_judge()
    started = time.perf_counter()
    with metered() as meter:
        async with _ending_in(deadline_seconds):
            claims, dropped = await _extract(judge, record, max_claims)
            matrices = await check(judge, record, *claims)
    measurement = measure(
        response_vs_ground_truth=_column(matrices.get("response_vs_ground_truth")),
        ground_truth_vs_response=_column(matrices.get("ground_truth_vs_response")),
        response_vs_chunks=_labels(matrices.get("response_vs_chunks")),
        ground_truth_vs_chunks=_labels(matrices.get("ground_truth_vs_chunks")),
        undefined=undefined,
    )
    return Evaluation(
        metrics=measurement.metrics,
        undefined=measurement.undefined,
        response_claims=tuple(claims[0]),
        ground_truth_claims=tuple(claims[1]),
        claims_dropped=dropped,
        undecided=dict(meter.undecided),
        notes=dict(meter.notes),
        injection_suspected=_suspected(record),
        judge_name=judge.name,
        judge_version=_version(judge),
        usage=meter.usage + Usage(seconds=time.perf_counter() - started),
        response_vs_chunks=matrices.get("response_vs_chunks"),
        response_vs_ground_truth=matrices.get("response_vs_ground_truth"),
        ground_truth_vs_response=matrices.get("ground_truth_vs_response"),
        ground_truth_vs_chunks=matrices.get("ground_truth_vs_chunks"),
    )


def evaluate(
    record: RagRecord,
    *,
    judge: Judge | None = None,
    undefined: Undefined = "omit",
    max_claims: int = MAX_CLAIMS,
    deadline_seconds: float = EVALUATION_SECONDS,
) -> Evaluation:
    """As ``aevaluate``, from synchronous code, also where an event loop is already running."""
    return _run(
        lambda: aevaluate(
            record,
            judge=judge,
            undefined=undefined,
            max_claims=max_claims,
            deadline_seconds=deadline_seconds,
        )
    )


async def aevaluate_many(
    records: Sequence[RagRecord],
    *,
    judge: Judge | None = None,
    undefined: Undefined = "omit",
    max_claims: int = MAX_CLAIMS,
    concurrency: int = 8,
    progress: bool | None = None,
) -> list[Evaluation]:
    """Evaluate many records; one that fails does not stop the others.

    Args:
        records: What to evaluate.
        judge: Who decides; None takes ``default_judge()``.
        undefined: As in ``aevaluate``.
        max_claims: As in ``aevaluate``.
        concurrency: Records under evaluation at once.
        progress: Show a bar on standard error; None shows it on a terminal, where rich is there.

    Returns:
        One evaluation a record, in order. Where the judge failed it has no metrics, and its
        ``error`` says why.

    Raises:
        ConfigError: ``concurrency`` or ``max_claims`` is not positive.
        MissingExtraError: ``progress=True`` without rich.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency is {concurrency!r}: give 1 or more")
    judge = judge or _default_judge()
    gate = asyncio.Semaphore(concurrency)
    with progress_bar("evaluating", total=len(records), show=progress) as advance:

        async def one(record: RagRecord) -> Evaluation:
            async with gate:
                started = time.perf_counter()
                with metered() as meter:
                    try:
                        return await aevaluate(
                            record, judge=judge, undefined=undefined, max_claims=max_claims
                        )
                    except JudgeError as error:
                        seconds = Usage(seconds=time.perf_counter() - started)
                        return _failed(judge, str(error), meter.usage + seconds)
                    finally:
                        advance()

        return list(await asyncio.gather(*(one(record) for record in records)))


def evaluate_many(
    records: Sequence[RagRecord],
    *,
    judge: Judge | None = None,
    undefined: Undefined = "omit",
    max_claims: int = MAX_CLAIMS,
    concurrency: int = 8,
    progress: bool | None = None,
) -> list[Evaluation]:
    """As ``aevaluate_many``, from synchronous code, also where an event loop is already running."""
    return _run(
        lambda: aevaluate_many(
            records,
            judge=judge,
            undefined=undefined,
            max_claims=max_claims,
            concurrency=concurrency,
            progress=progress,
        )
    )


@asynccontextmanager
async def _ending_in(seconds: float) -> AsyncGenerator[None]:
    """Stop the block at a deadline, with an error that says so."""
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            yield
    except TimeoutError:
        if not deadline.expired():
            raise
        raise JudgeError(f"no verdicts within {seconds:g} s") from None


def _suspected(record: RagRecord) -> tuple[str, ...]:
    texts = {"response": record.response, "ground_truth": record.ground_truth or ""}
    texts |= {f"chunks[{i}]": chunk.text for i, chunk in enumerate(record.chunks)}
    return tuple(name for name, text in texts.items() if suspects_injection(text))


def _default_judge() -> Judge:
    from claimspan.judges import default_judge  # keeps the judges out of the import of the records

    return default_judge()


def _failed(judge: Judge, error: str, usage: Usage) -> Evaluation:
    return Evaluation(
        undefined=dict.fromkeys(METRICS, "the judge failed"),
        judge_name=judge.name,
        judge_version=_version(judge),
        usage=usage,
        error=error,
    )


def _version(judge: Judge) -> str:
    return str(getattr(judge, "version", ""))


async def _extract(
    judge: Judge, record: RagRecord, max_claims: int
) -> tuple[tuple[list[Claim], list[Claim]], int]:
    """The claims of response and ground truth, and how many were beyond the cap."""
    texts = (record.response, ground_truth_of(record) or "")
    found = await gather_or_cancel([_claims_of(judge, text, record.query) for text in texts])
    kept = [claims[:max_claims] for claims in found]
    return (kept[0], kept[1]), sum(len(claims) for claims in found) - sum(map(len, kept))


async def _claims_of(judge: Judge, text: str, question: str) -> list[Claim]:
    if not text.strip():
        return []
    claims = await guarded(judge, lambda: judge.extract_claims(text, question=question))
    if not _are_claims(claims):
        raise JudgeError(f"judge {judge.name!r} returned something else than a list of Claim")
    return list(claims)


def _are_claims(value: object) -> TypeGuard[Sequence[Claim]]:
    return isinstance(value, list | tuple) and all(isinstance(item, Claim) for item in value)  # pyright: ignore[reportUnknownVariableType] - what it is made of is the question


def _column(matrix: VerdictMatrix | None) -> list[Label | None] | None:
    return None if matrix is None else [row[0] for row in matrix.labels]


def _labels(matrix: VerdictMatrix | None) -> list[list[Label | None]] | None:
    return None if matrix is None else matrix.labels


def _run(start: Callable[[], Coroutine[object, None, _T]]) -> _T:
    """Run to the end on a loop of our own: in this thread, or in another if this has a loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(start())
    outcome: list[_T] = []
    errors: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(asyncio.run(start()))
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread, whatever it is
            errors.append(error)

    # In the caller's context: what it has set there, such as a suppressed tracing, holds on.
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(body,), name="claimspan-evaluate")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]
