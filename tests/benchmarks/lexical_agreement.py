"""How well ``LexicalJudge`` agrees with people, set by set.

    python tests/benchmarks/lexical_agreement.py [--data DIR] [--sets NAME ...] [--half HALF]

``HALF`` is ``test``, ``tune`` or ``all``.

Every set of labelled claims is split into halves by group (question, document), so that no premise
is on both sides. Thresholds of the judge were chosen on the tune halves; the test halves measure.

Columns: number of claims in the half; AUROC of best-window coverage alone; AUROC of the judge's
``entailed`` probability, all claims; the same for entailed against contradicted claims only;
balanced accuracy of the judge's label; balanced accuracy of a threshold on ``entailed`` that was
chosen for this set on its tune half. A claim with several premises takes the best of them.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel

from claimspan.judges import LexicalJudge
from claimspan.judges.lexical.coverage import Corpus, Reference
from claimspan.text.words import tokenize
from claimspan.verdicts import Claim, Label

DATA: Final = Path(__file__).resolve().parents[3] / "shared" / "data" / "entailment" / "dev"

SETS: Final = (
    "refchecker_msmarco",
    "lfqa_verification",
    "factcheckgpt_stance",
    "begin_dev",
    "fever_sym_dev",
    "fm2_dev",
    "healthver_dev",
    "wice_claim_dev",
    "qags_xsum",
    "ling_val",
)
# Its premises are the sentences of one article: the article is the reference.
_SPLIT_ARTICLES: Final = frozenset({"wice_claim_dev"})

Half = Literal["tune", "test"]


class Record(BaseModel):
    """One claim with its premises and what people said of it."""

    id: str
    premises: list[str]
    claim: str
    label: Literal["E", "N", "C", "NE"]


class Scored(NamedTuple):
    """One record as coverage and the judge see it."""

    half: Half
    label: str
    coverage: float
    entailed: float
    says_entailed: bool


class Agreement(NamedTuple):
    """One row of the table; None where a set has no contradicted claims."""

    n: int
    coverage_auroc: float
    auroc: float
    contradiction_auroc: float | None
    label_accuracy: float
    threshold_accuracy: float


def read(path: Path) -> list[Record]:
    """The records of one set."""
    with path.open(encoding="utf-8") as lines:
        return [Record.model_validate(json.loads(line)) for line in lines]


def groups(name: str, records: Sequence[Record]) -> list[str]:
    """The group of every record: what must not be on both sides of the split."""
    if name == "refchecker_msmarco":  # model:query:claim
        return [record.id.split(":")[1] for record in records]
    if name == "lfqa_verification":  # lfqa-model-question-sentence
        return [record.id.split("-")[-2] for record in records]
    if name == "qags_xsum":  # qags-xsum-document-sentence
        return [record.id.rpartition("-")[0] for record in records]
    return _connected(records)


def _connected(records: Sequence[Record]) -> list[str]:
    """Records that share a claim or their premises, directly or through others, are one group."""
    parent: dict[str, str] = {}

    def root(node: str) -> str:
        while parent.setdefault(node, node) != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for record in records:
        parent[root("c" + record.claim)] = root("p" + " ".join(record.premises))
    return [root("c" + record.claim) for record in records]


def half_of(group: str) -> Half:
    """The half of a group, the same on every machine."""
    # Salted: the sets themselves were cut out of larger ones by the parity of a plain hash.
    digest = hashlib.sha256(f"tune or test: {group}".encode()).digest()
    return "test" if digest[-1] % 2 else "tune"


async def score(name: str, records: Sequence[Record]) -> list[Scored]:
    """Every record of a set as coverage alone and the judge see it."""
    judge = LexicalJudge(sure_from=0.5)
    scored: list[Scored] = []
    for record, group in zip(records, groups(name, records), strict=True):
        joined = ["\n".join(record.premises)]
        references = joined if name in _SPLIT_ARTICLES else record.premises
        matrix = await judge.check([Claim(text=record.claim)], references)
        entailed = max((v.entailed or 0.0 for v in matrix.verdicts() if v), default=0.0)
        says_entailed = matrix.merged == [Label.ENTAILED]
        coverage = _coverage(record.claim, references)
        scored.append(Scored(half_of(group), record.label, coverage, entailed, says_entailed))
    return scored


def _coverage(claim: str, references: Sequence[str]) -> float:
    corpus = Corpus([Reference(text, "en") for text in references])
    weights = corpus.weights(tokenize(claim))
    return max(reference.support(weights).coverage for reference in corpus.references)


def auroc(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """Probability that a positive scores above a negative, ties counting one half."""
    pairs = sorted(zip(scores, positive, strict=True))
    wins, negatives_below = 0.0, 0
    for _, tied in groupby(pairs, key=lambda pair: pair[0]):
        answers = [is_positive for _, is_positive in tied]
        hits = sum(answers)
        misses = len(answers) - hits
        wins += hits * (negatives_below + misses / 2)
        negatives_below += misses
    return wins / (negatives_below * (len(pairs) - negatives_below))


def balanced_accuracy(said: Sequence[bool], positive: Sequence[bool]) -> float:
    """Mean of the shares of positives and of negatives that were called right."""
    recalls = [
        sum(s == side for s, p in zip(said, positive, strict=True) if p == side)
        / positive.count(side)
        for side in (True, False)
    ]
    return sum(recalls) / 2


def best_threshold(scores: Sequence[float], positive: Sequence[bool]) -> float:
    """The score from which on a claim counts as entailed, for the best balanced accuracy."""
    steps = sorted(scores)[:: max(len(scores) // 100, 1)]
    return max(steps, key=lambda step: balanced_accuracy([s >= step for s in scores], positive))


def agreement(scored: Sequence[Scored], half: Half | Literal["all"]) -> Agreement:
    """The figures of one half or of both; the threshold always comes from the tune half."""
    tune = [each for each in scored if each.half == "tune"]
    threshold = best_threshold([t.entailed for t in tune], [t.label == "E" for t in tune])
    measured = [each for each in scored if half in (each.half, "all")]
    is_entailed = [each.label == "E" for each in measured]
    entailed = [each.entailed for each in measured]
    return Agreement(
        n=len(measured),
        coverage_auroc=auroc([each.coverage for each in measured], is_entailed),
        auroc=auroc(entailed, is_entailed),
        contradiction_auroc=_contradiction_auroc(measured),
        label_accuracy=balanced_accuracy([each.says_entailed for each in measured], is_entailed),
        threshold_accuracy=balanced_accuracy([e >= threshold for e in entailed], is_entailed),
    )


def _contradiction_auroc(scored: Sequence[Scored]) -> float | None:
    either = [each for each in scored if each.label in ("E", "C")]
    if not any(each.label == "C" for each in either):
        return None
    return auroc([each.entailed for each in either], [each.label == "E" for each in either])


def row(name: str, figures: Agreement) -> str:
    """One line of the table."""
    cells = (f"{'-':>11}" if figure is None else f"{figure:11.3f}" for figure in figures[1:])
    return f"{name:<20}{figures.n:>6}" + "".join(cells)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Agreement of LexicalJudge with people.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the labelled sets")
    parser.add_argument("--sets", nargs="+", default=SETS, help="names of sets, default all")
    parser.add_argument("--half", choices=("tune", "test", "all"), default="test")
    options = parser.parse_args()
    titles = ("coverage", "judge", "E vs C", "label", "threshold")
    print(f"{'set':<20}{'n':>6}" + "".join(f"{title:>11}" for title in titles))
    if not options.data.is_dir():
        parser.error(f"no folder of labelled sets at {options.data}")
    for name in options.sets:
        records = read(options.data / f"{name}.jsonl")
        print(row(name, agreement(asyncio.run(score(name, records)), options.half)), flush=True)


if __name__ == "__main__":
    main()
