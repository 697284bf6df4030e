"""What a simulated day came to: books, costs, intervals and their coverage."""

from __future__ import annotations

import argparse
import math
import operator
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from results import Bar, Curve, Plot, Results, Table
from simulation_judge import HOUR, Traffic

from claimspan.cost.usage import Usage
from claimspan_tracing.commands.stats import SampledRecord, group_stats
from claimspan_tracing.estimates import Estimate
from claimspan_tracing.records import Stats

__all__ = ["OWN_SECONDS", "WINDOW", "Day", "Policy", "results_of"]

WINDOW: Final = 600
"""Seconds of the windows whose intervals are checked."""

OWN_SECONDS: Final = 0.02
"""For a claim of a judge that a process has for itself: five records a second."""

METRIC: Final = "faithfulness"
CONFIDENCE: Final = 0.95
SPREAD: Final = 3.0
"""Standard deviations by which a count of covered windows may fall short by chance."""

FEWEST: Final = 20
"""Windows in which nothing was lost; the coverage of fewer says little."""


@dataclass(frozen=True)
class Policy:
    """What a user may set."""

    name: str
    rate: float
    processes: int
    """Those that are simulated."""
    span: tuple[int, int]
    """From and to, in seconds of the day."""
    per_minute: int | None = None
    has_spool: bool = False
    is_own: bool = False
    """Whether the process has a judge of its own: it costs nothing, answers one call at a time, and
    has no outage."""


@dataclass
class Day:
    """What became of the queries of a day."""

    policy: Policy
    traffic: Traffic
    stats: list[Stats]
    """Of each process."""
    notes: list[SampledRecord]
    run: int
    """Queries that ended in a process."""
    not_run: int
    """Queries that were drawn as a number: the rate left them out."""
    paid: Usage
    budget_usd: float

    @property
    def queries(self) -> int:
        """All that came."""
        return self.run + self.not_run

    @property
    def evaluated(self) -> int:
        """Those that have scores, late ones included."""
        return sum(note.is_evaluated for note in self.notes)

    @property
    def states(self) -> Counter[str]:
        """Queries by state, as the ledgers count them."""
        found = Counter({"not_sampled": self.not_run})
        for each in self.stats:
            found.update(evaluated=each.evaluated, pending=each.pending)
            found.update(each.skipped)
            found.update(each.dropped)
        return found


class Window(NamedTuple):
    """A part of a day with its estimate."""

    true: float
    plain: Estimate
    reweighted: Estimate
    has_lost: bool


def results_of(days: Sequence[Day], options: argparse.Namespace) -> Results:
    """The tables of all days."""
    return Results(
        title="At scale, simulated",
        command=f"python tests/benchmarks/simulation.py --processes {options.processes}",
        how=_how(options),
        tables=[
            _states(days),
            _costs(days, options),
            _sureness(days, options),
            _coverage(days),
            _by_hour(days),
        ],
        bars=[bar for day in days for bar in _bars(day)],
        plots=[_widths(days)],
        notes=[
            "An hour without the judge costs the records of that hour where no spool is set. With "
            "one they end as `timeout`, wait in its file, and get their scores late.",
            "`reweighted` lets evaluated records stand for lost ones of the same rule, as "
            "`claimspan stats --reweight` does. It is right where loss is by chance within a rule, "
            "not where a part of the day is lost. An estimate holds for the windows in which "
            "records were evaluated; their true mean is in the column beside that of all queries.",
        ],
    )


def _how(options: argparse.Namespace) -> str:
    return (
        f"{options.queries:,.0f} queries a second on average come to {options.fleet} processes, "
        "60 % more in the busiest hour and 60 % less in the quietest, and eight times as many for "
        f"ten minutes from 15:00; the judge is away from {options.outage[0]:g} to "
        f"{options.outage[1]:g} h. {options.processes} of the processes are simulated, with "
        "their share of the budget and of the calls that the judge answers at once. Where a "
        "process has a judge for itself, which answers one call at a time and five records a "
        "second, it is one process for 13 minutes, of which the last three are in the burst. "
        "Processes meet in budget and judge alone, so a part of them "
        "behaves as all do, except that chance evens out better over more. The budget is "
        "one object, as a store without delay would be. Time is virtual. Real are queue, worker, "
        "decider, sampler, overload, throttle, evaluations with their holds, dispatcher, "
        "evaluator, budget, writer, ledger and the statistics; capture, the reading of run trees "
        "and spans are left out. Where the rate is below 1, the queries that it takes "
        "are drawn as a Poisson stream, and those that it leaves out as a number. "
        f"The judge makes two calls a record, {options.judge_seconds:g} s a claim, 3,700 prompt "
        f"tokens and 40 completion tokens a claim and call, at {options.input_price:g} and "
        f"{options.output_price:g} US dollars a million. True means are those of all queries."
    )


def _states(days: Sequence[Day]) -> Table:
    names = sorted({state for day in days for state, n in day.states.items() if n} - {"evaluated"})
    rows = [
        [
            day.policy.name,
            f"{day.queries:,}",
            f"{day.states['evaluated']:,}",
            *(f"{day.states[name]:,}" for name in names),
            f"{sum(each.late for each in day.stats):,}",
            f"{day.queries - day.states.total():,}",
        ]
        for day in days
    ]
    columns = ["policy", "queries", "evaluated", *names, "scores that came late", "uncounted"]
    return Table(caption="What becomes of the queries", columns=columns, rows=rows)


def _costs(days: Sequence[Day], options: argparse.Namespace) -> Table:
    rows: list[list[str]] = []
    for day in days:
        fleet = options.fleet / day.policy.processes
        each = day.paid.cost_usd / max(1, day.evaluated)
        rows.append(
            [
                day.policy.name,
                f"{day.policy.processes} of {options.fleet}",
                f"{day.evaluated:,}",
                f"{day.paid.cost_usd:,.2f} of {day.budget_usd:,.2f}",
                f"{day.paid.cost_usd * fleet:,.2f} of {options.budget:,.2f}",
                f"{1e3 * each:.3f}",
            ]
        )
    columns = ["policy", "processes", "with scores", "spent, $", "as all processes, $", "m$ each"]
    return Table(caption="What it costs against the budget", columns=columns, rows=rows)


def _sureness(days: Sequence[Day], options: argparse.Namespace) -> Table:
    rows: list[list[str]] = []
    for day in days:
        found = _whole(day, reweight=False), _whole(day, reweight=True)
        true = day.traffic.true_mean(*day.policy.span)
        width = _half(found[0])
        fleet = math.sqrt(options.fleet / day.policy.processes)
        rows.append(
            [
                day.policy.name,
                f"{true:.4f}",
                f"{_true_where_evaluated(day):.4f}",
                *(_interval(each) for each in found),
                "-" if width is None else f"{width:.4f}",
                "-" if width is None else f"{width / fleet:.4f}",
            ]
        )
    columns = [
        "policy",
        "true mean",
        "true mean where evaluated",
        "estimate [95 %]",
        "reweighted [95 %]",
        "half width",
        "of all processes, by the square root",
    ]
    return Table(caption=f"Mean {METRIC} of the whole time", columns=columns, rows=rows)


def _coverage(days: Sequence[Day]) -> Table:
    rows: list[list[str]] = []
    for day in days:
        windows = list(_windows(day))
        clean = [each for each in windows if not each.has_lost]
        lossy = [each for each in windows if each.has_lost]
        rows.append(
            [
                day.policy.name,
                f"{(day.policy.span[1] - day.policy.span[0]) / WINDOW:.1f}",
                _covered(clean, [each.plain for each in clean]),
                _covered(lossy, [each.plain for each in lossy]),
                _covered(lossy, [each.reweighted for each in lossy]),
            ]
        )
    columns = [
        "policy",
        "windows in all",
        "covered, nothing lost",
        "covered, some lost",
        "some lost, reweighted",
    ]
    caption = f"Windows of {WINDOW // 60} minutes whose 95 % interval holds their true mean"
    return Table(caption=caption, columns=columns, rows=rows)


def _by_hour(days: Sequence[Day]) -> Table:
    whole = [day for day in days if not (day.policy.is_own or day.policy.has_spool)]
    counts = [
        Counter(int(note.group) * WINDOW // HOUR for note in day.notes if note.is_evaluated)
        for day in whole
    ]
    hours = range(max((math.ceil(day.policy.span[1] / HOUR) for day in whole), default=0))
    return Table(
        caption="Evaluated by the hour",
        columns=["hour", *(day.policy.name for day in whole)],
        rows=[[f"{hour:02}", *(f"{count[hour]:,}" for count in counts)] for hour in hours],
    )


def _bars(day: Day) -> Iterator[Bar]:
    uncounted = day.queries - day.states.total()
    faults = sum(each.faults for each in day.stats)
    pending = day.states["pending"]
    yield Bar(
        promise=f"{day.policy.name}: each query ends in one state, and none by a fault of ours",
        measured=f"{uncounted} uncounted, {pending} pending, {faults} faults",
        is_kept=not (uncounted or pending or faults),
    )
    yield Bar(
        promise=f"{day.policy.name}: no more is spent than the budget",
        measured=f"{day.paid.cost_usd:.4f} of {day.budget_usd:.4f} US dollars",
        is_kept=day.paid.cost_usd <= day.budget_usd + 1e-9,
    )
    clean = [each for each in _windows(day) if not each.has_lost]
    if len(clean) < FEWEST:
        return
    covered = sum(_holds(each.plain, each.true) for each in clean)
    least = CONFIDENCE * len(clean) - SPREAD * math.sqrt(len(clean) * CONFIDENCE * (1 - CONFIDENCE))
    yield Bar(
        promise=f"{day.policy.name}: intervals hold the true mean as often as they say, within "
        "chance, where nothing was lost",
        measured=_covered(clean, [each.plain for each in clean]),
        is_kept=covered >= least,
    )


def _widths(days: Sequence[Day]) -> Plot:
    """Half widths against records: windows of other lengths have more or fewer."""
    curves: list[Curve] = []
    for day in days:
        points: list[tuple[float, float]] = []
        for hours in (1, 3, 6, 12, 24):
            groups = group_stats(_grouped(day, hours * HOUR))
            found = [g.metrics[METRIC] for g in groups if METRIC in g.metrics]
            points += [(float(e.n), half) for e in found if (half := _half(e))][:1]
        points = sorted(set(points))
        xs, ys = [x for x, _ in points], [y for _, y in points]
        curves.append(Curve(name=day.policy.name, x=xs, y=ys))
    return Plot(
        name="simulation-intervals",
        x_label="records with scores",
        y_label="half width of the 95 % interval",
        curves=[curve for curve in curves if curve.x],
    )


def _whole(day: Day, *, reweight: bool) -> Estimate | None:
    records = [replace(note, group="") for note in day.notes]
    found = group_stats(records, reweight=reweight)
    return found[0].metrics.get(METRIC) if found else None


def _true_where_evaluated(day: Day) -> float:
    """The true mean of the windows in which anything was evaluated, by their queries."""
    names = {int(note.group) for note in day.notes if note.is_evaluated}
    spans = [_span(day, name) for name in names]
    queries = [sum(map(day.traffic.rate, range(*span))) for span in spans]
    means = [day.traffic.true_mean(*span) for span in spans]
    total = sum(queries)
    return sum(map(operator.mul, queries, means)) / total if total else math.nan


def _span(day: Day, window: int) -> tuple[int, int]:
    start, end = day.policy.span
    return max(window * WINDOW, start), min((window + 1) * WINDOW, end)


def _grouped(day: Day, seconds: int) -> list[SampledRecord]:
    """The records in longer windows."""
    return [replace(note, group=f"{int(note.group) * WINDOW // seconds:05}") for note in day.notes]


def _windows(day: Day) -> Iterator[Window]:
    """The windows that have an interval."""
    by_window: defaultdict[str, list[SampledRecord]] = defaultdict(list)
    for note in day.notes:
        by_window[note.group].append(note)
    plain = {group.name: group.metrics for group in group_stats(day.notes)}
    reweighted = {group.name: group.metrics for group in group_stats(day.notes, reweight=True)}
    for name, notes in by_window.items():
        estimate = plain[name].get(METRIC)
        if estimate is None or estimate.low is None:
            continue
        true = day.traffic.true_mean(*_span(day, int(name)))
        lost = any(note.is_lost for note in notes)
        yield Window(true, estimate, reweighted[name][METRIC], lost)


def _covered(windows: Sequence[Window], estimates: Sequence[Estimate]) -> str:
    if not windows:
        return "-"
    pairs = zip(windows, estimates, strict=True)
    held = sum(_holds(estimate, window.true) for window, estimate in pairs)
    return f"{held} of {len(windows)} ({held / len(windows):.0%})"


def _holds(estimate: Estimate, true: float) -> bool:
    if estimate.low is None or estimate.high is None:
        return False
    return estimate.low <= true <= estimate.high


def _half(estimate: Estimate | None) -> float | None:
    if estimate is None or estimate.low is None or estimate.high is None:
        return None
    return (estimate.high - estimate.low) / 2


def _interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.mean:.4f}"
    return f"{estimate.mean:.4f} [{estimate.low:.4f} to {estimate.high:.4f}]"
