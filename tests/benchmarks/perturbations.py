"""What a judge says of copied sentences after one change, and of plain paraphrases.

    python tests/benchmarks/perturbations.py TEXTS [TEXTS ...] [--wordnet DIR] [--judge JUDGE]
        [--half HALF] [--limit N] [--json] [--samples]

``TEXTS`` are folders with open texts: ``.jsonl`` of CLAPnq, ``.html`` or ``.txt``. ``DIR`` has the
database files of WordNet 3.0. ``JUDGE`` is ``lexical`` or ``local``; ``HALF`` is ``tune``, ``test``
or ``all``, by document. Rules and seed are in ``tests/support/perturbed_*.py``: the cases are the
same on every machine that has the texts.

A line for each kind. For a change: the share of claims that the passage with the original sentence
is still said to entail. For a copy or a paraphrase: the share that is said not to be entailed. What
is left undecided is neither. Each with Wilson's 95 % interval and the number of cases, at most
``N``, drawn at random.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from claimspan.judges import Judge, default_judge
from claimspan.verdicts import Claim, Label

from perturbed_cases import KINDS, Case, make_cases
from perturbed_lexicon import read_wordnet
from perturbed_texts import read_passages

_Z: Final = 1.959964
_SEED: Final = 13


class Figure(NamedTuple):
    """One line of the table."""

    kind: str
    wrong: int
    n: int
    low: float
    high: float

    @property
    def share(self) -> float:
        """Share of the cases that the judge got wrong."""
        return self.wrong / self.n if self.n else math.nan


def interval(wrong: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    if not n:
        return 0.0, 1.0
    share, z2 = wrong / n, _Z * _Z
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    reach = _Z / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(centre - reach, 0.0), min(centre + reach, 1.0)


def drawn(cases: Sequence[Case], limit: int) -> dict[str, list[Case]]:
    """At most ``limit`` cases of every kind, the same each time."""
    by_kind: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        by_kind[case.kind].append(case)
    chance = Random(_SEED)
    return {kind: chance.sample(by_kind[kind], min(limit, len(by_kind[kind]))) for kind in KINDS}


async def is_wrong(judge: Judge, case: Case) -> bool:
    """Whether the judge's label differs from what is true of a case; an undecided one does not."""
    matrix = await judge.check([Claim(text=case.claim)], [case.passage.text])
    (label,) = matrix.merged
    return label is not None and (label is Label.ENTAILED) != case.is_entailed


async def measure(judge: Judge, cases: Mapping[str, Sequence[Case]]) -> list[Figure]:
    """One figure for each kind."""
    figures: list[Figure] = []
    for kind, made in cases.items():
        wrong = sum([await is_wrong(judge, case) for case in made])
        figures.append(Figure(kind, wrong, len(made), *interval(wrong, len(made))))
    return figures


def line(figure: Figure, *, is_change: bool) -> str:
    """One line of the table."""
    title = "still entailed" if is_change else "refused"
    shares = f"{figure.share:6.3f}  {figure.low:.3f}-{figure.high:.3f}{figure.n:>6}"
    return f"{figure.kind:<16}{title:<16}{shares}"


def show(cases: Mapping[str, Sequence[Case]], n: int) -> None:
    """Print some cases of every kind, to be read."""
    for kind, made in cases.items():
        for case in made[:n]:
            print(f"[{kind}] {case.original}\n    -> {case.claim}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="One change to a copied sentence, by kind.")
    parser.add_argument("texts", nargs="+", type=Path, help="folders with open texts")
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"))
    parser.add_argument("--judge", choices=("lexical", "local"), default="lexical")
    parser.add_argument("--half", choices=("tune", "test", "all"), default="test")
    parser.add_argument("--limit", type=int, default=300, help="cases of each kind")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--samples", type=int, default=0, help="print N cases of each kind instead")
    options = parser.parse_args()
    for folder in (*options.texts, options.wordnet):
        if not folder.is_dir():
            parser.error(f"no folder at {folder}")
    passages = [each for folder in options.texts for each in read_passages(folder)]
    half = None if options.half == "all" else options.half
    made = list(make_cases(passages, read_wordnet(options.wordnet), half=half))
    cases = drawn(made, options.limit)
    if options.samples:
        show(cases, options.samples)
        return
    figures = asyncio.run(measure(default_judge(options.judge), cases))
    if options.json:
        print(json.dumps([figure._asdict() | {"share": figure.share} for figure in figures]))
        return
    for figure in figures:
        is_change = not any(case.is_entailed for case in cases[figure.kind])
        print(line(figure, is_change=is_change))


if __name__ == "__main__":
    main()
