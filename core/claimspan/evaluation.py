"""Evaluate a record: claims out of the texts, verdicts on the claims, metrics from the verdicts."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from claimspan.errors import ConfigError, JudgeError
from claimspan.judges.protocol import Judge
from claimspan.metrics import METRICS, Undefined, measure
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.usage import Usage, metered
from claimspan.verdicts import Claim, Label, VerdictMatrix

__all__ = ["Evaluation", "aevaluate", "aevaluate_many", "evaluate", "evaluate_many"]

MAX_CLAIMS: Final = 50
"""Claims judged per text: an answer of 10,000 claims must not cost 10,000 checks."""

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

    error: str | None = None
    """Why there are no verdicts; None where there are."""

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
) -> Evaluation:
    """Evaluate one record.

    Args:
        record: What to evaluate. Without a ground truth only ``faithfulness`` and
            ``contradicted_by_chunks`` are defined.
        judge: Who decides; None takes ``default_judge()``.
        undefined: ``"omit"`` leaves out what has no value, ``"zero"`` is ragchecker 0.1.9.
        max_claims: Claims judged per text; what is beyond is counted in ``claims_dropped``.

    Raises:
        JudgeError: The judge failed, or returned a matrix of another shape than was asked for.
    """
    judge = judge or _default_judge()
    started = time.perf_counter()
    with metered() as meter:
        claims, dropped = await _extract(judge, record, max_claims)
        matrices = await _check(judge, record, *claims)
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
        judge_name=judge.name,
        judge_version=str(getattr(judge, "version", "")),
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
) -> Evaluation:
    """As ``aevaluate``, from synchronous code, also where an event loop is already running."""
    return _run(lambda: aevaluate(record, judge=judge, undefined=undefined, max_claims=max_claims))


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
        ConfigError: ``concurrency`` is not positive.
        MissingExtraError: ``progress=True`` without rich.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency is {concurrency!r}: give 1 or more")
    judge = judge or _default_judge()
    gate = asyncio.Semaphore(concurrency)
    with progress_bar("evaluating", total=len(records), show=progress) as advance:

        async def one(record: RagRecord) -> Evaluation:
            async with gate:
                try:
                    return await aevaluate(
                        record, judge=judge, undefined=undefined, max_claims=max_claims
                    )
                except JudgeError as error:
                    return _failed(judge, str(error))
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


def _default_judge() -> Judge:
    from claimspan.judges import default_judge  # keeps the judges out of the import of the records

    return default_judge()


def _failed(judge: Judge, error: str) -> Evaluation:
    return Evaluation(
        undefined=dict.fromkeys(METRICS, "the judge failed"), judge_name=judge.name, error=error
    )


async def _extract(
    judge: Judge, record: RagRecord, max_claims: int
) -> tuple[tuple[list[Claim], list[Claim]], int]:
    """The claims of response and ground truth, and how many were beyond the cap."""
    texts = (record.response, record.ground_truth or "")
    found = await _together([_claims_of(judge, text, record.query) for text in texts])
    kept = [claims[:max_claims] for claims in found]
    return (kept[0], kept[1]), sum(len(claims) for claims in found) - sum(map(len, kept))


async def _claims_of(judge: Judge, text: str, question: str) -> list[Claim]:
    if not text.strip():
        return []
    return await _guarded(judge, judge.extract_claims(text, question=question))


async def _check(
    judge: Judge,
    record: RagRecord,
    response_claims: Sequence[Claim],
    ground_truth_claims: Sequence[Claim],
) -> dict[str, VerdictMatrix]:
    """Every matrix that the record allows, by the name of its field in ``Evaluation``."""
    chunks = [chunk.text for chunk in record.chunks]
    wanted = {"response_vs_chunks": (response_claims, chunks)}
    if record.ground_truth is not None:
        wanted |= {
            "response_vs_ground_truth": (response_claims, [record.ground_truth]),
            "ground_truth_vs_response": (ground_truth_claims, [record.response]),
            "ground_truth_vs_chunks": (ground_truth_claims, chunks),
        }
    matrices = await _together(
        [_matrix(judge, claims, texts, record.query) for claims, texts in wanted.values()]
    )
    return dict(zip(wanted, matrices, strict=True))


async def _matrix(
    judge: Judge, claims: Sequence[Claim], references: Sequence[str], question: str
) -> VerdictMatrix:
    wanted = (len(claims), len(references))
    if 0 in wanted:
        return VerdictMatrix.of([[] for _ in claims], n_references=len(references))
    matrix = await _guarded(judge, judge.check(claims, references, question=question))
    if matrix.shape != wanted:
        raise JudgeError(
            f"judge {judge.name!r} returned a matrix of shape {matrix.shape}, not {wanted}: "
            "it needs one row a claim and one cell a reference"
        )
    return matrix


async def _guarded(judge: Judge, call: Awaitable[_T]) -> _T:
    """Turn whatever a judge raises into a ``JudgeError`` that names only its class.

    Even ``SystemExit``: it would leave the event loop, and take every other evaluation with it.
    """
    try:
        return await call
    except JudgeError:
        raise
    except (Exception, SystemExit) as error:
        raise JudgeError(f"judge {judge.name!r} raised {type(error).__name__}") from error


async def _together(calls: Sequence[Coroutine[object, None, _T]]) -> list[_T]:
    """Run the calls at once; when one fails, the others are cancelled and awaited."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except* JudgeError as errors:
        raise _first(errors) from errors
    return [task.result() for task in tasks]


def _first(group: BaseExceptionGroup[JudgeError]) -> JudgeError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return JudgeError(str(error))


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

    thread = threading.Thread(target=body, name="claimspan-evaluate")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]
