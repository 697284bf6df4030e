"""Fills the verdict matrices of a record by asking a judge, and makes its verdicts agree.

A judge is code of the user's or the reply of a model, so nothing that it does is taken on trust:
whatever it raises becomes a ``JudgeError``, and the shape of its result is checked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Final

from claimspan.concurrency import gather_or_cancel
from claimspan.errors import ClaimspanError, JudgeError
from claimspan.judges.calibrated import CalibratedJudge
from claimspan.judges.protocol import AnswerText, ContextJudge, Judge, SparseJudge
from claimspan.records import RagRecord
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrices, VerdictMatrix

__all__ = [
    "ALL_MATRICES",
    "beyond_what_was_kept",
    "coherent",
    "ground_truth_of",
    "guarded",
    "judge_matrices",
]

_FITTED: Final = frozenset({"response_vs_chunks", "response_vs_context"})
"""The verdicts that a calibration is fitted on, and applied to."""


ALL_MATRICES: Final = frozenset(VerdictMatrices.model_fields)


_Area = tuple[Sequence[int], Sequence[int]]
"""The part of all claims against all texts that is one of the matrices: its claims, its texts."""


def ground_truth_of(record: RagRecord) -> str | None:
    """The ground truth of a record; None if it is blank, since it could entail nothing."""
    return record.ground_truth if record.ground_truth and record.ground_truth.strip() else None


async def judge_matrices(
    judge: Judge,
    record: RagRecord,
    response_claims: Sequence[Claim],
    ground_truth_claims: Sequence[Claim],
    *,
    wanted: Collection[str] = ALL_MATRICES,
) -> VerdictMatrices:
    """Ask a judge for the verdict matrices that are wanted, as far as the record allows them.

    A ``SparseJudge`` is asked once for all matrices, and a ``ContextJudge`` for the verdicts on all
    chunks together as well. The calibration of a ``CalibratedJudge`` is applied to the response
    against its chunks alone. Without a ground truth only the response is checked.

    Raises:
        JudgeError: The judge failed, or returned a matrix of another shape.
    """
    # What people have labelled are claims of responses against chunks: of other verdicts, such as
    # whether a ground truth was retrieved, a calibration says nothing.
    calibrated = judge if isinstance(judge, CalibratedJudge) else None
    judge = calibrated.judge if calibrated is not None else judge
    ground_truth = ground_truth_of(record)
    n_claims, n_chunks = len(response_claims), len(record.chunks)
    claims, texts = [*response_claims], [chunk.text for chunk in record.chunks]
    areas: dict[str, _Area] = {"response_vs_chunks": (range(n_claims), range(n_chunks))}
    if ground_truth is not None:
        claims += ground_truth_claims
        texts += [AnswerText(ground_truth), AnswerText(record.response)]
        facts = range(n_claims, len(claims))
        areas["response_vs_ground_truth"] = range(n_claims), [n_chunks]
        areas["ground_truth_vs_response"] = facts, [n_chunks + 1]
        areas["ground_truth_vs_chunks"] = facts, range(n_chunks)
    areas = {name: area for name, area in areas.items() if name in wanted}
    # Each look at what a judge can do takes some 50 us.
    together = "response_vs_context" in wanted
    reader = judge if together and isinstance(judge, ContextJudge) else None  # pyright: ignore[reportGeneralTypeIssues] - a wrapped judge is unwrapped above
    if reader is not None and n_chunks > 1:
        areas["response_vs_context"] = range(n_claims), [len(texts)]
    sparse = judge if reader is None and isinstance(judge, SparseJudge) else reader  # pyright: ignore[reportGeneralTypeIssues] - as above
    # Of a record with a ground truth a judge sees all texts, whichever matrices are wanted.
    if sparse is not None and (len(areas) > 1 or ground_truth is not None):
        matrices = await _matrices_at_once(sparse, reader, claims, texts, areas, record.query)
    else:
        found = await gather_or_cancel(
            [
                _matrix(judge, [claims[i] for i in rows], [texts[j] for j in columns], record.query)
                for rows, columns in areas.values()
            ]
        )
        matrices = dict(zip(areas, found, strict=True))
    # One chunk is the whole context.
    if reader is not None and n_chunks == 1 and "response_vs_chunks" in matrices:
        matrices["response_vs_context"] = matrices["response_vs_chunks"]
    if calibrated is not None:
        matrices |= {name: calibrated.read(matrices[name]) for name in matrices.keys() & _FITTED}
    return VerdictMatrices(**matrices)


async def _matrices_at_once(
    judge: SparseJudge,
    reader: ContextJudge | None,
    claims: Sequence[Claim],
    texts: Sequence[str],
    areas: Mapping[str, _Area],
    question: str,
) -> dict[str, VerdictMatrix]:
    cells = frozenset((i, j) for rows, columns in areas.values() for i in rows for j in columns)
    call = partial(judge.check_cells, claims, texts, cells, question=question)
    width = len(texts)
    if reader is not None and "response_vs_context" in areas:
        # The context has a column of its own, behind those of the texts.
        _, context = areas["response_vs_chunks"]
        call = partial(
            reader.check_context, claims, texts, cells, context=context, question=question
        )
        width += 1
    # The response is not checked against itself, nor the ground truth: those cells stay None.
    if cells:
        whole = _checked_shape(judge, await guarded(judge, call), (len(claims), width))
    else:
        whole = VerdictMatrix.of([[None] * width for _ in claims], width)
    return {name: whole.cut(rows, columns) for name, (rows, columns) in areas.items()}


async def _matrix(
    judge: Judge, claims: Sequence[Claim], references: Sequence[str], question: str
) -> VerdictMatrix:
    shape = (len(claims), len(references))
    # A judge is not asked, and not paid, for a matrix without cells.
    if 0 in shape:
        return VerdictMatrix.of([[] for _ in claims], n_references=len(references))
    matrix = await guarded(judge, lambda: judge.check(claims, references, question=question))
    return _checked_shape(judge, matrix, shape)


def _checked_shape(judge: Judge, matrix: object, shape: tuple[int, int]) -> VerdictMatrix:
    if isinstance(matrix, VerdictMatrix) and matrix.shape == shape:
        return matrix
    got = matrix.shape if isinstance(matrix, VerdictMatrix) else type(matrix).__name__
    raise JudgeError(
        f"judge {judge.name!r} returned a matrix of shape {got}, not {shape}: "
        "return one row per claim and one cell per reference"
    )


async def guarded(judge: Judge, call: Callable[[], Awaitable[object]]) -> object:
    """Await a call of a judge, and turn every exception into a ``JudgeError``.

    Of an exception by others the message names the class only, since its text may quote the record.
    Our own messages quote nothing, and say what to do: they are passed on. A cancellation of the
    current task is no error of the judge.
    """
    try:
        return await call()
    except JudgeError:
        raise
    except asyncio.CancelledError as error:
        # A judge may raise this by itself; passed on, it would end an evaluation that was
        # not cancelled.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise JudgeError(f"judge {judge.name!r} cancelled itself") from error
    except ClaimspanError as error:
        raise JudgeError(f"judge {judge.name!r} failed: {error}") from error
    except (Exception, SystemExit) as error:
        # A SystemExit would leave the event loop, and take every other evaluation with it.
        raise JudgeError(f"judge {judge.name!r} raised {type(error).__name__}") from error


def beyond_what_was_kept(matrices: VerdictMatrices) -> tuple[VerdictMatrices, int]:
    """Return verdicts by chunks that are only a part of the context, and how many that takes back.

    What no chunk entails may be in the part that was not kept. A claim that a chunk entails stays.
    """
    of_context = {
        name: (matrix, matrix.model_copy(update={"has_unseen": True}))
        for name, matrix in matrices
        if matrix is not None and name.endswith(("_vs_chunks", "_vs_context"))
    }
    return (
        matrices.model_copy(update={name: part for name, (_, part) in of_context.items()}),
        sum(
            part.merged.count(None) - whole.merged.count(None)
            for whole, part in of_context.values()
        ),
    )


# --- verdicts that cannot hold together ----------------------------------------------------------

_Rows = list[list[Verdict | None]]


def coherent(matrices: VerdictMatrices) -> tuple[VerdictMatrices, int]:
    """Return verdicts that can hold together, and how many were changed for it.

    A judge decides cell by cell, so its verdicts may not all be true. Of those that cannot hold
    together the weakest gives way, by its confidence. That is for a judge's own verdicts only, and
    never for labels that others recorded. Two rules are forced:

    * A chunk that entails what the ground truth says entails no claim that the ground truth
      contradicts. It then says the facts that the response contradicts, or all of them.
    * Chunks read together do not entail what one of them contradicts and none entails.
    """
    rows = {
        name: [list(row) for row in matrix.rows] for name, matrix in matrices if matrix is not None
    }
    changed = _by_truth(rows) + _together(rows)
    if not changed:
        return matrices, 0
    return VerdictMatrices(
        **{
            name: VerdictMatrix.of(found, matrix.n_references)
            for name, found in rows.items()
            if (matrix := getattr(matrices, name)) is not None
        }
    ), changed


def _by_truth(rows: dict[str, _Rows]) -> int:
    claims, facts = rows.get("response_vs_chunks"), rows.get("ground_truth_vs_chunks")
    by_truth, answered = rows.get("response_vs_ground_truth"), rows.get("ground_truth_vs_response")
    if not (claims and facts and by_truth):
        return 0
    at_stake = [i for i, row in enumerate(answered or ()) if _is(row[0], Label.CONTRADICTED)]
    changed = 0
    for row, by in zip(claims, by_truth, strict=True):
        if not _is(by[0], Label.CONTRADICTED):
            continue
        for chunk, cell in enumerate(row):
            column = [facts[i][chunk] for i in at_stake or range(len(facts))]
            if not _is(cell, Label.ENTAILED) or not all(_is(c, Label.ENTAILED) for c in column):
                continue
            changed += 1
            weakest = min((cell, by[0], *column), key=_strength)
            if weakest is cell:
                row[chunk] = _as(cell, Label.CONTRADICTED)
            elif weakest is by[0]:
                by[0] = _as(by[0], Label.NEUTRAL)
                break
            else:
                place = (at_stake or range(len(facts)))[column.index(weakest)]
                facts[place][chunk] = _as(weakest, Label.NEUTRAL)
    return changed


def _together(rows: dict[str, _Rows]) -> int:
    claims, context = rows.get("response_vs_chunks"), rows.get("response_vs_context")
    changed = 0
    for row, together in zip(claims or (), context or (), strict=bool(claims and context)):
        deny = [i for i, cell in enumerate(row) if _is(cell, Label.CONTRADICTED)]
        if not deny or not _is(together[0], Label.ENTAILED):
            continue
        if any(_is(cell, Label.ENTAILED) for cell in row):
            continue
        changed += 1
        strongest = max((row[i] for i in deny), key=_strength)
        if _strength(together[0]) <= _strength(strongest):
            together[0] = _as(together[0], Label.CONTRADICTED)
            continue
        for i in deny:
            row[i] = _as(row[i], Label.NEUTRAL)
    return changed


def _is(verdict: Verdict | None, label: Label) -> bool:
    return verdict is not None and verdict.label is label


def _strength(verdict: Verdict | None) -> float:
    # A label without a probability is all that its judge says: it is taken for sure.
    confidence = None if verdict is None else verdict.confidence
    return 1.0 if confidence is None else confidence


def _as(verdict: Verdict | None, label: Label) -> Verdict:
    """The verdict with another label, to which the probability of the one that cannot be goes."""
    if verdict is None or verdict.confidence is None:
        return Verdict(label=label)
    shares = {each: getattr(verdict, each.value) for each in Label}
    # Three rounded shares may have a sum of a little more than 1.
    shares[label] = min(1.0, shares[label] + shares[verdict.label])
    shares[verdict.label] = 0.0
    return Verdict(label=label, **{each.value: share for each, share in shares.items()})
