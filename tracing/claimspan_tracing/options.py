"""The options of a monitor, their checks, and the settings that they stand for."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Final, TypedDict, TypeVar

from opentelemetry.trace import TracerProvider

from claimspan import GroundTruth
from claimspan.cost.budget import Budget
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import judge_for
from claimspan.evaluation.selection import MetricsLike, Selection, Thresholds
from claimspan.files.ground_truth import Lookup
from claimspan.judges import Judge, judge_of
from claimspan.judges.choice import JudgeLike
from claimspan.judges.protocol import BudgetedJudge
from claimspan.text.percentages import percent_hint
from claimspan_tracing.alert import Alert, OnAlert, check_measured
from claimspan_tracing.blocking import may_block
from claimspan_tracing.decide.sampling import RateSampler, Sampler, first_judge_of
from claimspan_tracing.deliver.delivery import OnResult
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.judging import spare_judge
from claimspan_tracing.dispatch.pacing import MAX_CPU_SHARE, CpuShare
from claimspan_tracing.dispatch.process import JudgeSpec, WorkerKind, checked_worker
from claimspan_tracing.lifecycle import EXIT_TIMEOUT
from claimspan_tracing.providers.chains import wants_whole_values
from claimspan_tracing.providers.source import TracerSource
from claimspan_tracing.records.table import MAX_BYTES, MAX_RECORDS
from claimspan_tracing.redact.pii import PiiRedactor
from claimspan_tracing.redact.redaction import AUDIENCES, Audience, Redaction, Redactor
from claimspan_tracing.spool.place import check_place
from claimspan_tracing.write.sinks import Sink

__all__ = [
    "GroundTruthLike",
    "MonitorOptions",
    "Settings",
    "check_names",
    "may_capture",
    "sampler_of",
    "settings_of",
]

GroundTruthLike = str | Path | Mapping[str, str] | Lookup | GroundTruth
"""Every form of ground truth that ``Monitor`` takes."""

HOLD_SECONDS: Final = 30.0

_F = TypeVar("_F", OnResult | None, OnAlert | None)


class MonitorOptions(TypedDict, total=False):
    """The keyword options of ``Monitor``, which says what each of them means."""

    judge: JudgeLike | None
    metrics: MetricsLike | Selection | None
    thresholds: Thresholds | None
    ground_truth: GroundTruthLike | None
    sample: float | Sampler | None
    hold_seconds: float
    tracer_provider: TracerProvider | None
    max_queue_records: int
    max_queue_bytes: int
    sinks: Sequence[Sink]
    on_result: OnResult | None
    alerts: Sequence[Alert]
    on_alert: OnAlert | None
    redact: Redactor | str | None
    redact_for: Collection[Audience]
    capture_content: bool
    budget: Budget | None
    spool: str | Path | None
    dispatch: Dispatcher | None
    serverless: bool
    exit_timeout: float
    worker: WorkerKind | None
    max_cpu_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked options of a monitor; ``Monitor`` explains those of the same name."""

    judge: Judge
    selection: Selection
    """The metrics, and their thresholds."""
    ground_truth: GroundTruth | None
    sampler: Sampler
    tells_cost: bool
    """Whether the log says what judging costs, since no option says how much to judge."""
    hold_seconds: float
    max_records: int
    max_bytes: int
    source: TracerSource
    sinks: tuple[Sink, ...]
    whole_values: bool
    """Whether spans go to a backend that shows input and output of a run and nothing else."""
    keeps_unasked: bool
    """Whether a run that asked nothing, such as a retriever alone, is a record all the same."""
    on_result: OnResult | None
    alerts: tuple[Alert, ...]
    on_alert: OnAlert | None
    redaction: Redaction | None
    capture_content: bool
    budget: Budget | None
    spool: Path | None
    dispatcher: Dispatcher | None
    serverless: bool
    exit_timeout: float
    judge_specs: tuple[JudgeSpec, ...]
    """From these a process of its own makes the judge and the sampler's first judge, if there is
    one; empty if they judge on a thread of this process."""
    spare_judge: JudgeSpec | None
    """From it a process of its own makes the judge for texts that are too long for a thread of this
    process; None if it cannot be made there."""
    max_cpu_share: float


@may_block()  # files are read, and judges made
def settings_of(given: MonitorOptions) -> Settings:
    """Check options, and return the settings that they stand for.

    Raises:
        ConfigError: A name is no option, a value cannot work, or two cannot go together.
        GroundTruthError: The file of ground truths cannot be read.
        MissingExtraError: The built-in redactor needs packages that are not installed.
    """
    check_names(given)
    judge, budget, truth = given.get("judge"), given.get("budget"), given.get("ground_truth")
    dispatch, worker, sample = given.get("dispatch"), given.get("worker"), given.get("sample")
    sampler = sampler_of(sample)
    if dispatch is not None:
        _check_type("dispatch is", dispatch, Dispatcher, "a dispatcher")
        _check_goes_with_dispatch(given, sampler)
    selection = Selection.of(given.get("metrics"), given.get("thresholds"))
    # If a dispatcher takes the records, no judge is needed here: one that needs nothing will do.
    judges = judge is None and dispatch is not None
    usable = judge_of("lexical") if judges else judge_for(selection, judge)
    sinks = _sinks(given.get("sinks", ()))
    share = given.get("max_cpu_share", MAX_CPU_SHARE)
    CpuShare(share)  # raises for what is no share
    return Settings(
        judge=usable,
        selection=selection,
        ground_truth=None if truth is None else GroundTruth.of(truth),
        sampler=sampler,
        # A sampler around another, as an integration makes it, says what was given.
        tells_cost=getattr(sample, "wrapped", sample) is None and budget is None,
        hold_seconds=_positive("hold_seconds", given.get("hold_seconds", HOLD_SECONDS)),
        max_records=_count("max_queue_records", given.get("max_queue_records", MAX_RECORDS)),
        max_bytes=_count("max_queue_bytes", given.get("max_queue_bytes", MAX_BYTES)),
        source=TracerSource(_provider(given.get("tracer_provider"))),
        sinks=sinks,
        whole_values=wants_whole_values(sinks),
        keeps_unasked=any(getattr(sink, "wants_unasked", False) is True for sink in sinks),
        on_result=_function("on_result", given.get("on_result")),
        alerts=_alerts(given.get("alerts", ()), selection, given.get("on_alert")),
        on_alert=_function("on_alert", given.get("on_alert")),
        redaction=_redaction(given.get("redact"), given.get("redact_for", AUDIENCES)),
        capture_content=may_capture(
            allowed=_switch("capture_content", given.get("capture_content", True))
        ),
        budget=_budget(budget, usable, first_judge_of(sampler)),
        spool=_spool(given.get("spool")),
        dispatcher=dispatch,
        serverless=_switch("serverless", given.get("serverless", False)),
        exit_timeout=_positive("exit_timeout", given.get("exit_timeout", EXIT_TIMEOUT)),
        judge_specs=checked_worker(worker, judge, sampler, dispatch),
        spare_judge=spare_judge(worker, judge, is_elsewhere=dispatch is not None),
        max_cpu_share=share,
    )


def check_names(options: Collection[str]) -> None:
    """Refuse names that are no options of a monitor.

    Raises:
        ConfigError: A name is no option; the message suggests the most similar option.
    """
    known = MonitorOptions.__annotations__
    for name in options:
        if name not in known:
            meant = get_close_matches(name, known, n=1)
            told = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(known)}"
            raise ConfigError(f"a monitor has no option {name!r}: {told}")


# --- what cannot go together ----------------------------------------------------------------------

_SCORED_ELSEWHERE: Final = (
    "{} cannot go with dispatch: the scores are made by the workers, not in this process; give the "
    "workers a sink"
)
_MEASURED_ELSEWHERE: Final = (
    "metrics and thresholds cannot go with dispatch: the scores are made by the workers; give them "
    "to these"
)
_NOT_WITH_DISPATCH: Final[Mapping[str, str]] = {
    "metrics": _MEASURED_ELSEWHERE,
    "thresholds": _MEASURED_ELSEWHERE,
    "budget": "budget cannot go with dispatch: give the budget to the workers",
    **{name: _SCORED_ELSEWHERE.format(name) for name in ("on_result", "alerts", "on_alert")},
}
"""Options that work only if this process judges."""


def _check_goes_with_dispatch(given: MonitorOptions, sampler: Sampler) -> None:
    for name, why in _NOT_WITH_DISPATCH.items():
        if given.get(name):
            raise ConfigError(why)
    if first_judge_of(sampler) is not None:
        raise ConfigError(
            "a sampler with a first judge cannot go with dispatch: the first judge works in this "
            "process alone; leave its rules out, or judge in this process"
        )
    if given.get("redact") is not None and "judge" not in given.get("redact_for", AUDIENCES):
        raise ConfigError(
            "redact_for={'export'} cannot go with dispatch: the records would leave this process "
            "raw; leave redact_for out, or judge in this process"
        )


# --- one option each ------------------------------------------------------------------------------


def _wrong_type(what: str, value: object, wanted: str) -> ConfigError:
    return ConfigError(f"{what} of type {type(value).__name__}: give {wanted}")


def _check_type(what: str, value: object, types: type | tuple[type, ...], wanted: str) -> None:
    if not isinstance(value, types):
        raise _wrong_type(what, value, wanted)


def sampler_of(value: float | Sampler | None) -> Sampler:
    """Return the sampler that the option ``sample`` stands for; None stands for all records.

    Raises:
        ConfigError: It is neither a share nor a sampler.
    """
    if isinstance(value, Sampler):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float | None):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
        share = f"give a share between 0.0 and 1.0{percent_hint(value)}"
        raise ConfigError(f"sample is {value!r}: {share}, or a sampler")
    return RateSampler(1.0 if value is None else float(value))


def _budget(budget: Budget | None, *judges: Judge | None) -> Budget | None:
    """The budget, which a judge refuses if it is in dollars and the price of its model unknown."""
    if budget is None:
        return None
    _check_type("budget is", budget, Budget, "a Budget")
    for judge in judges:
        if isinstance(judge, BudgetedJudge):
            judge.check_budget(budget)
    return budget


def _redaction(redact: Redactor | str | None, redact_for: Collection[Audience]) -> Redaction | None:
    # A str is a collection, too: of letters.
    if isinstance(redact_for, str) or not set(redact_for) <= AUDIENCES:
        raise ConfigError(
            f"redact_for is {redact_for!r}: give {{'judge', 'export'}} or {{'export'}}"
        )
    audiences = frozenset(redact_for)
    if "export" not in audiences:
        raise ConfigError("redact_for lacks 'export': spans and sinks would get raw texts")
    if redact is None:
        if audiences != AUDIENCES:
            raise ConfigError("redact_for is given without redact: give a redactor as well")
        return None
    wanted = "'pii', or a callable from text to text"
    if isinstance(redact, str):
        if redact != "pii":
            raise ConfigError(f"redact is {redact!r}: give {wanted}")
        redact = PiiRedactor()
    if not callable(redact):
        raise _wrong_type("redact is", redact, wanted)
    return Redaction(redact, audiences)


CAPTURE_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
"""OpenTelemetry's switch. It can only forbid: an operator may know better than the code,
and our own option is the one that allows."""

_ON_SPANS: Final = frozenset({"span_only", "span_and_event", "true", "1", "yes", "on"})
"""Its values that leave texts on spans; any other forbids them."""


def may_capture(*, allowed: bool) -> bool:
    """Return whether texts are written on spans: unless the option or the environment forbids it.

    Args:
        allowed: The option ``capture_content``.
    """
    said = os.environ.get(CAPTURE_VARIABLE, "").strip().lower()
    return allowed and (not said or said in _ON_SPANS)


def _spool(value: str | Path | None) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
        raise ConfigError(f"spool is {value!r}: give the path of a file")
    path = Path(value)
    check_place(path)
    return path


def _provider(provider: TracerProvider | None) -> TracerProvider | None:
    # By its method: providers of other packages need not inherit from the API's class.
    if provider is not None and not callable(getattr(provider, "get_tracer", None)):
        raise _wrong_type("tracer_provider is", provider, "an OpenTelemetry TracerProvider")
    return provider


def _sinks(sinks: Sequence[Sink]) -> tuple[Sink, ...]:
    _check_type("sinks is", sinks, (list, tuple), "a list of sinks")
    for sink in sinks:
        _check_type("sinks has a value", sink, Sink, "objects with write(finished)")
    return tuple(sinks)


def _alerts(
    alerts: Sequence[Alert], selection: Selection, on_alert: OnAlert | None
) -> tuple[Alert, ...]:
    """The alerts, each with a name of its own and about a score that is made."""
    _check_type("alerts is", alerts, (list, tuple), "a list of Alert")
    for alert in alerts:
        _check_type("alerts has a value", alert, Alert, "Alert(...)")
    names = [alert.name for alert in alerts]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two alerts are called {name!r}: give each a name of its own")
    check_measured(alerts, selection)
    if on_alert is not None and not alerts:
        raise ConfigError("on_alert is given without alerts: give alerts=[Alert(...)] as well")
    return tuple(alerts)


def _function(name: str, call: _F) -> _F:
    if call is not None and not callable(call):
        raise _wrong_type(f"{name} is", call, "a function")
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise ConfigError(f"{name} is a generator, whose body would not run: use no yield in it")
    return call


def _switch(name: str, value: bool) -> bool:
    if not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
        raise ConfigError(f"{name} is {value!r}: give True or False")
    return value


def _positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ConfigError(f"{name} is {value!r}: give a positive number")
    return value


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < math.inf:
        raise ConfigError(f"{name} is {value!r}: give a whole number of at least 1")
    return int(value)
