"""Which metrics are wanted of a record: those of the catalogue, criteria, and functions.

Only chosen metrics are judged: a record costs the verdicts that the chosen metrics are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from inspect import iscoroutinefunction
from typing import Final, cast

from pydantic import JsonValue, TypeAdapter

from claimspan.errors import ConfigError
from claimspan.evaluation.result import Evaluation, table_columns
from claimspan.judges.criteria import (
    MAX_CRITERIA,
    SHIPPED,
    Criterion,
    check_name,
    check_threshold,
)
from claimspan.metrics.catalogue import (
    CATALOGUE,
    DEFAULT_METRICS,
    LOW_RECORDS,
    METRICS,
    WITHOUT_GROUND_TRUTH,
    unknown_metric,
)

__all__ = ["FunctionMetric", "MetricsLike", "Selection", "Thresholds", "names_given"]

Thresholds = Mapping[str, float]
"""Metric to its worst value that is still good, 0 to 1."""


@dataclass(frozen=True, slots=True)
class FunctionMetric:
    """A function of yours that makes a score of an evaluation."""

    function: Callable[[Evaluation], float | None]
    """Returns a value between 0 and 1, or None if the evaluation has none. It sees the verdicts of
    the other chosen metrics. If it raises, the score has no value, and ``undefined`` says so."""

    name: str = ""
    """Name of the score; empty for that of the function."""

    threshold: float | None = None
    """The worst value that is good; None calls no answer low."""

    lower_is_better: bool = False

    def __post_init__(self) -> None:
        """Refuse a field that cannot be used, by a ``ConfigError``."""
        if not callable(self.function):  # pyright: ignore[reportUnnecessaryComparison] - checked for those who do not type-check
            raise ConfigError(
                f"FunctionMetric got a {type(self.function).__name__}: give a function"
            )
        if iscoroutinefunction(self.function):
            raise ConfigError("FunctionMetric got an asynchronous function: give a plain one")
        if not self.name:
            object.__setattr__(self, "name", getattr(self.function, "__name__", ""))
        check_name("FunctionMetric", self.name)
        if self.threshold is not None:
            check_threshold(self.name, self.threshold)

    def value(self, evaluation: Evaluation) -> tuple[float | None, str]:
        """Return the score, or the reason why it is missing, whether the function works or not."""
        # Of its own: a function that writes into it must not change the scores of others.
        seen = evaluation.model_copy(update={"metrics": dict(evaluation.metrics)})
        try:
            value = self.function(seen)
        except Exception as error:  # noqa: BLE001 - a function of the user's may raise anything
            return None, f"the function raised {type(error).__name__}"
        if value is None:
            return None, "the function returned None"
        if isinstance(value, bool | int | float) and 0 <= value <= 1:  # pyright: ignore[reportUnnecessaryIsInstance] - it may return anything
            return float(value), ""
        return None, "the function returned no number between 0 and 1"


OwnMetric = Criterion | FunctionMetric

MetricsLike = (
    str
    | Criterion
    | FunctionMetric
    | Sequence[str | OwnMetric | Callable[["Evaluation"], float | None]]
)
"""What ``metrics=`` takes: names, ``"default"``, ``"all"``, criteria, and functions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The metrics that are wanted, in the order of all scores, and where they begin to be low."""

    names: tuple[str, ...] = DEFAULT_METRICS
    by_default: bool = True
    """Whether these were not asked for: a record without a ground truth then lacks nothing."""

    criteria: tuple[Criterion, ...] = ()
    """What a language model judges of the answer as a whole."""

    functions: tuple[FunctionMetric, ...] = ()
    """Metrics that are functions of the finished evaluation."""

    thresholds: Thresholds = field(default_factory=dict[str, float])
    """Those that differ from the catalogue's, and those of the user's own metrics."""

    @classmethod
    def of(
        cls, metrics: MetricsLike | Selection | None = None, thresholds: Thresholds | None = None
    ) -> Selection:
        """Return what the options ``metrics`` and ``thresholds`` stand for.

        Args:
            metrics: Names, as a list or separated by commas, criteria and functions; ``"all"`` for
                every metric, None or ``"default"`` for ``faithfulness``, ``groundedness`` and
                ``contradicted_by_chunks``, and of records with a ground truth for ``precision``,
                ``recall``, ``f1``, ``claim_recall`` and ``context_precision``.
            thresholds: Metric to its worst value that is good. It is taken literally: what the
                catalogue excuses, such as more than a short ground truth says, is not excused.

        Raises:
            ConfigError: A metric is unknown, given twice or by no name, or a threshold cannot work.
        """
        if isinstance(metrics, Selection):
            given = _checked(thresholds or {}, metrics.all_names)
            return replace(metrics, thresholds={**metrics.thresholds, **given})
        return cls.of_any(_given("default" if metrics is None else metrics), thresholds)

    @classmethod
    def of_any(cls, given: Sequence[object], thresholds: Thresholds | None = None) -> Selection:
        """As ``of``, for a list, and checks each item."""
        wanted = [_metric(each) for each in given]
        names = {
            name for each in wanted if isinstance(each, str) for name in _SETS.get(each, [each])
        }
        criteria = [each for each in wanted if isinstance(each, Criterion)]
        functions = [each for each in wanted if isinstance(each, FunctionMetric)]
        given_own: list[OwnMetric] = [*criteria, *functions]
        own = [each.name for each in given_own]
        for name in own:
            if name in CATALOGUE or name in _RESERVED:
                raise ConfigError(
                    f"a metric of yours got the name {name!r}, which claimspan uses: give another"
                )
            if own.count(name) > 1:
                raise ConfigError(f"two metrics are called {name!r}: give each a name of its own")
        if len(criteria) > MAX_CRITERIA:
            raise ConfigError(f"{len(criteria)} criteria are given: give at most {MAX_CRITERIA}")
        if not wanted:
            raise ConfigError("metrics is empty: give names, 'all', or None for the default")
        chosen = tuple(name for name in METRICS if name in names)
        limits = {each.name: each.threshold for each in given_own}
        return cls(
            names=chosen,
            by_default="default" in wanted,
            criteria=tuple(criteria),
            functions=tuple(functions),
            thresholds={
                **{name: limit for name, limit in limits.items() if limit is not None},
                **_checked(thresholds or {}, [*chosen, *own]),
            },
        )

    @property
    def own(self) -> tuple[OwnMetric, ...]:
        """The metrics that are not the catalogue's."""
        return (*self.criteria, *self.functions)

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of all scores that there may be, in their order."""
        return (*self.names, *(each.name for each in self.own))

    def of_record(self, *, has_ground_truth: bool) -> tuple[str, ...]:
        """Return the metrics of the catalogue that are measured of a record."""
        if has_ground_truth or not self.by_default:
            return self.names
        # Beside the default others may be asked for by name: these are said to have no value.
        return tuple(
            name
            for name in self.names
            if name in WITHOUT_GROUND_TRUTH or name not in DEFAULT_METRICS
        )

    @property
    def lower_is_better(self) -> tuple[str, ...]:
        """The user's own metrics that are better the lower they are."""
        return tuple(each.name for each in self.own if each.lower_is_better)

    def data(self) -> dict[str, JsonValue]:
        """Return what an equal selection in another process is made of, without functions."""
        return {
            "names": list(self.names),
            "by_default": self.by_default,
            "criteria": [asdict(each) for each in self.criteria],
            "thresholds": dict(self.thresholds),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, JsonValue]) -> Selection:
        """Return the selection that ``data`` was made of."""
        return TypeAdapter(cls).validate_python(data)

    @property
    def in_judge(self) -> Selection:
        """The part that the judge's process measures; functions stay with the scores."""
        return replace(self, functions=())

    def limits_of(self, names: Iterable[str]) -> dict[str, float]:
        """Return the thresholds that have to be kept with scores of these names."""
        return {name: self.thresholds[name] for name in names if name in self.thresholds}


def names_given(metrics: MetricsLike) -> tuple[str, ...]:
    """Return the names that ``metrics`` holds, of sets as well, and those of its own metrics."""
    given = [each if isinstance(each, str) else _metric(each) for each in _given(metrics)]
    return tuple(each if isinstance(each, str) else each.name for each in given)


def _given(metrics: object) -> Sequence[object]:
    if isinstance(metrics, str):
        return [each.strip() for each in metrics.split(",") if each.strip()]
    if isinstance(metrics, Criterion | FunctionMetric) or callable(metrics):
        return [metrics]
    if isinstance(metrics, Mapping) or not isinstance(metrics, Iterable):
        kind = type(metrics).__name__  # pyright: ignore[reportUnknownArgumentType] - its name alone
        raise ConfigError(f"metrics is of type {kind}: {_GIVE}")
    return list(cast("Iterable[object]", metrics))  # each item is checked


_GIVE = "give names, Criterion(...) or functions in a list, or 'all'"


_RESERVED: Final = frozenset({"all", "default", "paper", LOW_RECORDS, *table_columns(())})
"""Names that options and tables use for something else than a metric."""

_SETS: Final[Mapping[str, Sequence[str]]] = {"all": METRICS, "default": DEFAULT_METRICS}


def _metric(given: object) -> str | OwnMetric:
    if isinstance(given, Criterion | FunctionMetric):
        return given
    if isinstance(given, str):
        if given in SHIPPED:
            return SHIPPED[given]
        if given not in CATALOGUE and given not in _SETS:
            raise unknown_metric("metrics", given, [*METRICS, *SHIPPED, *_SETS])
        return given
    if not callable(given):
        raise ConfigError(f"metrics has a value of type {type(given).__name__}: {_GIVE}")
    if getattr(given, "__name__", "").startswith("<"):
        raise ConfigError("metrics has a lambda: give FunctionMetric(function, name='...')")
    return FunctionMetric(cast("Callable[[Evaluation], float | None]", given))


def _checked(given: object, chosen: Sequence[str]) -> dict[str, float]:
    if not isinstance(given, Mapping):
        raise ConfigError("thresholds is no mapping: give {'faithfulness': 0.9}")
    found: dict[str, float] = {}
    for name, value in cast("Mapping[str, object]", given).items():
        if name not in chosen:
            if name in CATALOGUE:
                raise ConfigError(
                    f"thresholds has {name!r}, which is not chosen: add it to metrics"
                )
            raise unknown_metric("thresholds", name, chosen)
        if name in CATALOGUE and CATALOGUE[name].lower_is_better is None:
            raise ConfigError(
                f"thresholds has {name!r}, of which neither end is better: leave it out"
            )
        found[name] = check_threshold(name, value)
    return found
