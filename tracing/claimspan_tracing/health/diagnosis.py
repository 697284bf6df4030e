"""Runs the checks of a monitor one after another, none of which can end the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib.metadata import entry_points

from claimspan.errors import ClaimspanError
from claimspan_tracing.engine.settings import Settings
from claimspan_tracing.health.environment import check_environment, check_versions
from claimspan_tracing.health.exporting import check_clock, check_export, check_provider
from claimspan_tracing.health.findings import CHECKS, Diagnosis, Finding
from claimspan_tracing.health.ground_truths import check_ground_truth
from claimspan_tracing.health.judging import check_judge
from claimspan_tracing.health.traffic import check_traffic
from claimspan_tracing.records.table import Stats

__all__ = ["diagnose"]

Check = Callable[[], Iterable[Finding]]


def diagnose(settings: Settings, stats: Stats, timeout: float) -> Diagnosis:
    """Check everything that a monitor needs.

    Sends one span through the tracer provider, and has the judge decide about two claims, which
    costs a few calls where it asks a language model.

    Args:
        settings: The options of the monitor.
        stats: Its counts so far.
        timeout: Seconds that the export, the judge and the clock may take, each.
    """
    checks: dict[str, Check] = {
        "versions": check_versions,
        "environment": partial(check_environment, settings),
        "provider": partial(check_provider, settings.source),
        "export": partial(check_export, settings.source, timeout),
        "clock": partial(check_clock, timeout),
        "judge": partial(check_judge, settings, timeout),
        "ground truth": partial(check_ground_truth, settings),
        "records": partial(check_traffic, settings, stats),
    }
    checks |= _checks_of_integrations()
    return Diagnosis(tuple(each for name, check in checks.items() for each in _made(name, check)))


def _made(name: str, check: Check) -> Iterator[Finding]:
    try:
        yield from check()
    # A check calls judges, exporters and look-ups of others, which may raise anything.
    except Exception as error:  # noqa: BLE001 - said in the finding
        what = str(error) if isinstance(error, ClaimspanError) else type(error).__name__
        yield Finding(name, "failed", f"the check could not be made: {what}")


def _checks_of_integrations() -> dict[str, Check]:
    """The checks of the frameworks that this process has loaded; the others have no state."""
    return {
        each.name: partial(_call, each.load())
        for each in entry_points(group=CHECKS)
        if each.name in sys.modules
    }


def _call(check: Callable[[], Iterable[Finding]]) -> Iterable[Finding]:
    return check()
