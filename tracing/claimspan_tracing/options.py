"""The options of a monitor, and the checks that they have to pass."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final, TypedDict

from opentelemetry.trace import TracerProvider

from claimspan import GroundTruth
from claimspan.cost.budget import Budget
from claimspan.errors import ConfigError
from claimspan.evaluation.evaluate import judge_for
from claimspan.evaluation.selection import MetricsLike, Selection, Thresholds
from claimspan.files.ground_truth import Lookup
from claimspan.judges import Judge, LexicalJudge
from claimspan.judges.choice import JudgeLike
from claimspan.judges.protocol import BudgetedJudge
from claimspan.text.percentages import percent_hint
from claimspan_tracing.alert import Alert, OnAlert, check_measured
from claimspan_tracing.blocking import may_block
from claimspan_tracing.decide.sampling import RateSampler, Sampler, first_judge_of
from claimspan_tracing.deliver.delivery import OnResult
from claimspan_tracing.dispatch.dispatcher import Dispatcher
from claimspan_tracing.dispatch.pacing import CpuShare
from claimspan_tracing.dispatch.process import WorkerKind
from claimspan_tracing.redact.pii import PiiRedactor
from claimspan_tracing.redact.redaction import AUDIENCES, Audience, Redaction, Redactor
from claimspan_tracing.spool.place import check_place
from claimspan_tracing.write.sinks import Sink

__all__ = [
    "GroundTruthLike",
    "MonitorOptions",
    "check_names",
    "checked_alerts",
    "checked_budget",
    "checked_capture",
    "checked_count",
    "checked_cpu_share",
    "checked_dispatch",
    "checked_ground_truth",
    "checked_judge",
    "checked_metrics",
    "checked_on_alert",
    "checked_on_result",
    "checked_positive",
    "checked_provider",
    "checked_redaction",
    "checked_sampler",
    "checked_serverless",
    "checked_sinks",
    "checked_spool",
]

GroundTruthLike = str | Path | Mapping[str, str] | Lookup | GroundTruth
"""What ``Monitor`` takes as ground truth."""


class MonitorOptions(TypedDict, total=False):
    """The keyword options of ``Monitor``, as an integration takes them."""

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


def check_names(options: Collection[str]) -> None:
    """Refuse what is no option of a monitor.

    Raises:
        ConfigError: One of the names is none; the message has the name that was meant, if it is
            like one.
    """
    known = MonitorOptions.__annotations__
    for name in options:
        if name not in known:
            meant = get_close_matches(name, known, n=1)
            told = f"did you mean {meant[0]}?" if meant else f"there are {', '.join(known)}"
            raise ConfigError(f"a monitor has no option {name!r}: {told}")


def _wrong_type(what: str, value: object, wanted: str) -> ConfigError:
    return ConfigError(f"{what} of type {type(value).__name__}: give {wanted}")


def _check_type(what: str, value: object, types: type | tuple[type, ...], wanted: str) -> None:
    """Refuse a value of another type, for those who do not type-check."""
    if not isinstance(value, types):
        raise _wrong_type(what, value, wanted)


# --- what is judged, and how ----------------------------------------------------------------------


@may_block()
def checked_judge(
    judge: JudgeLike | None, selection: Selection, dispatch: Dispatcher | None = None
) -> Judge:
    """Return the judge that the option ``judge`` stands for.

    If a dispatcher takes the records, none is needed here: None is then one that needs nothing.

    Raises:
        ConfigError: It is no judge, or the name of none, or it cannot judge what is chosen.
    """
    if judge is None and dispatch is not None:
        return LexicalJudge()
    return judge_for(selection, judge)


def checked_metrics(
    metrics: MetricsLike | Selection | None,
    thresholds: Thresholds | None,
    dispatch: Dispatcher | None,
) -> Selection:
    """Return what the options ``metrics`` and ``thresholds`` stand for.

    Raises:
        ConfigError: One of them cannot work, or the scores are made elsewhere.
    """
    if dispatch is not None and (metrics is not None or thresholds is not None):
        raise ConfigError(
            "metrics and thresholds cannot go with dispatch: the scores are made by the workers; "
            "give them to these"
        )
    return Selection.of(metrics, thresholds)


@may_block()
def checked_ground_truth(value: GroundTruthLike | None) -> GroundTruth | None:
    """Return what the option ``ground_truth`` stands for.

    Raises:
        GroundTruthError: The file cannot be read.
    """
    return None if value is None else GroundTruth.of(value)


def checked_sampler(value: float | Sampler | None) -> Sampler:
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


def checked_budget(budget: Budget | None, *judges: Judge | None) -> Budget | None:
    """Return the budget that these judges will run under.

    Raises:
        ConfigError: It is none, or it is in dollars and the price of a judge's model is unknown.
    """
    if budget is None:
        return None
    _check_type("budget is", budget, Budget, "a Budget")
    for judge in judges:
        if isinstance(judge, BudgetedJudge):
            judge.check_budget(budget)
    return budget


def checked_dispatch(
    dispatch: Dispatcher | None, sampler: Sampler, budget: Budget | None
) -> Dispatcher | None:
    """Return the dispatcher that the option ``dispatch`` stands for.

    Raises:
        ConfigError: It is none, or another option works only if this process judges.
    """
    if dispatch is None:
        return None
    _check_type("dispatch is", dispatch, Dispatcher, "a dispatcher")
    if first_judge_of(sampler) is not None:
        raise ConfigError(
            "a sampler with a first judge cannot go with dispatch: the first judge works in this "
            "process alone; leave its rules out, or judge in this process"
        )
    if budget is not None:
        raise ConfigError("budget cannot go with dispatch: give the budget to the workers")
    return dispatch


# --- what is written, and where to ----------------------------------------------------------------


def checked_redaction(
    redact: Redactor | str | None, redact_for: Collection[Audience], dispatch: Dispatcher | None
) -> Redaction | None:
    """Return what the options ``redact`` and ``redact_for`` stand for; None without a redactor.

    Raises:
        ConfigError: One of them is unknown, or both together keep raw texts from no reader.
        MissingExtraError: The built-in redactor needs packages that are not installed.
    """
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
    if "judge" not in audiences and dispatch is not None:
        raise ConfigError(
            "redact_for={'export'} cannot go with dispatch: the records would leave this process "
            "raw; leave redact_for out, or judge in this process"
        )
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


def checked_capture(capture_content: bool) -> bool:
    """Return whether texts are written on spans: unless the option or the environment forbids it.

    Raises:
        ConfigError: The option is no bool.
    """
    allowed = _checked_switch("capture_content", capture_content)
    said = os.environ.get(CAPTURE_VARIABLE, "").strip().lower()
    return allowed and (not said or said in _ON_SPANS)


def checked_serverless(serverless: bool) -> bool:
    """Return whether each record is evaluated before the pipeline's call returns.

    Raises:
        ConfigError: The option is no bool.
    """
    return _checked_switch("serverless", serverless)


def _checked_switch(name: str, value: bool) -> bool:
    if not isinstance(value, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
        raise ConfigError(f"{name} is {value!r}: give True or False")
    return value


@may_block()
def checked_spool(value: str | Path | None) -> Path | None:
    """Return the path that the option ``spool`` stands for.

    Raises:
        ConfigError: It is no path, there is a link, a directory or a device, or the file is
            others'.
    """
    if value is None:
        return None
    if not isinstance(value, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
        raise ConfigError(f"spool is {value!r}: give the path of a file")
    path = Path(value)
    check_place(path)
    return path


def checked_provider(provider: TracerProvider | None) -> TracerProvider | None:
    """Return the tracer provider.

    Raises:
        ConfigError: It is none.
    """
    # By its method: providers of other packages need not inherit from the API's class.
    if provider is not None and not callable(getattr(provider, "get_tracer", None)):
        raise _wrong_type("tracer_provider is", provider, "an OpenTelemetry TracerProvider")
    return provider


def checked_sinks(sinks: Sequence[Sink]) -> tuple[Sink, ...]:
    """Return the sinks.

    Raises:
        ConfigError: One of them is none.
    """
    _check_type("sinks is", sinks, (list, tuple), "a list of sinks")
    for sink in sinks:
        _check_type("sinks has a value", sink, Sink, "objects with write(finished)")
    return tuple(sinks)


def checked_alerts(
    alerts: Sequence[Alert], selection: Selection, dispatch: Dispatcher | None
) -> tuple[Alert, ...]:
    """Return the alerts.

    Raises:
        ConfigError: One of them is none or is about a score that is not made, two have the same
            name, or no scores would come here.
    """
    _check_type("alerts is", alerts, (list, tuple), "a list of Alert")
    for alert in alerts:
        _check_type("alerts has a value", alert, Alert, "Alert(...)")
    names = [alert.name for alert in alerts]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two alerts are called {name!r}: give each a name of its own")
    if alerts:
        _refuse_dispatch("alerts", dispatch)
    check_measured(alerts, selection)
    return tuple(alerts)


def checked_on_alert(
    on_alert: OnAlert | None, alerts: Sequence[Alert], dispatch: Dispatcher | None
) -> OnAlert | None:
    """Return the function that gets what the alerts say.

    Raises:
        ConfigError: It cannot be called, or there are no alerts.
    """
    if on_alert is not None and not alerts:
        raise ConfigError("on_alert is given without alerts: give alerts=[Alert(...)] as well")
    _check_call("on_alert", on_alert, dispatch)
    return on_alert


def checked_on_result(on_result: OnResult | None, dispatch: Dispatcher | None) -> OnResult | None:
    """Return the function that gets results.

    Raises:
        ConfigError: It cannot be called, or no result would ever come here.
    """
    _check_call("on_result", on_result, dispatch)
    return on_result


def _check_call(name: str, call: object, dispatch: Dispatcher | None) -> None:
    if call is None:
        return
    if not callable(call):
        raise _wrong_type(f"{name} is", call, "a function")
    if inspect.isgeneratorfunction(call) or inspect.isasyncgenfunction(call):
        raise ConfigError(f"{name} is a generator, whose body would not run: use no yield in it")
    _refuse_dispatch(name, dispatch)


def _refuse_dispatch(name: str, dispatch: Dispatcher | None) -> None:
    if dispatch is not None:
        raise ConfigError(
            f"{name} cannot go with dispatch: the scores are made by the workers, not in this "
            "process; give the workers a sink"
        )


# --- numbers --------------------------------------------------------------------------------------


def checked_cpu_share(value: float) -> float:
    """Return the share of a core that evaluating may take.

    Raises:
        ConfigError: It is not above 0 and at most 1.
    """
    CpuShare(value)
    return value


def checked_positive(name: str, value: object) -> float:
    """Return a number that has to be positive.

    Raises:
        ConfigError: It is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise ConfigError(f"{name} is {value!r}: give a positive number")
    return value


def checked_count(name: str, value: object) -> int:
    """Return a number of things, of which there has to be room for one.

    Raises:
        ConfigError: It is less than 1, or has no end.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < math.inf:
        raise ConfigError(f"{name} is {value!r}: give a whole number of at least 1")
    return int(value)
