"""A day of a large service, in virtual time: what is evaluated, lost and paid, and how sure it is.

    python tests/benchmarks/simulation.py [--processes N] [--hours N] [--json]

10,000 queries a second come to 200 processes, more by day than by night, with a burst of ten
minutes; the judge is away for an hour; a day may cost so many dollars. Some of the processes are
simulated, with their share of the budget and of the judge.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from results import show
from simulation_fleet import Drawn, Process, run_traffic
from simulation_judge import (
    DAY,
    HOUR,
    Endpoint,
    SimulatedJudge,
    Traffic,
    VirtualLoop,
    virtual_threads,
)
from simulation_tables import OWN_SECONDS, Day, Policy, results_of

from claimspan.cost.budget import Budget
from claimspan.cost.pricing import Price
from claimspan_tracing.decide.sampling import RateSampler, Sampler
from claimspan_tracing.decide.thinning import Throttle

SETTLE_SECONDS: Final = 400.0
"""After the last query: longer than any evaluation may take."""

HALF_HOUR: Final = 1800

FREE: Final = Price(input=0.0, output=0.0)


def policies(options: argparse.Namespace) -> Iterator[Policy]:
    """Yield what a user may set, from the most economical to everything."""
    day, n = (0, round(options.hours * HOUR)), options.processes
    sparse, dense, limit = 0.0008, 0.002, 6
    yield Policy(f"sample={sparse}", sparse, n, day)
    yield Policy(f"sample={dense}, more than the budget", dense, n, day)
    name = f"Throttle(RateSampler({sparse}), per_minute={limit})"
    yield Policy(name, sparse, n, day, per_minute=limit)
    # The outage, and the hours in which what has waited for the judge is taken up.
    away, back = (round(hour * HOUR) for hour in options.outage)
    after = (max(0, away - HALF_HOUR), min(day[1], back + 4 * HALF_HOUR))
    yield Policy(f"sample={sparse}, spool, around the outage", sparse, n, after, has_spool=True)
    # Before the burst and into it, every query on its way through the queue.
    end = min(day[1], round(Traffic(1.0).burst[0]) + 180)
    around = (max(0, end - 780), end)
    yield Policy("sample=1.0, one judge call at a time", 1.0, 1, around, is_own=True)


def main() -> None:
    """Simulates and prints."""
    options = _options()
    # The judge's absence is part of the day, and an hour of log lines says no more.
    logging.getLogger("claimspan").setLevel(logging.CRITICAL)
    days = [_simulated(policy, options) for policy in policies(options)]
    show(results_of(days, options), as_json=options.json)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A day of a large service, in virtual time.")
    parser.add_argument("--queries", type=float, default=10_000, help="a second, on average")
    parser.add_argument("--fleet", type=int, default=200, help="processes that they come to")
    parser.add_argument("--processes", type=int, default=5, help="those that are simulated")
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--outage", type=float, nargs=2, default=(10.0, 11.0), help="hours")
    parser.add_argument("--budget", type=float, default=500.0, help="US dollars a day, of all")
    parser.add_argument("--input-price", type=float, default=0.1, help="of a million tokens")
    parser.add_argument("--output-price", type=float, default=0.4, help="of a million tokens")
    parser.add_argument("--judge-seconds", type=float, default=0.3, help="a claim and call")
    parser.add_argument("--judge-calls", type=int, default=100, help="at once, of all processes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _simulated(policy: Policy, options: argparse.Namespace) -> Day:
    with (
        TemporaryDirectory() as folder,
        virtual_threads(),
        asyncio.Runner(loop_factory=lambda: VirtualLoop(policy.span[0])) as runner,
    ):
        return runner.run(_run(policy, options, Path(folder)))


async def _run(policy: Policy, options: argparse.Namespace, folder: Path) -> Day:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise TypeError("a simulation runs on a virtual loop")
    traffic = Traffic(options.queries / options.fleet)
    share = policy.processes / options.fleet
    budget = Budget(per_day=options.budget * share, clock=loop.time)
    judge, endpoint = _judge(policy, options, share)
    # What the rate leaves out is not run where it is drawn as a number.
    is_drawn = policy.rate < 1.0
    first: Sampler = Drawn(policy.rate) if is_drawn else RateSampler(policy.rate)
    processes = [
        Process(
            loop,
            judge,
            first
            if policy.per_minute is None
            else Throttle(first, per_minute=policy.per_minute, clock=loop.time),
            budget,
            traffic,
            seed=options.seed * 1000 + i,
            spool=folder / f"{i}.spool" if policy.has_spool else None,
        )
        for i in range(policy.processes)
    ]
    rate = policy.rate if is_drawn else 1.0
    run, not_run = await run_traffic(
        traffic, processes, rate, policy.span, options.seed, _teller(policy, options)
    )
    await asyncio.sleep(SETTLE_SECONDS)
    for each in processes:
        each.close()
    return Day(
        policy=policy,
        traffic=traffic,
        stats=[each.records.stats(faults=each.faults) for each in processes],
        notes=[note for each in processes for note in each.notes],
        run=run,
        not_run=not_run,
        paid=endpoint.usage,
        budget_usd=options.budget * share,
    )


def _judge(
    policy: Policy, options: argparse.Namespace, share: float
) -> tuple[SimulatedJudge, Endpoint]:
    if policy.is_own:
        endpoint = Endpoint(1)
        return SimulatedJudge(endpoint, OWN_SECONDS, FREE), endpoint
    away = (options.outage[0] * HOUR, options.outage[1] * HOUR)
    endpoint = Endpoint(max(1, round(options.judge_calls * share)), [away])
    price = Price(input=options.input_price, output=options.output_price)
    return SimulatedJudge(endpoint, options.judge_seconds, price), endpoint


def _teller(policy: Policy, options: argparse.Namespace) -> Callable[[int], None]:
    """Says how far the day is."""

    def tell(second: int) -> None:
        if second % HOUR == 0 or second == policy.span[0]:
            clock = f"{second % DAY // HOUR:02}:{second % HOUR // 60:02}"
            print(f"{policy.name}, {policy.processes} processes: {clock}", file=sys.stderr)

    return tell


if __name__ == "__main__":
    main()
