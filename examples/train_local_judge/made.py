"""Writes claims made by rule from texts that nobody trains on, to fit the combination with.

    python -m train_local_judge.made --dev FOLDER --wordnet FOLDER --out FILE

Of claims that language models make, few have two names exchanged or a quantifier too strong, and a
combination that is fitted to them alone goes by the words where it should not. The texts are web
passages of the tune halves of three development sets, of which the cross-encoder has seen none.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from claimspan.text.sentences import split_prose
from train_local_judge.lexicon import Lexicon
from train_local_judge.measure import load_benchmark
from train_local_judge.pairs import Document
from train_local_judge.relations import RelationMaker

__all__ = ["main"]

_SETS: Final = ("refchecker_msmarco", "lfqa_verification", "factcheckgpt_stance")
_SEED: Final = 7


def main() -> None:
    """Write the claims to a file, in the form of the development sets."""
    parser = argparse.ArgumentParser(description="Claims by rule from texts kept from training.")
    for name in ("dev", "wordnet", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--claims", type=int, default=1200)
    options = parser.parse_args()
    maker = RelationMaker(list(_documents(options.dev)), [], Lexicon(options.wordnet))
    with options.out.open("w", encoding="utf-8") as out:
        for at, pair in enumerate(islice(maker.pairs(_SEED), options.claims)):
            record = {"id": f"made-{at}", "premises": [pair.premise], "claim": pair.claim,
                      "label": pair.label}  # fmt: skip
            print(json.dumps(record, ensure_ascii=False), file=out)


def _documents(folder: Path) -> Iterator[Document]:
    benchmark = load_benchmark("lexical_agreement")
    for name in _SETS:
        records = benchmark.read(folder / f"{name}.jsonl")
        kept = {
            premise
            for record, group in zip(records, benchmark.groups(name, records), strict=True)
            if benchmark.half_of(group) == "tune"
            for premise in record.premises
        }
        for premise in sorted(kept):
            sentences = [each for each in split_prose(premise, "en") if len(each.split()) > 4]
            if sentences:
                yield sentences[:12]


if __name__ == "__main__":
    main()
