"""What a judge is asked about one record, and what is made of whatever it does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from claimspan.concurrency import gather_or_cancel
from claimspan.errors import JudgeError
from claimspan.judges.protocol import Judge, SparseJudge
from claimspan.records import RagRecord
from claimspan.verdicts import Claim, VerdictMatrix

__all__ = ["check", "ground_truth_of", "guarded"]


def ground_truth_of(record: RagRecord) -> str | None:
    """A blank ground truth is none: nothing could be entailed by it."""
    return record.ground_truth if record.ground_truth and record.ground_truth.strip() else None


async def check(
    judge: Judge,
    record: RagRecord,
    response_claims: Sequence[Claim],
    ground_truth_claims: Sequence[Claim],
) -> dict[str, VerdictMatrix]:
    """Every matrix that the record allows, by the name of its field in ``Evaluation``."""
    chunks = [chunk.text for chunk in record.chunks]
    ground_truth = ground_truth_of(record)
    if ground_truth is None:
        matrix = await _matrix(judge, response_claims, chunks, record.query)
        return {"response_vs_chunks": matrix}
    if isinstance(judge, SparseJudge):
        texts = [*chunks, ground_truth, record.response]
        return await _check_at_once(
            judge, response_claims, ground_truth_claims, texts, record.query
        )
    wanted = {
        "response_vs_chunks": (response_claims, chunks),
        "response_vs_ground_truth": (response_claims, [ground_truth]),
        "ground_truth_vs_response": (ground_truth_claims, [record.response]),
        "ground_truth_vs_chunks": (ground_truth_claims, chunks),
    }
    matrices = await gather_or_cancel(
        [_matrix(judge, claims, texts, record.query) for claims, texts in wanted.values()]
    )
    return dict(zip(wanted, matrices, strict=True))


async def _check_at_once(
    judge: SparseJudge,
    response_claims: Sequence[Claim],
    ground_truth_claims: Sequence[Claim],
    texts: Sequence[str],
    question: str,
) -> dict[str, VerdictMatrix]:
    """The four matrices out of one: all claims against chunks, ground truth and response."""
    claims = [*response_claims, *ground_truth_claims]
    n, k = len(response_claims), len(texts) - 2
    areas = {
        "response_vs_chunks": (range(n), range(k)),
        "response_vs_ground_truth": (range(n), range(k, k + 1)),
        "ground_truth_vs_response": (range(n, len(claims)), range(k + 1, k + 2)),
        "ground_truth_vs_chunks": (range(n, len(claims)), range(k)),
    }
    cells = frozenset((i, j) for rows, columns in areas.values() for i in rows for j in columns)
    whole = VerdictMatrix.of([[None] * len(texts) for _ in claims], len(texts))
    if cells:
        answer = judge.check_cells
        found = await guarded(judge, lambda: answer(claims, texts, cells, question=question))
        whole = _checked_shape(judge, found, (len(claims), len(texts)))
    return {
        name: VerdictMatrix.of([[whole[i][j] for j in columns] for i in rows], len(columns))
        for name, (rows, columns) in areas.items()
    }


async def _matrix(
    judge: Judge, claims: Sequence[Claim], references: Sequence[str], question: str
) -> VerdictMatrix:
    wanted = (len(claims), len(references))
    if 0 in wanted:
        return VerdictMatrix.of([[] for _ in claims], n_references=len(references))
    matrix = await guarded(judge, lambda: judge.check(claims, references, question=question))
    return _checked_shape(judge, matrix, wanted)


def _checked_shape(judge: Judge, matrix: object, wanted: tuple[int, int]) -> VerdictMatrix:
    if isinstance(matrix, VerdictMatrix) and matrix.shape == wanted:
        return matrix
    got = matrix.shape if isinstance(matrix, VerdictMatrix) else type(matrix).__name__
    raise JudgeError(
        f"judge {judge.name!r} returned a matrix of shape {got}, not {wanted}: "
        "it needs one row a claim and one cell a reference"
    )


async def guarded(judge: Judge, call: Callable[[], Awaitable[object]]) -> object:
    """Turn whatever a judge raises into a ``JudgeError`` that names only its class.

    Even ``SystemExit``, which would leave the event loop and take every other evaluation with it,
    and a ``CancelledError`` of the judge's own, which nobody asked for.
    """
    try:
        return await call()
    except JudgeError:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise JudgeError(f"judge {judge.name!r} cancelled itself") from error
    except (Exception, SystemExit) as error:
        raise JudgeError(f"judge {judge.name!r} raised {type(error).__name__}") from error
