"""``claimspan bench meta-eval``: do scores prefer the answer that people prefer?

RAGChecker's table 5 (arXiv 2408.08067) as published and from its own files, with rows of judges.
``human_labeled_data.json`` has each pair of answers twice, once from each of two annotators, who
say from -2 to 2 how much better the second answer is. ``baseline_ragchecker.json`` has RAGChecker's
own scores of both answers.

All of it is as in ``meta_eval.py`` of RAGChecker's data: the difference of the scores of the two
answers, second minus first, is stretched to the range of people's labels over all pairs, and then
stands beside both people's labels. A difference that is missing becomes the median.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeVar

import numpy as np
import typer
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from claimspan.cli.options import JudgeNames, JudgeOptions, judges_from
from claimspan.concurrency import SingleFlight
from claimspan.errors import ConfigError, FileError, JudgeError
from claimspan.evaluation.evaluate import run_to_end
from claimspan.evaluation.result import Evaluation
from claimspan.files.jsonl import read_text
from claimspan.judges.protocol import Cell, Judge, SparseJudge
from claimspan.records import RagRecord
from claimspan.statistics import CONFIDENCE, RESAMPLES, SEED, Estimate
from claimspan.text.visible import visible
from claimspan.verdicts import Claim, VerdictMatrix
from claimspan_bench.resumed import evaluate_resumed, results_of_judge, version_of
from claimspan_bench.shown import (
    SOME_FAILED,
    AsJson,
    Concurrency,
    Markdown,
    Progress,
    aligned,
    interval,
    piped,
    refuse_both,
)

__all__ = [
    "FIGURES",
    "METRIC_OF_ASPECT",
    "PUBLISHED",
    "Agreement",
    "MetaEvaluation",
    "differences_of",
    "figures_of",
    "meta_eval_command",
    "meta_evaluate",
    "read_pairs",
    "records_of",
    "resampled",
    "stretched",
]

METRIC_OF_ASPECT: Final = {"correctness": "precision", "completeness": "recall", "overall": "f1"}
"""What people compared two answers by, to the metric that stands for it in RAGChecker's data."""

FIGURES: Final = {"pearson": "Pearson", "spearman": "Spearman", "within_one": "within 1"}
"""Pearson's r, Spearman's rank correlation, and the share of values at most 1 apart, to the heads
of their columns."""

PUBLISHED: Final[Mapping[str, Mapping[str, Mapping[str, float]]]] = {
    "RAGChecker": {
        "correctness": {"pearson": 0.4966, "spearman": 0.4695},
        "completeness": {"pearson": 0.6067, "spearman": 0.5811},
        "overall": {"pearson": 0.6193, "spearman": 0.6090},
    },
    "Human": {
        "correctness": {"pearson": 0.6367, "spearman": 0.5919},
        "completeness": {"pearson": 0.7191, "spearman": 0.6836},
        "overall": {"pearson": 0.7009, "spearman": 0.6889},
    },
}
"""Row to aspect to figure, from table 5."""

PUBLISHED_WITHIN_ONE: Final = 0.9095
"""Share of labels of one annotator at most 1 from the other's, over all aspects; same paper."""

PUBLISHED_PAIRS: Final = 280
"""Number of pairs that the published figures rest on."""

_HUMAN_FILE: Final = "human_labeled_data.json"
_RAGCHECKER_FILE: Final = "baseline_ragchecker.json"
_ANNOTATORS: Final = 2

_RANGE: Final = 4.0
"""From -2, the first answer is much better, to 2."""

_BATCH: Final = 100
"""Resamples computed at once, so that many labels take little memory."""

_Array = NDArray[np.float64]
_Differences = Mapping[str, Sequence[float | None]]
"""Aspect to the score of each second answer minus that of the first, shape ``(n_pairs,)``; None
where an answer has no scores."""


# --- the pairs ---

_Preference = Annotated[int, Field(ge=-2, le=2)]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", protected_namespaces=())

    model_name: str
    response: str


class _Scores(BaseModel):
    """RAGChecker's scores of an answer; NaN or null where it has none."""

    model_config = ConfigDict(extra="ignore")

    correctness_label: float | None
    completeness_label: float | None
    overall_label: float | None


class _ScoredAnswer(_Answer):
    ragchecker: _Scores


class _HumanRow(BaseModel):
    model_config = ConfigDict(extra="ignore")

    instance_id: str | int
    query: str
    gt_answer: str
    model1: _Answer
    model2: _Answer
    correctness_label: _Preference
    completeness_label: _Preference
    overall_label: _Preference


class _RecordedRow(BaseModel):
    model_config = ConfigDict(extra="ignore")

    instance_id: str | int
    model1: _ScoredAnswer
    model2: _ScoredAnswer


_Row = TypeVar("_Row", _HumanRow, _RecordedRow)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to a query, and what two people and RAGChecker say of them."""

    id: str
    """RAGChecker's ``instance_id``."""

    query: str
    ground_truth: str
    answers: tuple[str, str]

    preferences: tuple[Mapping[str, int], ...]
    """Aspect to -2 (the first answer is much better) to 2 (the second is), of each annotator."""

    ragchecker: tuple[Mapping[str, float | None], ...]
    """Aspect to RAGChecker's score of each answer, 0 to 1; None where it has none."""


def read_pairs(directory: str | Path) -> tuple[list[Pair], int]:
    """Read the two files of a folder.

    Args:
        directory: RAGChecker's ``data/meta_evaluation``, or a part of it.

    Returns:
        The pairs that both files hold, in the order of the file of people's labels, on which
        Human's correlation depends; and how many only one of them holds.

    Raises:
        FileError: A file is absent or holds something else, a pair has not two annotators, or the
            two files name other answers.
    """
    directory = Path(directory)
    human = _by_id(directory / _HUMAN_FILE, _HumanRow)
    recorded = _by_id(directory / _RAGCHECKER_FILE, _RecordedRow)
    pairs = [_pair(key, human[key], recorded[key]) for key in human if key in recorded]
    if not pairs:
        raise FileError(
            f"{_HUMAN_FILE} and {_RAGCHECKER_FILE} of {str(directory)!r} have no pair in common: "
            "give a folder like RAGChecker's data/meta_evaluation"
        )
    return pairs, len(human.keys() ^ recorded.keys())


def _by_id(path: Path, kind: type[_Row]) -> dict[str, list[_Row]]:
    text = read_text(path, wanted="JSON file of RAGChecker's meta-evaluation")
    try:
        # By Python's own parser: RAGChecker's file may hold NaN, which other parsers refuse.
        rows: list[_Row] = TypeAdapter(list[kind]).validate_python(json.loads(text))  # type: ignore[valid-type]  # a class made of the argument
    except ValidationError as error:
        place = ".".join(map(str, error.errors(include_input=False)[0]["loc"]))
        # Without the cause: a validation error quotes the input, which may be private.
        raise FileError(
            f"{str(path)!r} cannot be used at {place or 'its top'}: give RAGChecker's {path.name}"
        ) from None
    except (ValueError, RecursionError):
        raise FileError(f"{str(path)!r} is not JSON: give RAGChecker's {path.name}") from None
    found: dict[str, list[_Row]] = defaultdict(list)
    for row in rows:
        found[str(row.instance_id)].append(row)
    return found


def _pair(key: str, human: Sequence[_HumanRow], recorded: Sequence[_RecordedRow]) -> Pair:
    if len(human) != _ANNOTATORS or len(recorded) != 1:
        raise FileError(
            f"pair {key} has {len(human)} annotators and {len(recorded)} rows of RAGChecker: each "
            f"pair needs {_ANNOTATORS} and 1"
        )
    models = [(each.model1, each.model2) for each in human]
    models += [(each.model1, each.model2) for each in recorded]
    answers = {(first.response, second.response) for first, second in models}
    if len(answers) > 1:
        raise FileError(
            f"pair {key} has other answers, or another order of them, in {_RAGCHECKER_FILE}: give "
            "files that belong together"
        )
    scores = (recorded[0].model1.ragchecker, recorded[0].model2.ragchecker)
    return Pair(
        id=key,
        query=human[0].query,
        ground_truth=human[0].gt_answer,
        answers=answers.pop(),
        preferences=tuple(
            {aspect: getattr(row, f"{aspect}_label") for aspect in METRIC_OF_ASPECT}
            for row in human
        ),
        ragchecker=tuple(
            {aspect: getattr(score, f"{aspect}_label") for aspect in METRIC_OF_ASPECT}
            for score in scores
        ),
    )


# --- what a judge says of them ---


def records_of(pairs: Sequence[Pair]) -> list[RagRecord]:
    """Return two records a pair, one for each answer; without chunks, which the data has not."""
    return [
        RagRecord(
            id=f"{pair.id}/{place}",
            query=pair.query,
            response=answer,
            ground_truth=pair.ground_truth,
            chunks=(),
        )
        for pair in pairs
        for place, answer in enumerate(pair.answers, start=1)
    ]


def differences_of(evaluations: Sequence[Evaluation]) -> dict[str, list[float | None]]:
    """Return, by aspect, the score of each second answer minus that of the first.

    Args:
        evaluations: Of ``records_of``, two a pair. An undefined metric, of an answer without
            claims, counts as 0.0 as in RAGChecker; an answer on which the judge failed has none.
    """
    found: dict[str, list[float | None]] = {}
    for aspect, metric in METRIC_OF_ASPECT.items():
        scores = [
            None if each.error is not None else each.metrics.get(metric, 0.0)
            for each in evaluations
        ]
        found[aspect] = [
            _minus(second, first) for first, second in zip(scores[::2], scores[1::2], strict=True)
        ]
    return found


def _minus(second: float | None, first: float | None) -> float | None:
    """The difference; None without one of the two, for which RAGChecker's files may have NaN."""
    if second is None or first is None or math.isnan(second) or math.isnan(first):
        return None
    return second - first


class _Sharing:
    """A judge that extracts the claims of a text once, whoever asks for them."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._known: dict[str, list[Claim]] = {}
        self._flights = SingleFlight[list[Claim]]()
        self.name = judge.name
        self.version = version_of(judge)

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        # With the question, since a judge may read a text by it.
        key = f"{question}\0{text}"
        if key not in self._known:
            self._known[key] = await self._flights.run(
                key, lambda: self._judge.extract_claims(text, question=question)
            )
        return self._known[key]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        return await self._judge.check(claims, references, question=question)


class _SparseSharing(_Sharing):
    """As ``_Sharing``, for a judge that answers several matrices in one call.

    A class of its own: a judge without ``check_cells`` must not seem to have it.
    """

    def __init__(self, judge: SparseJudge) -> None:
        super().__init__(judge)
        self._sparse = judge

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        return await self._sparse.check_cells(claims, references, cells, question=question)


# --- how far the two agree ---


class Resampled(NamedTuple):
    """A figure of the whole sample, and of each resample."""

    value: float

    drawn: _Array
    """Of each resample, shape ``(n_resamples,)``."""

    n: int

    def minus(self, other: Resampled) -> Resampled:
        """Return the difference to another figure of the same sample, over the same resamples."""
        return Resampled(self.value - other.value, self.drawn - other.drawn, self.n)

    def estimate(self) -> Estimate:
        """Return the figure with its interval (percentile method)."""
        ends = sorted(self.drawn.tolist())
        tail = round((1 - CONFIDENCE) / 2 * (len(ends) - 1))
        return Estimate(value=self.value, low=ends[tail], high=ends[-1 - tail], n=self.n)


def resampled(
    left: Sequence[float], right: Sequence[float], groups: Sequence[Hashable]
) -> dict[str, Resampled]:
    """Compute every figure of two series, and of resamples of whole groups.

    A resample is a weight for each group: how often it was drawn. A weighted correlation is that of
    the sample that was drawn, and one product of matrices gives hundreds of them.

    Args:
        left: One series, shape ``(n,)``.
        right: The other one.
        groups: The group of each value, such as its query.

    Returns:
        Each of ``FIGURES``. A correlation with a series that is constant is 0.
    """
    x, y = np.array(left, dtype=np.float64), np.array(right, dtype=np.float64)
    numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
    group_of = np.array([numbers[group] for group in groups])
    generator = np.random.default_rng(SEED)
    n_groups = len(numbers)
    batches: list[dict[str, _Array]] = []
    for _ in range(RESAMPLES // _BATCH):
        # How often each of n is drawn in n draws, without a list of the draws.
        counts = generator.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=_BATCH)
        batches.append(figures_of(x, y, counts[:, group_of].astype(np.float64)))
    whole = figures_of(x, y, np.ones((1, len(x))))
    return {
        name: Resampled(
            float(whole[name][0]), np.concatenate([each[name] for each in batches]), len(x)
        )
        for name in FIGURES
    }


def figures_of(x: _Array, y: _Array, weights: _Array) -> dict[str, _Array]:
    """Return each figure by each row of weights.

    Args:
        x: One series, shape ``(n,)``.
        y: The other one.
        weights: How often each value counts, shape ``(n_rows, n)``.

    Returns:
        Figure to its values, shape ``(n_rows,)``.
    """
    # The same values in each row: ranks, unlike values, depend on the weights.
    left, right = np.broadcast_to(x, weights.shape), np.broadcast_to(y, weights.shape)
    near = (np.abs(x - y) <= 1.0).astype(np.float64)
    return {
        "pearson": _correlation(left, right, weights),
        "spearman": _correlation(_ranks(x, weights), _ranks(y, weights), weights),
        "within_one": (weights @ near) / weights.sum(axis=1),
    }


def _correlation(left: _Array, right: _Array, weights: _Array) -> _Array:
    """Weighted correlation of each row, shape ``(n_rows,)``; 0 where a row is constant."""
    total = weights.sum(axis=1, keepdims=True)
    x = left - (weights * left).sum(axis=1, keepdims=True) / total
    y = right - (weights * right).sum(axis=1, keepdims=True) / total
    shared = (weights * x * y).sum(axis=1)
    scale = np.sqrt((weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1))
    # Rounding leaves a constant row a scale that is not quite 0.
    is_constant = scale < 1e-12
    return np.where(is_constant, 0.0, shared / np.where(is_constant, 1.0, scale))


def _ranks(values: _Array, weights: _Array) -> _Array:
    """Rank of each value in the sample that its row of weights stands for; ties share the mean."""
    _, tie_of = np.unique(values, return_inverse=True)
    order = np.argsort(tie_of, kind="stable")
    starts = np.unique(tie_of[order], return_index=True)[1]
    of_tie = np.add.reduceat(weights[:, order], starts, axis=1)
    ranks = np.cumsum(of_tie, axis=1) - (of_tie - 1) / 2
    return ranks[:, tie_of]


def stretched(differences: Sequence[float | None]) -> list[float]:
    """Stretch differences to -2 to 2, where the lowest becomes -2 and the highest 2.

    Args:
        differences: Of each pair, shape ``(n_pairs,)``; None becomes the median of the others.

    Returns:
        As many values; all 0.0 where there is no difference, and unchanged where all are equal.
    """
    known = [each for each in differences if each is not None]
    if not known:
        return [0.0] * len(differences)
    # The range is that of all pairs: per query every pair would become -2 or 2.
    median, low, high = statistics.median(known), min(known), max(known)
    filled = [median if each is None else each for each in differences]
    if high == low:
        return filled
    return [((each - low) / (high - low) - 0.5) * _RANGE for each in filled]


class Agreement(BaseModel):
    """The agreement of one judge with people."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    pairs: int

    labels: int
    """Number of people's labels that each figure rests on; for people, of pairs of labels."""

    figures: Mapping[str, Mapping[str, Estimate]]
    """Aspect to figure to its value, with an interval over whole queries."""

    missing: int = 0
    """Pairs without a difference, which have the median of the others."""

    failed: Mapping[str, int] = {}

    undefined: Mapping[str, int] = {}
    """Aspect to number of answers without a value, which counts as 0.0 as in RAGChecker."""

    minus_ragchecker: Mapping[str, Mapping[str, Estimate]] = {}
    """Aspect to figure to the difference to RAGChecker's, over the same resamples."""


class MetaEvaluation(BaseModel):
    """The agreement of RAGChecker, of people and of judges with people, over the same pairs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    pairs: int
    published_pairs: int = PUBLISHED_PAIRS

    only_in_one: int
    """Number of pairs that only one of the files holds; they are left out."""

    rows: tuple[Agreement, ...]
    """RAGChecker, Human, and then the judges in the order given."""

    no_preference: Mapping[str, float]
    """Aspect to the share of labels at most 1 from 0: what a judge reaches that never prefers an
    answer. People often see little difference, so that it is high."""

    published: Mapping[str, Mapping[str, Mapping[str, float]]] = PUBLISHED


def meta_evaluate(
    directory: str | Path,
    judges: Mapping[str, Judge] | None = None,
    *,
    limit: int | None = None,
    results: Path | None = None,
    concurrency: int = 4,
    progress: bool | None = None,
) -> MetaEvaluation:
    """Compute the rows of RAGChecker's table 5 from its files, and those of judges beside them.

    Args:
        directory: Folder with ``human_labeled_data.json`` and ``baseline_ragchecker.json``.
        judges: Name to judge; None measures none.
        limit: Use only the first pairs; None uses all.
        results: Folder that keeps a file of results for each judge, which a run goes on with;
            None keeps nothing.
        concurrency: Answers under evaluation at once.
        progress: As in ``evaluate_many``.

    Raises:
        FileError: The files cannot be read, or do not belong together.
        JudgeError: A judge failed on every answer.
        ConfigError: As in ``evaluate_resumed``; or ``limit`` is below 2.
    """
    if limit is not None and limit < 2:
        raise ConfigError(f"limit is {limit!r}: a correlation needs 2 pairs or more")
    pairs, only_in_one = read_pairs(directory)
    pairs = pairs[:limit]
    recorded: dict[str, list[float | None]] = {}
    people: dict[str, dict[str, Resampled]] = {}
    no_preference: dict[str, float] = {}
    for aspect in METRIC_OF_ASPECT:
        scores = [(pair.ragchecker[0][aspect], pair.ragchecker[1][aspect]) for pair in pairs]
        recorded[aspect] = [_minus(second, first) for first, second in scores]
        labels = [[float(each[aspect]) for each in pair.preferences] for pair in pairs]
        first, second = zip(*labels, strict=True)
        people[aspect] = resampled(first, second, [pair.query for pair in pairs])
        near_0 = [abs(label) <= 1 for each in labels for label in each]
        no_preference[aspect] = sum(near_0) / len(near_0)
    ragchecker = _beside_labels(pairs, recorded)
    rows = [
        Agreement(
            name="RAGChecker",
            pairs=len(pairs),
            labels=2 * len(pairs),
            figures=_estimates(ragchecker),
            missing=_missing(recorded),
        ),
        Agreement(name="Human", pairs=len(pairs), labels=len(pairs), figures=_estimates(people)),
    ]
    for name, judge in (judges or {}).items():
        # Each ground truth has two answers, and its claims are the same for both.
        sharing = _SparseSharing(judge) if isinstance(judge, SparseJudge) else _Sharing(judge)
        evaluations = _evaluated(
            pairs, sharing, results_of_judge(results, name), concurrency, progress
        )
        ours = differences_of(evaluations)
        figures = _beside_labels(pairs, ours)
        rows.append(
            Agreement(
                name=name,
                pairs=len(pairs),
                labels=2 * len(pairs),
                figures=_estimates(figures),
                missing=_missing(ours),
                failed=Counter(each.error for each in evaluations if each.error is not None),
                undefined={
                    aspect: sum(
                        metric not in each.metrics for each in evaluations if each.error is None
                    )
                    for aspect, metric in METRIC_OF_ASPECT.items()
                },
                minus_ragchecker={
                    aspect: {n: f.minus(ragchecker[aspect][n]).estimate() for n, f in each.items()}
                    for aspect, each in figures.items()
                },
            )
        )
    return MetaEvaluation(
        pairs=len(pairs), only_in_one=only_in_one, rows=tuple(rows), no_preference=no_preference
    )


def _evaluated(
    pairs: Sequence[Pair],
    judge: Judge,
    results: Path | None,
    concurrency: int,
    progress: bool | None,
) -> list[Evaluation]:
    evaluations = run_to_end(
        lambda: evaluate_resumed(
            records_of(pairs), judge, results=results, concurrency=concurrency, progress=progress
        )
    )
    if all(each.error is not None for each in evaluations):
        raise JudgeError(f"judge {judge.name!r} failed on every answer: {evaluations[0].error}")
    return evaluations


def _beside_labels(
    pairs: Sequence[Pair], differences: _Differences
) -> dict[str, dict[str, Resampled]]:
    """Aspect to its figures; each difference stands beside both people's labels."""
    queries = [pair.query for pair in pairs for _ in pair.preferences]
    return {
        aspect: resampled(
            [value for value in stretched(differences[aspect]) for _ in range(_ANNOTATORS)],
            [float(label[aspect]) for pair in pairs for label in pair.preferences],
            queries,
        )
        for aspect in METRIC_OF_ASPECT
    }


def _estimates(
    figures: Mapping[str, Mapping[str, Resampled]],
) -> dict[str, dict[str, Estimate]]:
    return {
        aspect: {name: each.estimate() for name, each in some.items()}
        for aspect, some in figures.items()
    }


def _missing(differences: _Differences) -> int:
    return max(sum(each is None for each in row) for row in differences.values())


# --- the command ---


def meta_eval_command(
    directory: Annotated[
        Path,
        typer.Argument(
            help="Folder with human_labeled_data.json and baseline_ragchecker.json, as in "
            "RAGChecker's data/meta_evaluation."
        ),
    ],
    judges: JudgeNames = None,
    judge_options: JudgeOptions = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of results, one file a judge. A run goes on with what it holds.",
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Use only the first N pairs.", min=2)] = None,
    concurrency: Concurrency = 4,
    progress: Progress = None,
    as_json: AsJson = False,
    markdown: Markdown = False,
) -> None:
    """Compare judges with people on RAGChecker's pairs of answers.

    People said of two answers to a query which is the better one, and so do the differences of
    their scores. Prints how far the two go together: as RAGChecker has published it, from its own
    files, and for each judge that is given. Exits with 1 where a judge failed on some answers.
    """
    refuse_both(markdown, as_json)
    found = meta_evaluate(
        directory,
        judges_from(judges or (), judge_options),
        limit=limit,
        results=output,
        concurrency=concurrency,
        progress=progress,
    )
    if as_json:
        typer.echo(found.model_dump_json())
    else:
        typer.echo(visible(_shown(found, markdown=markdown)))
    if any(row.failed for row in found.rows):
        raise typer.Exit(SOME_FAILED)


def _shown(found: MetaEvaluation, *, markdown: bool) -> str:
    """A table for each aspect, and what the figures rest on."""
    heading = f"{found.pairs} of the {found.published_pairs} pairs that the published rows rest on"
    method = (
        "Each figure x 100, with its 95 % interval over whole queries.",
        "Within 1: differences of scores, stretched to -2 to 2, at most 1 from a person's label.",
    )
    lines = [heading, *([""] if markdown else []), *method]
    for aspect in METRIC_OF_ASPECT:
        rows = list(_rows(found, aspect))
        lines += ["", piped(rows) if markdown else aligned(rows)]
    notes = [f"- {note}" if markdown else note for note in _notes(found)]
    return "\n".join((*lines, "", *notes))


def _rows(found: MetaEvaluation, aspect: str) -> Iterator[list[str]]:
    def cells(figures: Mapping[str, Estimate], sign: str = "") -> list[str]:
        return [
            interval(figures[name], scale=100, digits=2, end_digits=1, sign=sign)
            for name in FIGURES
        ]

    yield [aspect, *FIGURES.values()]
    for row in found.rows:
        if row.name in found.published:
            published = found.published[row.name][aspect]
            shown = [f"{published[n] * 100:.2f}" if n in published else "-" for n in FIGURES]
            yield [f"{row.name}, published", *shown]
        yield [row.name, *cells(row.figures[aspect])]
        if row.minus_ragchecker:
            yield ["  minus RAGChecker", *cells(row.minus_ragchecker[aspect], "+")]
    yield ["no preference", "-", "-", f"{100 * found.no_preference[aspect]:.2f}"]


def _notes(found: MetaEvaluation) -> Iterator[str]:
    """What the figures rest on, and what was put in for values that are not there."""
    if found.pairs != found.published_pairs:
        yield (
            f"The published rows rest on {found.published_pairs} pairs: rows of these "
            f"{found.pairs} differ from them."
        )
    (people,) = (row for row in found.rows if row.name == "Human")
    within_one = statistics.fmean(each["within_one"].value for each in people.figures.values())
    yield (
        f"Two people are at most 1 apart in {100 * within_one:.2f} % of all labels; "
        f"published: {100 * PUBLISHED_WITHIN_ONE:.2f} %."
    )
    yield (
        "A judge without any preference is within 1 as often as its row says: correlations tell "
        "judges apart, this figure does not."
    )
    if found.only_in_one:
        yield f"{found.only_in_one} pairs are in one of the two files alone, and are left out."
    for row in found.rows:
        counted = [f"{aspect} {n}" for aspect, n in row.undefined.items() if n]
        if counted:
            yield (
                f"{row.name}: of {2 * row.pairs} answers, some have no value, which counts as 0 as "
                f"in RAGChecker: {', '.join(counted)}."
            )
        if row.missing:
            yield (
                f"{row.name}: {row.missing} of {row.pairs} pairs have no scores, and the median "
                "difference of the others."
            )
        for reason, n in row.failed.items():
            yield f"{row.name} failed on {n} of {2 * row.pairs} answers: {reason}"
