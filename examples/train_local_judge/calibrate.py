"""Fits the weights with which the judge combines its evidence.

    python -m train_local_judge.calibrate --evidence FILE --out combination.json

Everything is fitted on the tune halves of the sets that the cross-encoder was not trained on: on
what it has seen, its word would count for too much. Claims by rule (``made.py``) are a set of their
own. How well it does on the test halves:
``table.py``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "TRAINED_ON",
    "Entry",
    "Floats",
    "fitted",
    "for_fitting",
    "main",
    "probabilities",
    "read",
]

Floats = NDArray[np.float64]

_LABELS: Final = ("E", "N", "C")
_ROUNDS: Final = 4
_STEPS: Final = 400
_PENALTY: Final = 1e-3
_N_LEXICAL: Final = 2
_SHARES: Final = {"made": 0.4, "written": 1.75}
"""Claims by rule count less than a set of people's, which they are to leave as they are. Written
ones count more, as far as no set loses .01 of its AUROC by it."""

TRAINED_ON: Final = frozenset({"begin_dev", "fever_sym_dev", "fm2_dev", "wice_claim_dev"})
"""Sets whose tune halves are among the training pairs, so that nothing is fitted on them."""


class Entry(NamedTuple):
    """A claim with the evidence for each reference, shape ``(n_references, n_evidence)``."""

    id: str
    name: str
    half: str
    label: str
    cells: Floats


def main() -> None:
    """Fit the weights and write them to a file."""
    parser = argparse.ArgumentParser(description="Fit the combination of LocalJudge.")
    parser.add_argument("--evidence", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    tune = for_fitting(read(options.evidence))
    full, lexical = fitted(tune), fitted([_words_only(each) for each in tune])
    content = {"full": full.round(4).tolist(), "lexical": lexical.round(4).tolist()}
    options.out.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> list[Entry]:
    """Read the claims with evidence from a file of ``measure.py``."""
    lines = map(json.loads, path.read_text(encoding="utf-8").strip().split("\n"))
    return [
        Entry(identity, name, half, label, np.array(cells))
        for identity, name, half, label, cells in lines
        if cells
    ]


def for_fitting(entries: Sequence[Entry], halves: Sequence[str] = ("tune",)) -> list[Entry]:
    """Select the tune halves of the sets that were not used to train the cross-encoder."""
    return [each for each in entries if each.half in halves and each.name not in TRAINED_ON]


def _words_only(entry: Entry) -> Entry:
    return entry._replace(cells=entry.cells[:, :_N_LEXICAL])


def fitted(entries: Sequence[Entry]) -> Floats:
    """Fit the weights, shape ``(3, n_evidence + 1)``.

    A claim has one label and many references: the reference that counts is the one that the
    weights so far find most likely to entail it.
    """
    weights = np.zeros((3, entries[0].cells.shape[1] + 1))
    weights[0, 0] = 1.0
    sizes = {name: sum(e.name == name for e in entries) for name in {e.name for e in entries}}
    share = np.array([_SHARES.get(each.name, 1.0) / sizes[each.name] for each in entries])
    allowed = np.array([_allowed(each.label) for each in entries])
    for _ in range(_ROUNDS):
        rows = np.array([each.cells[_best(each, weights)] for each in entries])
        weights = _regression(rows, allowed, share / share.sum(), weights)
    return weights


def _allowed(label: str) -> list[float]:
    return [float(each == label or (label == "NE" and each != "E")) for each in _LABELS]


def _best(entry: Entry, weights: Floats) -> int:
    return int(probabilities(entry.cells, weights)[:, 0].argmax())


def probabilities(rows: Floats, weights: Floats) -> Floats:
    """Compute the probability of each label for each reference, shape ``(n_references, 3)``."""
    scores = rows @ weights[:, :-1].T + weights[:, -1]
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _regression(rows: Floats, allowed: Floats, share: Floats, weights: Floats) -> Floats:
    """Fit a multinomial logistic regression with Adam.

    For a claim that is only known to be not entailed, the loss uses the sum of the two labels.
    """
    mean, scale = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    unit = np.hstack([(rows - mean) / scale, np.ones((len(rows), 1))])
    fitted = np.zeros((3, unit.shape[1]))
    first, second = np.zeros_like(fitted), np.zeros_like(fitted)
    for step in range(1, _STEPS + 1):
        predicted = probabilities(unit[:, :-1], fitted)
        posterior = predicted * allowed
        posterior /= posterior.sum(axis=1, keepdims=True)
        gradient = ((predicted - posterior) * share[:, None]).T @ unit + _PENALTY * fitted
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        fitted -= 0.1 * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-8)
    found = np.empty_like(weights)
    found[:, :-1] = fitted[:, :-1] / scale
    found[:, -1] = fitted[:, -1] - found[:, :-1] @ mean
    return found


if __name__ == "__main__":
    main()
