"""The tables and bars of ``overhead.py``, from the rounds that it measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

from overhead_host import BARE, OFF, ONE_PERCENT, SAMPLED_OUT
from overhead_rounds import Costs
from overhead_worker import MODES, Growth, Round
from results import Bar, Table

__all__ = ["TITLES", "bars", "cost_table", "growth_bar", "growth_table", "spread"]

TITLES: Final = {"langchain": "LangChain", "llama-index": "LlamaIndex", "haystack": "Haystack"}

REQUEST_SHARES: Final = {
    "langchain": Fraction(1, 8),
    "llama-index": Fraction(1, 4),
    "haystack": Fraction(1, 4),
}
"""Of the fastest peer's request CPU, at most, with 1 % evaluated."""

TOTAL_SHARE: Final = Fraction(1, 3)
"""Of the leanest peer's CPU in all, at most, with nothing evaluated."""

BYTES_SHARE: Final = Fraction(1, 4)
"""Of OpenInference's OTLP bytes, at most."""

MEMORY_MIB: Final = 10.0

_COLUMNS: Final = [
    "called by",
    "subject",
    "request CPU, ms",
    "of the fastest peer",
    "all CPU, ms",
    "of the leanest peer",
    "wall, ms",
    "spans",
    "OTLP kB",
    "evaluated",
]


class Added(NamedTuple):
    """What a subject adds to a query, in milliseconds: one value a turn."""

    request: list[float]
    total: list[float]
    wall: list[float]


def added(costs: Costs, subject: str) -> Added:
    """Each round less the bare pipeline's round of the same turn."""
    pairs = [(mine, costs[BARE][turn]) for turn, mine in costs[subject].items()]
    return Added(
        [mine.request - bare.request for mine, bare in pairs],
        [mine.total - bare.total for mine, bare in pairs],
        [mine.wall - bare.wall for mine, bare in pairs],
    )


def spread(values: Sequence[float], sign: str = "") -> str:
    """The median, with quartiles in brackets where there are any."""
    middle = f"{statistics.median(values):{sign}.2f}"
    if len(values) < 3:
        return middle
    low, _, high = statistics.quantiles(values, n=4)
    return f"{middle} [{low:.2f}, {high:.2f}]"


def cost_table(title: str, measured: Mapping[str, Costs]) -> Table:
    """One row a subject, for each way of calling."""
    rows = [row for mode, costs in measured.items() for row in _rows(mode, costs)]
    caption = f"{title}: a bare query, and what is added to it"
    return Table(caption=caption, columns=_COLUMNS, rows=rows)


def _rows(mode: str, costs: Costs) -> Iterator[list[str]]:
    for subject, rounds in costs.items():
        mine = list(rounds.values())
        yield [
            MODES[mode],
            subject,
            *(_bare_cells(mine) if subject == BARE else _added_cells(costs, subject)),
            f"{_median(each.spans for each in mine):.1f}",
            f"{_median(each.kilobytes for each in mine):.1f}",
            f"{_median(each.evaluated for each in mine):.0%}",
        ]


def _bare_cells(rounds: Sequence[Round]) -> list[str]:
    return [
        spread([each.request for each in rounds]),
        "",
        spread([each.total for each in rounds]),
        "",
        spread([each.wall for each in rounds]),
    ]


def _added_cells(costs: Costs, subject: str) -> list[str]:
    """Three times with what they are of the best peer's."""
    mine = added(costs, subject)
    peers = [added(costs, each) for each in _peers(costs, dropped=SAMPLED_OUT in subject)]
    fastest = min((_median(each.request) for each in peers), default=None)
    leanest = min((_median(each.total) for each in peers), default=None)
    return [
        spread(mine.request, "+"),
        _share(_median(mine.request), fastest),
        spread(mine.total, "+"),
        _share(_median(mine.total), leanest),
        spread(mine.wall, "+"),
    ]


def _peers(costs: Costs, *, dropped: bool = False) -> list[str]:
    """Those who are compared: with traces kept, or all of them dropped."""
    return [
        name
        for name in costs
        if not name.startswith(("claimspan", BARE)) and (SAMPLED_OUT in name) is dropped
    ]


def _share(mine: float, peer: float | None) -> str:
    return "-" if peer is None or peer <= 0 else f"{mine / peer:.2f}"


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)


# --- bars ----------------------------------------------------------------------------------------


def bars(framework: str, measured: Mapping[str, Costs]) -> Iterator[Bar]:
    """What this run says about the promises, where a peer was measured beside."""
    title = TITLES[framework]
    for mode, costs in measured.items():
        yield from _cpu_bar(
            f"{title}, {MODES[mode]}: request CPU with 1 % evaluated",
            ONE_PERCENT,
            REQUEST_SHARES[framework],
            {name: _median(added(costs, name).request) for name in costs},
            _peers(costs),
        )
        yield from _cpu_bar(
            f"{title}, {MODES[mode]}: CPU in all with evaluation off",
            OFF,
            TOTAL_SHARE,
            {name: _median(added(costs, name).total) for name in costs},
            _peers(costs),
        )
    # However a pipeline is called, the bytes are the same.
    yield from _bytes_bar(title, next(iter(measured.values())))


def _cpu_bar(
    promise: str, subject: str, share: Fraction, added_ms: Mapping[str, float], peers: list[str]
) -> Iterator[Bar]:
    if subject not in added_ms or not peers:
        return
    best = min(peers, key=added_ms.__getitem__)
    mine, its = added_ms[subject], added_ms[best]
    yield Bar(
        promise=f"{promise}, at most {share} of the best peer's",
        measured=f"{mine:+.2f} ms, {best} {its:+.2f} ms: {_share(mine, its)}",
        is_kept=mine <= share * its,
    )


def _bytes_bar(title: str, costs: Costs) -> Iterator[Bar]:
    peer = "OpenInference"
    if OFF not in costs or peer not in costs:
        return
    mine, its = (_median(each.kilobytes for each in costs[name].values()) for name in (OFF, peer))
    yield Bar(
        promise=f"{title}: OTLP bytes, at most {BYTES_SHARE} of {peer}'s",
        measured=f"{mine:.1f} kB, {peer} {its:.1f} kB: {_share(mine, its)}",
        is_kept=mine <= BYTES_SHARE * its,
    )


# --- memory --------------------------------------------------------------------------------------


def growth_table(title: str, measured: Mapping[str, Growth]) -> Table:
    """One row a subject."""
    rows = [
        [
            subject,
            f"{each.start:.0f}",
            _listed(each.quarters),
            "; ".join((f"{each.levels[0]:+.1f}", _listed(each.levels[1:]))),
            f"{each.peak:+.1f}",
            f"{each.left:+.1f}",
        ]
        for subject, each in measured.items()
    ]
    columns = [
        "subject",
        "after warm-up, MiB",
        "after each quarter",
        "level in the warm-up; in each quarter",
        "peak, MiB",
        "left, MiB",
    ]
    return Table(caption=f"{title}: resident memory", columns=columns, rows=rows)


def _listed(grown: Sequence[float]) -> str:
    return ", ".join(f"{each:+.1f}" for each in grown)


def growth_bar(title: str, queries: int, measured: Mapping[str, Growth]) -> list[Bar]:
    """The peak is what counts: an application that dies of it has no flush."""
    if ONE_PERCENT not in measured:
        return []
    mine = measured[ONE_PERCENT]
    peers = ", ".join(
        f"{name} {each.peak:+.1f}"
        for name, each in measured.items()
        if name not in {BARE, ONE_PERCENT}
    )
    return [
        Bar(
            promise=f"{title}: memory over {queries:,} queries grows by less than 10 MiB",
            measured=f"{mine.peak:+.1f} MiB at most, {mine.left:+.1f} left; peers: {peers or '-'}",
            is_kept=mine.peak < MEMORY_MIB,
        )
    ]
