"""Prints the table of the model card, measured on the test halves.

    python -m train_local_judge.table --evidence FILE --unseen FILE

``--evidence`` is of the finished weights, ``--unseen`` of those before the late sets joined, where
they are at hand: no set of the table was among the pairs until then. Columns: number of claims;
AUROC of "entailed" by words alone, by the cross-encoder alone, of the combination where neither it
nor the cross-encoder has seen the set ("left out"), and of the combination as it is carried, with
its 95 % interval, and the interval of what it is better by than words; the same for entailed
against contradicted claims; balanced accuracy of the label, and of a threshold that was chosen on
the tune half; expected calibration error. Then the calibration over all sets, and how the language
models of refchecker_msmarco rank.

Intervals are over 500 samples of whole groups (questions, documents): claims on one question are
right or wrong together, and 1,078 claims on 27 questions say little more than 27 claims.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from train_local_judge.calibrate import (
    TRAINED_ON,
    Entry,
    Floats,
    fitted,
    for_fitting,
    probabilities,
    read,
)
from train_local_judge.measure import load_benchmark

__all__ = ["main"]

_BENCHMARK: Final = load_benchmark("lexical_agreement")
_AGREEMENT: Final = load_benchmark("local_agreement")
_SAMPLES: Final = 500
_BINS: Final = 10
_RANKED: Final = "refchecker_msmarco"
# Single sentences of natural language inference, and a field of its own: not what the mean is of.
_BESIDE: Final = frozenset({"healthver_dev", "ling_val"})


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Agreement of LocalJudge with people.")
    parser.add_argument("--evidence", type=Path, required=True)
    parser.add_argument("--unseen", type=Path)
    options = parser.parse_args()
    known = read(options.evidence)
    weights = fitted(for_fitting(known))
    unseen = read(options.unseen) if options.unseen else for_fitting(known, ("tune", "test"))
    entries = [each for each in known if each.name in _BENCHMARK.SETS]
    columns = ("words", "encoder", "left out", "LocalJudge", "95 %", "- words 95 %", "E vs C",
               "label", "threshold")  # fmt: skip
    print(f"{'set':<22}{'n':>6}" + "".join(f"{each:>13}" for each in (*columns, "ECE")))
    names = list(dict.fromkeys(each.name for each in entries))
    rows = {name: _row(name, entries, unseen, weights) for name in names}
    for title, chosen in (("mean", names), ("mean of the eight", [*filter(_counts, names)])):
        means = np.nanmean([rows[name] for name in chosen], axis=0)
        print(f"{title:<28}" + "".join(f"{each:13.3f}" for each in means))
    test = [each for each in entries if each.half == "test"]
    print(f"expected calibration error, every set alike: {_error(test, weights, show=True):.3f}")
    print(_ranking(entries, weights))


def _counts(name: str) -> bool:
    return name not in _BESIDE


def _row(
    name: str, entries: Sequence[Entry], unseen: Sequence[Entry], weights: Floats
) -> list[float]:
    tune, test = (
        [each for each in entries if each.name == name and each.half == half]
        for half in ("tune", "test")
    )
    truth = [each.label == "E" for each in test]
    said = entailed(test, weights)
    threshold = _BENCHMARK.best_threshold(
        entailed(tune, weights), [each.label == "E" for each in tune]
    )
    words = _words(test)
    figures = [
        _BENCHMARK.auroc(words, truth),
        _BENCHMARK.auroc([float(each.cells[:, 2].max()) for each in test], truth),
        _left_out(name, unseen),
        _BENCHMARK.auroc(said, truth),
    ]
    (low, high), (least, most) = _intervals(test, said, words)
    rest = [
        _contradicted(test, said),
        _BENCHMARK.balanced_accuracy(_says_entailed(test, weights), truth),
        _BENCHMARK.balanced_accuracy([each >= threshold for each in said], truth),
        _error(test, weights),
    ]
    cells = [f"{each:13.3f}" for each in figures]
    cells += [f"{low:7.3f}-{high:.3f}", f" {least:+.3f}..{most:+.3f}"]
    mark = "*" if name in TRAINED_ON else ""
    print(f"{name + mark:<22}{len(test):>6}" + "".join([*cells, *(f"{x:13.3f}" for x in rest)]))
    return figures


def _left_out(name: str, unseen: Sequence[Entry]) -> float:
    others = fitted([each for each in unseen if each.half == "tune" and each.name != name])
    test = [each for each in unseen if each.name == name and each.half == "test"]
    if not test:
        return float("nan")
    return float(_BENCHMARK.auroc(entailed(test, others), [each.label == "E" for each in test]))


def entailed(entries: Sequence[Entry], weights: Floats) -> list[float]:
    """Compute for each claim the largest probability of "entailed" over its references."""
    return [float(probabilities(each.cells, weights)[:, 0].max()) for each in entries]


def _says_entailed(entries: Sequence[Entry], weights: Floats) -> list[bool]:
    return [
        bool((probabilities(each.cells, weights).argmax(axis=1) == 0).any()) for each in entries
    ]


def _words(entries: Sequence[Entry]) -> list[float]:
    """Return the probability of the lexical judge."""
    return [
        float((_sigmoid(each.cells[:, 0]) * _sigmoid(-each.cells[:, 1])).max()) for each in entries
    ]


def _sigmoid(values: Floats) -> Floats:
    shares: Floats = 1 / (1 + np.exp(-values))
    return shares


def _contradicted(entries: Sequence[Entry], said: Sequence[float]) -> float:
    either = [
        (score, each.label == "E")
        for each, score in zip(entries, said, strict=True)
        if each.label in ("E", "C")
    ]
    if len({truth for _, truth in either}) < 2:
        return float("nan")
    return float(_BENCHMARK.auroc(*map(list, zip(*either, strict=True))))


Interval = tuple[float, float]


def _intervals(
    test: Sequence[Entry], said: Sequence[float], words: Sequence[float]
) -> tuple[Interval, Interval]:
    """Compute the intervals of the AUROC and of its difference to that of words."""
    chance = Random(0)  # noqa: S311 - resampling, no secret
    groups = _groups(test)
    own, gained = list[float](), list[float]()
    while len(own) < _SAMPLES:
        sample = [at for group in chance.choices(groups, k=len(groups)) for at in group]
        truth = [test[at].label == "E" for at in sample]
        if len(set(truth)) == 2:
            own.append(_BENCHMARK.auroc([said[at] for at in sample], truth))
            by_words = _BENCHMARK.auroc([words[at] for at in sample], truth)
            gained.append(own[-1] - by_words)
    return _middle(own), _middle(gained)


def _middle(found: Sequence[float]) -> Interval:
    ordered = sorted(found)
    return ordered[round(0.025 * _SAMPLES)], ordered[round(0.975 * _SAMPLES) - 1]


def _groups(test: Sequence[Entry]) -> list[list[int]]:
    """Collect the places of the claims of each question or document."""
    name = test[0].name
    records = _BENCHMARK.read(_BENCHMARK.DATA / f"{name}.jsonl")
    group_of = dict(zip((r.id for r in records), _BENCHMARK.groups(name, records), strict=True))
    places: dict[str, list[int]] = defaultdict(list)
    for at, each in enumerate(test):
        places[group_of[each.id]].append(at)
    return list(places.values())


def _error(entries: Sequence[Entry], weights: Floats, *, show: bool = False) -> float:
    """Compute the expected calibration error over ten bins, with equal weight for each set."""
    sizes = {name: sum(e.name == name for e in entries) for name in {e.name for e in entries}}
    share = np.array([1 / sizes[each.name] for each in entries]) / len(sizes)
    said = np.array(entailed(entries, weights))
    is_true = np.array([each.label == "E" for each in entries])
    bins = np.minimum((said * _BINS).astype(int), _BINS - 1)
    error = 0.0
    for low in range(_BINS):
        mass = share[bins == low].sum()
        if not mass:
            continue
        mean = float((said * share)[bins == low].sum() / mass)
        frequency = float((is_true * share)[bins == low].sum() / mass)
        error += abs(mean - frequency) * mass
        if show:
            print(f"  said {mean:.2f}  true {frequency:.2f}  share {mass:.2f}")
    return float(error)


def _ranking(entries: Sequence[Entry], weights: Floats) -> str:
    people, local, words = (defaultdict[str, list[float]](list) for _ in range(3))
    chosen = [each for each in entries if each.name == _RANKED]
    scores = zip(chosen, entailed(chosen, weights), _words(chosen), strict=True)
    for each, said, by_words in scores:
        model = each.id.partition(":")[0]
        people[model].append(float(each.label != "E"))
        local[model].append(1 - said)
        words[model].append(1 - by_words)
    models = sorted(people)
    means = [[float(np.mean(of[m])) for m in models] for of in (people, local, words)]
    lines = [f"  {m:<22} people {p:.2f}  LocalJudge {x:.2f}  words {w:.2f}"
             for m, p, x, w in zip(models, *means, strict=True)]  # fmt: skip
    by_local, by_words = (_AGREEMENT.spearman(means[0], of) for of in means[1:])
    lines.append(f"unsupported share, Spearman with people: {by_local:.2f}, words {by_words:.2f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
