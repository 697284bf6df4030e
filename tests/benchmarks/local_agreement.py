"""How well ``LocalJudge`` agrees with people, beside ``LexicalJudge`` on the same claims.

    python tests/benchmarks/local_agreement.py [--data DIR] [--sets NAME ...] [--thin N] [--model M]

Sets, halves and groups are those of ``lexical_agreement.py``: what was chosen or fitted came from
the tune halves, and the table shows the test halves. ``--thin N`` takes every n-th claim.

Columns: number of claims; AUROC of ``LexicalJudge`` and of ``LocalJudge``, the latter with its 95 %
interval, and the interval of its gain, over 500 bootstrap samples of groups; AUROC for entailed
against contradicted claims only; balanced accuracy of the label, and of a threshold on ``entailed``
that was chosen on the tune half; expected calibration error of ``entailed`` in ten bins. Then,
of refchecker_msmarco, how its language models rank by the share of unsupported claims, as people
and as both judges have it (Spearman).
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from lexical_agreement import (
    DATA,
    SETS,
    Half,
    Record,
    auroc,
    balanced_accuracy,
    best_threshold,
    groups,
    half_of,
    read,
)

from claimspan.judges import Judge, LexicalJudge
from claimspan.judges.local.judge import LocalJudge
from claimspan.verdicts import Claim, Label

_SPLIT_ARTICLES: Final = frozenset({"wice_claim_dev"})
_RANKED: Final = "refchecker_msmarco"
_SAMPLES: Final = 500
_BINS: Final = 10


class Judged(NamedTuple):
    """One claim as people and the two judges see it."""

    record: Record
    group: str
    half: Half
    lexical: float
    local: float
    says_entailed: bool

    @property
    def is_entailed(self) -> bool:
        """What people say."""
        return self.record.label == "E"


async def judge_all(name: str, records: Sequence[Record], judge: LocalJudge) -> list[Judged]:
    """Every claim of a set by both judges; the best of its premises counts."""
    found: list[Judged] = []
    for record, group in zip(records, groups(name, records), strict=True):
        joined = ["\n".join(record.premises)]
        references = joined if name in _SPLIT_ARTICLES else record.premises
        lexical, _ = await entailed(LexicalJudge(sure_from=0.5), record.claim, references)
        local, says_entailed = await entailed(judge, record.claim, references)
        found.append(Judged(record, group, half_of(group), lexical, local, says_entailed))
    return found


async def entailed(judge: Judge, claim: str, references: Sequence[str]) -> tuple[float, bool]:
    """The largest probability over the references, and whether the label is "entailed"."""
    matrix = await judge.check([Claim(text=claim)], references)
    probabilities = [verdict.entailed or 0.0 for verdict in matrix.verdicts() if verdict]
    return max(probabilities, default=0.0), matrix.merged == [Label.ENTAILED]


def row(name: str, judged: Sequence[Judged]) -> str:
    """One line of the table, from the test half; thresholds from the tune half."""
    tune = [each for each in judged if each.half == "tune"]
    test = [each for each in judged if each.half == "test"]
    truth = [each.is_entailed for each in test]
    threshold = best_threshold([each.local for each in tune], [each.is_entailed for each in tune])
    (low, high), (least, most) = intervals(test)
    cells = [
        f"{auroc([each.lexical for each in test], truth):9.3f}",
        f"{auroc([each.local for each in test], truth):9.3f}",
        f"  {low:.3f}-{high:.3f}",
        f"  {least:+.3f}..{most:+.3f}",
        f"{contradiction_auroc(test):9.3f}",
        f"{balanced_accuracy([each.says_entailed for each in test], truth):9.3f}",
        f"{balanced_accuracy([each.local >= threshold for each in test], truth):9.3f}",
        f"{calibration_error([each.local for each in test], truth):9.3f}",
    ]
    return f"{name:<20}{len(test):>6}" + "".join(cells)


class Intervals(NamedTuple):
    """The middle 95 % of resampled groups."""

    local: tuple[float, float]
    gain: tuple[float, float]
    """Of the AUROC of ``LocalJudge`` less that of ``LexicalJudge``."""


def intervals(judged: Sequence[Judged]) -> Intervals:
    """The intervals of ``LocalJudge`` and of its gain; claims on one question go together."""
    by_group: dict[str, list[Judged]] = defaultdict(list)
    for each in judged:
        by_group[each.group].append(each)
    chance, drawn = random.Random(0), list(by_group.values())
    local, gain = list[float](), list[float]()
    while len(local) < _SAMPLES:
        sample = [each for group in chance.choices(drawn, k=len(drawn)) for each in group]
        truth = [each.is_entailed for each in sample]
        if len(set(truth)) == 2:
            local.append(auroc([each.local for each in sample], truth))
            gain.append(local[-1] - auroc([each.lexical for each in sample], truth))
    return Intervals(_middle(local), _middle(gain))


def _middle(found: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(found)
    return ordered[round(0.025 * _SAMPLES)], ordered[round(0.975 * _SAMPLES) - 1]


def contradiction_auroc(judged: Sequence[Judged]) -> float:
    """Entailed against contradicted claims only; nan for a set that has none."""
    either = [each for each in judged if each.record.label in ("E", "C")]
    truth = [each.is_entailed for each in either]
    return auroc([each.local for each in either], truth) if len(set(truth)) == 2 else float("nan")


def calibration_error(said: Sequence[float], is_true: Sequence[bool]) -> float:
    """Mean gap between probability and frequency over ten equally wide bins."""
    gaps = [0.0] * _BINS
    for probability, truth in zip(said, is_true, strict=True):
        gaps[min(int(probability * _BINS), _BINS - 1)] += probability - truth
    return sum(map(abs, gaps)) / len(said)


def ranking(judged: Sequence[Judged]) -> str:
    """How the language models rank by their unsupported claims, on all claims of the set."""
    people, lexical, local = (defaultdict[str, list[float]](list) for _ in range(3))
    for each in judged:
        model = each.record.id.partition(":")[0]
        people[model].append(1.0 - each.is_entailed)
        lexical[model].append(1.0 - each.lexical)
        local[model].append(1.0 - each.local)
    means = [[sum(of[m]) / len(of[m]) for m in sorted(people)] for of in (people, lexical, local)]
    return (
        f"{len(people)} models by unsupported share, Spearman with people: "
        f"lexical {spearman(means[0], means[1]):.2f}, local {spearman(means[0], means[2]):.2f}"
    )


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Correlation of ranks; ties are not expected of means."""
    n = len(first)
    ranks = [sorted(range(n), key=of.__getitem__) for of in (first, second)]
    places = [{at: place for place, at in enumerate(order)} for order in ranks]
    gap = sum((places[0][at] - places[1][at]) ** 2 for at in range(n))
    return 1 - 6 * gap / (n * (n * n - 1))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Agreement of LocalJudge with people.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the labelled sets")
    parser.add_argument("--sets", nargs="+", default=SETS, help="names of sets, default all")
    parser.add_argument("--thin", type=int, default=1, help="take every n-th claim")
    parser.add_argument("--model", help="another model: a folder, or org/name on the hub")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"no folder of labelled sets at {options.data}")
    judge = LocalJudge(options.model, sure_from=0.5)
    titles = ("lexical", "local", "95 %       ", "gain, 95 %    ", "E vs C", "label", "threshold",
              "ECE")  # fmt: skip
    widths = (9, 9, 13, 16, 9, 9, 10, 8)
    line = "".join(f"{title:>{width}}" for title, width in zip(titles, widths, strict=True))
    print(f"{'set':<20}{'n':>6}{line}")
    for name in options.sets:
        records = read(options.data / f"{name}.jsonl")[:: options.thin]
        judged = asyncio.run(judge_all(name, records, judge))
        print(row(name, judged), flush=True)
        if name == _RANKED:
            print(ranking(judged), flush=True)


if __name__ == "__main__":
    main()
