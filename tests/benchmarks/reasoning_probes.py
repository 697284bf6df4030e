"""How far ``LocalJudge`` reasons: made pairs of one kind of inference each, half of them true.

    python tests/benchmarks/reasoning_probes.py [--judge local|lexical] [--pairs N]

The texts come from templates, the same for everybody, and nothing was trained or fitted on them.
A false claim has the words of a true one with another number, name or order, so that words alone
are at chance. AUROC of ``entailed``; 0.5 is chance.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

from lexical_agreement import auroc

from claimspan.judges import Judge, LexicalJudge
from claimspan.judges.local.judge import LocalJudge
from claimspan.verdicts import Claim

_TOWNS: Final = "Bled Piran Celje Kranj Ptuj Koper Maribor Tolmin Idrija Lendava".split()
_PEOPLE: Final = "Ana Boris Cvetka Darko Eva Franc Gabi Hana Ivan Jana".split()
_GOODS: Final = "chairs lamps tables bicycles pumps boats clocks mirrors".split()
_MONTHS: Final = "January February March April May June July August September".split()


class Probe(NamedTuple):
    """A claim, what it is judged by, and whether it follows."""

    premise: str
    claim: str
    is_true: bool


def sums(chance: Random) -> Probe:
    """Adding two numbers."""
    town, goods = chance.choice(_TOWNS), chance.choice(_GOODS)
    first, second = chance.randint(12, 60), chance.randint(12, 60)
    is_true = chance.random() < 0.5
    said = first + second + (0 if is_true else chance.choice((-11, -7, 6, 9, 13)))
    premise = f"The shop in {town} sold {first} {goods} on Monday and {second} {goods} on Tuesday."
    return Probe(premise, f"The shop in {town} sold {said} {goods} in the two days.", is_true)


def comparisons(chance: Random) -> Probe:
    """Which of two numbers is the larger."""
    first, second = chance.sample(_TOWNS, 2)
    small, large = sorted(chance.sample(range(2_000, 90_000, 37), 2))
    shown = [(first, large), (second, small)]
    chance.shuffle(shown)
    is_true = chance.random() < 0.5
    one, other = (first, second) if is_true else (second, first)
    premise = " ".join(f"{town} has {people:,} inhabitants." for town, people in shown)
    return Probe(premise, f"{one} has more inhabitants than {other}.", is_true)


def spans(chance: Random) -> Probe:
    """How long from one year to another."""
    name, start, length = chance.choice(_PEOPLE), chance.randint(1950, 1990), chance.randint(6, 25)
    is_true = chance.random() < 0.5
    said = length + (0 if is_true else chance.choice((-4, -3, 3, 5)))
    premise = f"{name} was mayor from {start} to {start + length}, and then retired."
    return Probe(premise, f"{name} was mayor for {said} years.", is_true)


def units(chance: Random) -> Probe:
    """The same length in another unit."""
    town, metres = chance.choice(_TOWNS), chance.randint(11, 95) * 100
    is_true = chance.random() < 0.5
    said = metres / 1000 * (1 if is_true else chance.choice((0.1, 10, 0.5, 1.7)))
    premise = f"The tunnel near {town} is {metres:,} metres long and has two lanes."
    return Probe(premise, f"The tunnel near {town} is {said:g} km long.", is_true)


def chains(chance: Random) -> Probe:
    """Two facts that have to be put together."""
    one, other, builder, rival = chance.sample(_PEOPLE, 4)
    here, there = chance.sample(_TOWNS, 2)
    facts = [f"{one} lives in {here}.", f"{other} lives in {there}.",
             f"The school of {here} was built by {builder}.",
             f"The school of {there} was built by {rival}."]  # fmt: skip
    chance.shuffle(facts)
    is_true = chance.random() < 0.5
    said = builder if is_true else rival
    claim = f"The school of the town where {one} lives was built by {said}."
    return Probe(" ".join(facts), claim, is_true)


def order(chance: Random) -> Probe:
    """What came first, by the months."""
    first, second = sorted(chance.sample(range(len(_MONTHS)), 2))
    one, other = chance.sample(_TOWNS, 2)
    shown = [f"The fair of {one} is in {_MONTHS[first]}.",
             f"The fair of {other} is in {_MONTHS[second]}."]  # fmt: skip
    chance.shuffle(shown)
    is_true = chance.random() < 0.5
    said = (one, other) if is_true else (other, one)
    claim = f"The fair of {said[0]} is held before the fair of {said[1]}."
    return Probe(" ".join(shown), claim, is_true)


KINDS: Final[dict[str, Callable[[Random], Probe]]] = {
    "sums": sums,
    "comparisons": comparisons,
    "spans of years": spans,
    "other units": units,
    "two facts": chains,
    "order in time": order,
}
"""Every kind of inference by name."""


async def entailed(judge: Judge, probe: Probe) -> float:
    """The judge's probability that the claim follows."""
    matrix = await judge.check([Claim(text=probe.claim)], [probe.premise])
    return max((verdict.entailed or 0.0 for verdict in matrix.verdicts() if verdict), default=0.0)


def main() -> None:
    """Print a line for each kind."""
    parser = argparse.ArgumentParser(description="What kinds of inference LocalJudge can make.")
    parser.add_argument("--judge", choices=("local", "lexical"), default="local")
    parser.add_argument("--pairs", type=int, default=200)
    options = parser.parse_args()
    judge = LocalJudge(sure_from=0.5) if options.judge == "local" else LexicalJudge(sure_from=0.5)
    for name, make in KINDS.items():
        chance = Random(name)
        probes = [make(chance) for _ in range(options.pairs)]
        scores = [asyncio.run(entailed(judge, probe)) for probe in probes]
        print(f"{name:<16}{auroc(scores, [each.is_true for each in probes]):.3f}", flush=True)


if __name__ == "__main__":
    main()
