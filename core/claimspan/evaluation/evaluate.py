"""Evaluates records: extracts claims, has a judge check them, computes the metrics.

Everything here exists twice: ``aevaluate`` for asynchronous code, and ``evaluate`` for code
without an event loop, or with one that is busy with something else.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Final, ParamSpec, Protocol, TypeVar, cast

from claimspan.concurrency import Clock, gather_or_cancel, record_clock
from claimspan.cost.budget import Budget, current_budget, with_budget
from claimspan.cost.usage import Meter, Usage, metered
from claimspan.errors import ConfigError, JudgeError
from claimspan.evaluation.matrices import (
    beyond_what_was_kept,
    coherent,
    ground_truth_of,
    guarded,
    judge_matrices,
)
from claimspan.evaluation.result import Evaluation, Evaluations
from claimspan.evaluation.selection import MetricsLike, Selection, Thresholds
from claimspan.files.names import Columns, accepted_names
from claimspan.files.raw_rows import RawRow
from claimspan.files.record_files import Account
from claimspan.files.record_rows import InputRow, record_row
from claimspan.judges.choice import JudgeLike, judge_of
from claimspan.judges.criteria import Criterion
from claimspan.judges.protocol import ClaimLimitedJudge, CriteriaJudge, Grade, Judge
from claimspan.metrics.catalogue import CATALOGUE
from claimspan.metrics.compute import Undefined, check_undefined, measure
from claimspan.progress import progress_bar
from claimspan.records import RagRecord
from claimspan.text.abstention import abstains
from claimspan.text.injection import suspects_injection
from claimspan.text.languages import detect_language
from claimspan.text.markdown import every_sentence, most_sentences
from claimspan.text.shapes import is_list
from claimspan.text.shown import without_shown
from claimspan.text.structured import answer_text
from claimspan.verdicts import Claim, VerdictMatrices

__all__ = [
    "MADE_TO_AGREE",
    "Given",
    "GivenColumns",
    "GivenRecords",
    "aevaluate",
    "aevaluate_many",
    "evaluate",
    "evaluate_many",
    "judge_for",
    "records_of",
    "run_to_end",
    "with_functions",
]


class Table(Protocol):
    """A DataFrame of pandas, a Dataset of Hugging Face, or a Table of pyarrow."""

    @property
    def shape(self) -> tuple[int, int]:
        """Its rows and its columns."""
        ...


Given = RagRecord | Mapping[str, object]
"""A record, or a mapping with the fields of one by any of the names in use."""

GivenRecords = Sequence[RagRecord] | Iterable[Given] | Table
"""Records, or a table of them."""

GivenColumns = Mapping[str, str | None]
"""Field of a record to the column that holds it; an empty name for none."""

MAX_CLAIMS: Final = 50
"""Claims judged per text: an answer of 10,000 claims must not cost 10,000 checks."""

SENTENCES_PER_CLAIM: Final = 2
"""Sentences given to the extraction for each claim that may be judged: every second one may be a
heading or a question."""

MAX_CALLS: Final = 100
"""Judge calls of a record; an ordinary one takes 4 (``tests/benchmarks/judge_cost.py``)."""

MAX_TOKENS: Final = 1_000_000
"""Tokens of a record; an ordinary one takes about 6,000."""

EVALUATION_SECONDS: Final = 300.0
"""Deadline of one evaluation, for a judge that hangs."""

CONCURRENCY: Final = 8

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def aevaluate(
    record: Given,
    *,
    judge: JudgeLike | None = None,
    metrics: MetricsLike | Selection | None = None,
    thresholds: Thresholds | None = None,
    undefined: Undefined = "omit",
    max_claims: int = MAX_CLAIMS,
    deadline_seconds: float = EVALUATION_SECONDS,
    budget: Budget | None = None,
    columns: GivenColumns | None = None,
) -> Evaluation:
    """Evaluate one record.

    It may have 100 judge calls and 1,000,000 tokens, or what ``budget`` allows a record. Verdicts
    beyond that are undecided, with the reason in ``undecided``.

    Args:
        record: The record, or a mapping with its fields by any of the names that files have
            (docs/evaluation.md); its chunks may be texts, mappings with a text, or documents of
            LangChain, LlamaIndex or Haystack.
        judge: The judge, its name as in ``CLAIMSPAN_JUDGE``, or a model object (``judge_of``); None
            takes ``default_judge()``.
        metrics: What to measure, see ``Selection.of``: names, ``"all"``, criteria, functions. None
            measures ``faithfulness``, ``groundedness`` and ``contradicted_by_chunks``, and of a
            record with a ground truth ``precision``, ``recall``, ``f1``, ``claim_recall`` and
            ``context_precision`` as well. Only chosen metrics are judged.
        thresholds: Metric to its worst value that is good, for others than the usual ones.
        undefined: ``"omit"`` leaves a metric without a value out of ``metrics``; ``"zero"`` makes
            it 0.0, as ragchecker 0.1.9 does.
        max_claims: Claims judged per text; the others are counted in ``claims_dropped``.
        deadline_seconds: Seconds after which the judge is stopped, its endpoint's waits left out.
        budget: Bounds the judge, beside a budget of its own. ``OpenAIJudge`` reserves each call on
            it. For a judge that reserves nothing it is checked before, and charged after.
        columns: Field to the name that a mapping has for it, such as ``{"question": "prompt"}``.
            ``{"context": ""}`` evaluates without the context that a mapping seems to have.

    Returns:
        Metrics, claims, verdicts, and everything else that was found out.

    Raises:
        BudgetExceededError: The budget has too little left.
        JudgeError: The judge failed, was too slow, or returned something of another type or shape.
        ConfigError: An argument, the record or the judge is invalid, or the context would be lost.
    """
    _check_options(undefined, max_claims)
    selection = Selection.of(metrics, thresholds)
    (record,) = records_of([record], columns)
    if not deadline_seconds > 0:
        raise ConfigError(f"deadline_seconds is {deadline_seconds!r}: give more than 0")
    judge, whole = judge_for(selection, judge), record.encodable
    record = _answer_alone(whole)
    names = selection.of_record(has_ground_truth=ground_truth_of(record) is not None)
    started = time.perf_counter()
    # The meter counts what the judge reports in this task and its children, and nothing else.
    with with_budget(budget), metered(*_record_limits(current_budget())) as meter:
        async with _charged_to(current_budget(), meter), _deadline(deadline_seconds):
            # Both at once: each may be calls over the network.
            grading = asyncio.ensure_future(_graded(judge, whole, selection.criteria))
            try:
                claims, facts, n_dropped, matrices = await _judged(judge, record, names, max_claims)
                grades = await grading
            finally:
                grading.cancel()
                await asyncio.gather(grading, return_exceptions=True)
    n_changed = 0
    # Labels that others have recorded are theirs.
    if not getattr(judge, "is_recorded", False):
        matrices, n_changed = coherent(matrices)
    undecided = Counter(meter.undecided)
    if record.context_cut:
        matrices, undecided[record.context_cut] = beyond_what_was_kept(matrices)
    measurement = measure(matrices, metrics=names, undefined=undefined)
    return with_functions(
        Evaluation(
            metrics={
                **measurement.metrics,
                **{name: g.score for name, g in grades.items() if g.score is not None},
            },
            undefined={
                **measurement.undefined,
                **{name: g.reason for name, g in grades.items() if g.score is None},
            },
            thresholds=selection.limits_of((*names, *grades)),
            lower_is_better=tuple(c.name for c in selection.criteria if c.lower_is_better),
            explanations={name: g.reason for name, g in grades.items() if g.score is not None},
            response_claims=tuple(claims),
            ground_truth_claims=tuple(facts),
            matrices=matrices,
            abstained=abstains(record.response),
            claims_dropped=n_dropped,
            undecided=dict(+undecided),
            notes=dict(meter.notes) | ({MADE_TO_AGREE: n_changed} if n_changed else {}),
            injection_suspected=_suspected_texts(whole),
            judge_name=judge.name,
            judge_version=_version(judge),
            usage=meter.usage + Usage(seconds=time.perf_counter() - started),
        ),
        selection,
    )


MADE_TO_AGREE: Final = "verdicts that contradicted others, and gave way"
"""The note of an evaluation that says how many verdicts were changed to make them coherent."""


def judge_for(selection: Selection, judge: JudgeLike | None) -> Judge:
    """Return the judge that an option stands for, if it can judge the chosen metrics.

    Raises:
        ConfigError: It is no judge, or a criterion needs a language model.
    """
    found = judge_of(judge)
    if selection.criteria and not isinstance(found, CriteriaJudge):
        raise ConfigError(
            f"criterion {selection.criteria[0].name!r} needs a language model, and the judge is "
            f"{found.name!r}: give one, such as judge='openai:MODEL' (docs/judges.md)"
        )
    return found


def with_functions(evaluation: Evaluation, selection: Selection) -> Evaluation:
    """Return an evaluation with the scores that functions make of it."""
    if not selection.functions or evaluation.error is not None:
        return evaluation
    found = {each.name: each.value(evaluation) for each in selection.functions}
    values = {name: value for name, (value, _) in found.items() if value is not None}
    missing = {name: reason for name, (value, reason) in found.items() if value is None}
    own = (each.name for each in selection.functions if each.lower_is_better)
    return evaluation.model_copy(
        update={
            "metrics": {**evaluation.metrics, **values},
            "undefined": {**evaluation.undefined, **missing},
            "thresholds": {**evaluation.thresholds, **selection.limits_of(found)},
            "lower_is_better": (*evaluation.lower_is_better, *own),
        }
    )


async def aevaluate_many(
    records: GivenRecords,
    *,
    judge: JudgeLike | None = None,
    metrics: MetricsLike | Selection | None = None,
    thresholds: Thresholds | None = None,
    undefined: Undefined = "omit",
    max_claims: int = MAX_CLAIMS,
    concurrency: int = CONCURRENCY,
    progress: bool | None = None,
    budget: Budget | None = None,
    columns: GivenColumns | None = None,
) -> Evaluations:
    """Evaluate many records; a judge that fails on one does not stop the others.

    Args:
        records: The records, each as in ``aevaluate``; or a DataFrame of pandas, a Table of
            pyarrow, or a Dataset of Hugging Face, with a record in each row.
        judge: As in ``aevaluate``.
        metrics: As in ``aevaluate``.
        thresholds: As in ``aevaluate``.
        undefined: As in ``aevaluate``.
        max_claims: As in ``aevaluate``.
        concurrency: Records under evaluation at once.
        progress: Show a bar on standard error; None shows it on a terminal, if rich is installed.
        budget: As in ``aevaluate``.
        columns: As in ``aevaluate``.

    Returns:
        One evaluation per record, in order. If the judge failed, it has no metrics, and its
        ``error`` says why. ``table()`` and ``to_pandas()`` have all of them as a table.

    Raises:
        ConfigError: ``concurrency`` or ``max_claims`` is not positive, ``undefined`` is neither
            ``"omit"`` nor ``"zero"``, a record or the judge is none, or the context of all
            records would be lost.
        MissingExtraError: ``progress=True`` without rich.
    """
    if concurrency < 1:
        raise ConfigError(f"concurrency is {concurrency!r}: give 1 or more")
    _check_options(undefined, max_claims)
    selection = Selection.of(metrics, thresholds)
    known = records_of(records, columns)
    judge = judge_for(selection, judge)
    gate = asyncio.Semaphore(concurrency)
    with progress_bar("evaluating", total=len(known), show=progress) as advance:

        async def one(record: RagRecord) -> Evaluation:
            async with gate:
                try:
                    with with_budget(budget):
                        return await _evaluation_or_error(
                            record, judge, selection, undefined, max_claims
                        )
                finally:
                    advance()

        return Evaluations(known, await asyncio.gather(*map(one, known)))


async def _evaluation_or_error(
    record: RagRecord, judge: Judge, selection: Selection, undefined: Undefined, max_claims: int
) -> Evaluation:
    started = time.perf_counter()
    with metered() as meter:
        try:
            found = await aevaluate(
                record, judge=judge, metrics=selection, undefined=undefined, max_claims=max_claims
            )
        except JudgeError as error:
            names = selection.of_record(has_ground_truth=ground_truth_of(record) is not None)
            return Evaluation(
                undefined=dict.fromkeys(
                    (*names, *selection.all_names[len(selection.names) :]), "the judge failed"
                ),
                abstained=abstains(record.response),
                injection_suspected=_suspected_texts(record),
                judge_name=judge.name,
                judge_version=_version(judge),
                usage=meter.usage + Usage(seconds=time.perf_counter() - started),
                error=str(error),
            )
    # Counted as done, it would not be asked again by a run that goes on.
    why = found.why_undecided
    return found if why is None else found.model_copy(update={"error": why, "metrics": {}})


def _record_limits(budget: Budget | None) -> tuple[int, int]:
    calls, tokens = (budget.calls_per_record, budget.tokens_per_record) if budget else (None, None)
    return MAX_CALLS if calls is None else calls, MAX_TOKENS if tokens is None else tokens


@asynccontextmanager
async def _charged_to(budget: Budget | None, meter: Meter) -> AsyncGenerator[None]:
    """Charge a budget with what the block uses, as far as the judge has not reserved it."""
    if budget is None:
        yield
        return
    await budget.check()
    try:
        yield
    finally:
        unbooked = meter.usage.beyond(budget.booked_for(meter))
        if not unbooked.is_nothing:
            await budget.book(unbooked)


@asynccontextmanager
async def _deadline(seconds: float) -> AsyncGenerator[None]:
    clock = Clock(seconds)
    token = record_clock.set(clock)
    try:
        async with clock.running():
            yield
    except TimeoutError:
        # A TimeoutError of the judge's own is not ours to explain.
        if not clock.has_expired:
            raise
        raise JudgeError(f"no verdicts within {seconds:g} s") from None
    finally:
        record_clock.reset(token)


def _answer_alone(record: RagRecord) -> RagRecord:
    """The record with the statement of its answer: a structure's text, without shown evidence."""
    chunks = [chunk.text for chunk in record.chunks]
    answer = without_shown(answer_text(record.response), chunks)
    is_whole = answer == record.response
    return record if is_whole else record.model_copy(update={"response": answer})


def _suspected_texts(record: RagRecord) -> tuple[str, ...]:
    texts = {"response": record.response, "ground_truth": record.ground_truth or ""}
    texts |= {f"chunks[{i}]": chunk.text for i, chunk in enumerate(record.chunks)}
    return tuple(name for name, text in texts.items() if suspects_injection(text))


def _version(judge: Judge) -> str:
    # Optional, and so no part of the protocol.
    return str(getattr(judge, "version", ""))


async def _judged(
    judge: Judge, record: RagRecord, names: Sequence[str], max_claims: int
) -> tuple[list[Claim], list[Claim], int, VerdictMatrices]:
    """The claims that some metrics are made of, how many more there were, and the verdicts."""
    wanted = frozenset[str]().union(*(CATALOGUE[name].needs for name in names))
    ground_truth = ground_truth_of(record)
    if ground_truth is None:  # nothing is paid for what cannot be measured
        wanted = frozenset(each for each in wanted if "ground_truth" not in each)
    texts = [
        text if any(each.startswith(of) for each in wanted) else ""
        for of, text in (("response", record.response), ("ground_truth", ground_truth or ""))
    ]
    # Cut before, not only after: a text of 10,000 sentences takes 250 calls to extract.
    cut = [_cut(text, SENTENCES_PER_CLAIM * max_claims) for text in texts]
    # Both texts at once: each extraction may be a call over the network.
    found = await gather_or_cancel(
        [_claims_of(judge, text, record.query, max_claims) for text, _ in cut]
    )
    claims, facts = (each[:max_claims] for each in found)
    # A sentence that was cut counts as one claim.
    n_dropped = sum(map(len, found)) - len(claims) - len(facts) + sum(n for _, n in cut)
    matrices = await judge_matrices(judge, record, claims, facts, wanted=wanted)
    return claims, facts, n_dropped, matrices


async def _graded(
    judge: Judge, record: RagRecord, criteria: Sequence[Criterion]
) -> dict[str, Grade]:
    if not criteria or not isinstance(judge, CriteriaJudge):  # ``judge_for`` has refused it
        return {}
    found = await guarded(judge, partial(judge.grade, criteria, record))
    if not is_list(found) or len(found) != len(criteria):
        raise JudgeError(f"judge {judge.name!r} returned no grade for each criterion")
    grades: dict[str, Grade] = {}
    for criterion, each in zip(criteria, found, strict=True):
        if not isinstance(each, Grade) or not (each.score is None or 0 <= each.score <= 1):
            raise JudgeError(f"judge {judge.name!r} returned something else than grades")
        grades[criterion.name] = each
    return grades


def _cut(text: str, max_sentences: int) -> tuple[str, int]:
    """The first sentences of a text, and how many more there were."""
    if most_sentences(text) <= max_sentences:
        return text, 0
    sentences = [
        each for each in every_sentence(text, detect_language(text) or "en") if each.strip()
    ]
    if len(sentences) <= max_sentences:
        return text, 0
    kept = "\n".join(sentence.rstrip("\n") for sentence in sentences[:max_sentences])
    return kept, len(sentences) - max_sentences


async def _claims_of(judge: Judge, text: str, question: str, max_claims: int) -> list[Claim]:
    # No call is paid for a text that can make no claim.
    if not text.strip():
        return []
    call = partial(judge.extract_claims, text, question=question)
    # What a protocol asks of a judge takes 50 us to look at; most have no such method.
    if hasattr(judge, "extract_at_most") and isinstance(judge, ClaimLimitedJudge):
        # One more than is kept, so that it shows, and is counted, if there are more.
        call = partial(judge.extract_at_most, text, max_claims + 1, question=question)
    found = await guarded(judge, call)
    claims = [each for each in found if isinstance(each, Claim)] if is_list(found) else []
    if not is_list(found) or len(claims) < len(found):
        raise JudgeError(
            f"judge {judge.name!r} returned something else than a list of Claim: "
            "return one from extract_claims"
        )
    return claims


# --- what a caller gives, checked before a judge is asked ---------------------------------------


def _check_options(undefined: Undefined, max_claims: int) -> None:
    check_undefined(undefined)
    if max_claims < 1:
        raise ConfigError(f"max_claims is {max_claims!r}: give 1 or more")


class _Frame(Protocol):
    def to_dict(self, orient: str) -> list[object]: ...

    def to_pylist(self) -> list[object]: ...


def records_of(given: GivenRecords, columns: GivenColumns | None = None) -> list[RagRecord]:
    """Records of any container that a caller may have, with ``columns`` as in ``aevaluate``.

    Raises:
        ConfigError: One of them is no record, or the context of all of them would be lost; the
            message has no text of them.
    """
    values = _rows(given)
    if columns is None and all(isinstance(each, RagRecord) for each in values):
        return cast("list[RagRecord]", values)
    by, account = Columns(columns), Account()
    records: list[RagRecord] = []
    for place, value in enumerate(values, start=1):
        if isinstance(value, RagRecord):
            records.append(value)
            continue
        if not isinstance(value, Mapping):
            raise ConfigError(
                f"a record is of type {type(value).__name__}: "
                "give RagRecord(query=..., chunks=..., response=...), or a dict with these fields"
            )
        row = record_row(RawRow(place, 0, cast("object", value), ""), place - 1, by)
        account.add(row)
        if isinstance(row, InputRow):
            records.append(row.record)
    if account.skips:
        reason, skips = next(iter(account.skips.items()))
        raise ConfigError(
            f"record {skips.places[0]} of {len(values)}: {reason} ({account.skipped} of "
            f"{account.rows} are no records): give query and response by these or other names that "
            f"are read: {accepted_names()}; columns={{'question': 'COLUMN'}} reads any"
        )
    account.check_columns(by)
    return records


def _rows(given: object) -> list[object]:
    kind = type(given).__name__
    if isinstance(given, RagRecord | Mapping | str | bytes | Path):
        raise ConfigError(
            f"records are of type {kind}: give a list of records or dicts, a "
            "table of pandas, pyarrow or Hugging Face, or to evaluate() one record; "
            "claimspan.files.read_records reads a file"
        )
    if hasattr(given, "to_pylist"):
        return cast("_Frame", given).to_pylist()
    # By rows: iterating over a frame gives the names of its columns.
    if hasattr(given, "to_dict") and hasattr(given, "iterrows"):
        return cast("_Frame", given).to_dict("records")
    if not isinstance(given, Iterable):
        raise ConfigError(f"records are of type {kind}: give a list of them")
    return list(cast("Iterable[object]", given))


# --- from synchronous code ---------------------------------------------------------------------


def run_to_end(start: Callable[[], Coroutine[object, None, _T]]) -> _T:
    """Run a coroutine on a loop of its own: in this thread, or in another if this has a loop.

    If the caller is interrupted while it waits for the other thread, the coroutine is cancelled and
    awaited, so that a judge is paid for no result that is not awaited.
    """
    has_loop = True
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        has_loop = False
    if not has_loop:  # out of the clause above, which would be told with what the coroutine raises
        found: list[_T] = []

        async def keep() -> None:
            found.append(await start())

        # `asyncio.run` writes out what its task returns, for a message that it then throws away.
        # For an evaluation that takes up to a tenth of the time.
        asyncio.run(keep())
        return found[0]
    cancel: Future[Callable[[], object]] = Future()

    async def body() -> _T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        cancel.set_result(lambda: loop.call_soon_threadsafe(task.cancel) if task else None)
        return await start()

    # In a copy of the caller's context, so that what is set there, such as a suppressed tracing,
    # holds in the new thread too.
    context = contextvars.copy_context()
    with ThreadPoolExecutor(1, thread_name_prefix="claimspan-evaluate") as thread:
        outcome = thread.submit(context.run, asyncio.run, body())
        try:
            return outcome.result()
        except BaseException:
            # Ctrl-C in a notebook, whose loop is what makes this thread wait.
            if not outcome.done():
                cancel.result()()
            raise


def _synchronous(function: Callable[_P, Coroutine[object, None, _T]]) -> Callable[_P, _T]:
    @wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return run_to_end(lambda: function(*args, **kwargs))
        except ConfigError as error:
            # A wrong argument is told without the frames of an event loop.
            raise error.with_traceback(None)  # noqa: B904 - it is the error itself

    call.__name__ = call.__qualname__ = function.__name__.removeprefix("a")
    return call


evaluate = _synchronous(aevaluate)
"""Evaluate one record from synchronous code; also if an event loop is already running.

Arguments, result and errors are those of ``aevaluate``.
"""

evaluate_many = _synchronous(aevaluate_many)
"""Evaluate many records from synchronous code; also if an event loop is already running.

Arguments, result and errors are those of ``aevaluate_many``.
"""
