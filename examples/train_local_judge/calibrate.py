"""Fits the weights of the evidence, and says how well they do on the other halves.

    python -m train_local_judge.calibrate --evidence FILE --out combination.json

Everything is fitted on the tune halves of the sets that the cross-encoder was not trained on: on
what it has seen, its word would count for too much. The table shows the test halves: AUROC of what
words say alone, of the cross-encoder alone, of its relevance alone, and of the combination, fitted
on the other sets only (``left out``) and on all of them; then the calibration of the latter.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from train_local_judge.measure import load_benchmark

__all__ = ["main"]

Floats = NDArray[np.float64]

_LABELS: Final = ("E", "N", "C")
_ROUNDS: Final = 4
_STEPS: Final = 400
_PENALTY: Final = 1e-3
_RECALL: Final = 0.995
_N_LEXICAL: Final = 2
_TRAINED_ON: Final = frozenset({"begin_dev", "fever_sym_dev", "fm2_dev"})
_OF_PASSAGES: Final = frozenset(
    "refchecker_msmarco lfqa_verification factcheckgpt_stance begin_dev wice_claim_dev "
    "qags_xsum".split()
)


class Entry(NamedTuple):
    """A claim with the evidence of its references, shape ``(n_references, n_evidence)``."""

    name: str
    half: str
    label: str
    cells: Floats


def main() -> None:
    """Fit, write and report."""
    parser = argparse.ArgumentParser(description="Fit the combination of LocalJudge.")
    parser.add_argument("--evidence", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    entries = [
        Entry(name, half, label, np.array(cells))
        for name, half, label, cells in map(json.loads, options.evidence.read_text().splitlines())
        if cells
    ]
    tune = _for_fitting(entries)
    full, lexical = _fit(tune), _fit([_words_only(each) for each in tune])
    content = {
        "full": full.round(4).tolist(),
        "lexical": lexical.round(4).tolist(),
        "skip_below": _skip_below(tune),
    }
    options.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    _report(entries, full)


def _for_fitting(entries: Sequence[Entry]) -> list[Entry]:
    return [each for each in entries if each.half == "tune" and each.name not in _TRAINED_ON]


def _words_only(entry: Entry) -> Entry:
    return entry._replace(cells=entry.cells[:, :_N_LEXICAL])


def _fit(entries: Sequence[Entry]) -> Floats:
    """Weights of shape ``(3, n_evidence + 1)``.

    A claim has one label and many references: the reference that counts is the one that the
    weights so far find most likely to entail it.
    """
    weights = np.zeros((3, entries[0].cells.shape[1] + 1))
    weights[0, 0] = 1.0
    sizes = {name: sum(e.name == name for e in entries) for name in {e.name for e in entries}}
    share = np.array([1 / sizes[each.name] for each in entries])
    allowed = np.array([_allowed(each.label) for each in entries])
    for _ in range(_ROUNDS):
        rows = np.array([each.cells[_best(each, weights)] for each in entries])
        weights = _regression(rows, allowed, share / share.sum(), weights)
    return weights


def _allowed(label: str) -> list[float]:
    return [float(each == label or (label == "NE" and each != "E")) for each in _LABELS]


def _best(entry: Entry, weights: Floats) -> int:
    return int(_probabilities(entry.cells, weights)[:, 0].argmax())


def _probabilities(rows: Floats, weights: Floats) -> Floats:
    scores = rows @ weights[:, :-1].T + weights[:, -1]
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _regression(rows: Floats, allowed: Floats, share: Floats, weights: Floats) -> Floats:
    """Multinomial logistic regression by Adam; of "not entailed" only the sum is known."""
    mean, scale = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    unit = np.hstack([(rows - mean) / scale, np.ones((len(rows), 1))])
    fitted = np.zeros((3, unit.shape[1]))
    first, second = np.zeros_like(fitted), np.zeros_like(fitted)
    for step in range(1, _STEPS + 1):
        predicted = _probabilities(unit[:, :-1], fitted)
        posterior = predicted * allowed
        posterior /= posterior.sum(axis=1, keepdims=True)
        gradient = ((predicted - posterior) * share[:, None]).T @ unit + _PENALTY * fitted
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        fitted -= 0.1 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    found = np.empty_like(weights)
    found[:, :-1] = fitted[:, :-1] / scale
    found[:, -1] = fitted[:, -1] - found[:, :-1] @ mean
    return found


def _skip_below(entries: Sequence[Entry]) -> float:
    """The lexical support that 99.5 % of the entailed claims of every set reach somewhere.

    Of every set whose references are passages: a single sentence may say a claim in other words.
    """
    reached: list[float] = []
    for name in _OF_PASSAGES & {each.name for each in entries}:
        best = sorted(
            float(e.cells[:, 0].max()) for e in entries if e.name == name and e.label == "E"
        )
        reached.append(best[int((1 - _RECALL) * len(best))])
    return round(float(1 / (1 + np.exp(-min(reached)))) - 5e-4, 3)


# Report --------------------------------------------------------------------------------------


def _report(entries: Sequence[Entry], full: Floats) -> None:
    auroc = load_benchmark("lexical_agreement").auroc
    tune = _for_fitting(entries)
    test = [each for each in entries if each.half == "test"]
    columns = ("words", "cross-enc.", "relevance", "left out", "all sets", "ECE")
    print(f"{'set':<22}{'n':>6}" + "".join(f"{each:>11}" for each in columns))
    names = list(dict.fromkeys(each.name for each in entries))
    table: list[list[float]] = []
    for name in names:
        rows = [each for each in test if each.name == name]
        is_entailed = [each.label == "E" for each in rows]
        others = _fit([each for each in tune if each.name != name])
        scores = [_single(rows, at) for at in (0, 2, 5)]
        scores += [_entailed(rows, others), _entailed(rows, full)]
        figures = [auroc(each, is_entailed) for each in scores]
        figures.append(_calibration_error(scores[-1], is_entailed, [1.0] * len(rows)))
        table.append(figures)
        print(f"{name:<22}{len(rows):>6}" + "".join(f"{each:11.3f}" for each in figures))
    print(f"{'mean':<28}" + "".join(f"{each:11.3f}" for each in np.mean(table, axis=0)))
    unseen = [at for at, name in enumerate(names) if name not in _TRAINED_ON]
    means = np.mean([table[at] for at in unseen], axis=0)
    print(f"{'mean of unseen sets':<28}" + "".join(f"{each:11.3f}" for each in means))
    sizes = {name: sum(e.name == name for e in test) for name in {e.name for e in test}}
    share = [1 / sizes[each.name] for each in test]
    error = _calibration_error(
        _entailed(test, full), [e.label == "E" for e in test], share, show=True
    )
    print(f"expected calibration error of all test halves, every set alike: {error:.3f}")


def _single(entries: Sequence[Entry], at: int) -> list[float]:
    """One kind of evidence alone; words are the lexical judge's own probability."""
    if at == 0:
        return [float((_sigmoid(e.cells[:, 0]) * _sigmoid(-e.cells[:, 1])).max()) for e in entries]
    return [float(each.cells[:, at].max()) for each in entries]


def _sigmoid(values: Floats) -> Floats:
    shares: Floats = 1 / (1 + np.exp(-values))
    return shares


def _entailed(entries: Sequence[Entry], weights: Floats) -> list[float]:
    return [float(_probabilities(each.cells, weights)[:, 0].max()) for each in entries]


def _calibration_error(
    said: Sequence[float], is_true: Sequence[bool], share: Sequence[float], *, show: bool = False
) -> float:
    """Mean gap of ten equally wide bins between probability and frequency."""
    total, error = sum(share), 0.0
    for low in range(10):
        chosen = [at for at, each in enumerate(said) if min(int(each * 10), 9) == low]
        mass = sum(share[at] for at in chosen)
        if not mass:
            continue
        mean = sum(said[at] * share[at] for at in chosen) / mass
        frequency = sum(is_true[at] * share[at] for at in chosen) / mass
        error += abs(mean - frequency) * mass / total
        if show:
            print(f"  said {mean:.2f}  true {frequency:.2f}  share {mass / total:.2f}")
    return error


if __name__ == "__main__":
    main()
