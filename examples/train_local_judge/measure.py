"""Computes the judge's evidence for every development claim, for fitting and for measuring.

    python -m train_local_judge.measure --model FILE --tokenizer FILE --dev FOLDER --out FILE

Writes one line a claim: its id, set, half, label, and the evidence of each of its references (of
the three that share most words with it). A tenth of a file is enough for a learning curve:
``--thin 10``.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple, Protocol

from claimspan.judges import LexicalJudge
from claimspan.judges.local.cross_encoder import CrossEncoder, ModelFiles
from claimspan.judges.local.reading import Passage, cell_features
from claimspan.verdicts import Claim, Verdict
from train_local_judge import written

__all__ = ["load_benchmark", "main"]

_BENCHMARKS: Final = Path(__file__).parents[2] / "tests" / "benchmarks"
_REFERENCES: Final = 3
_CHUNK: Final = 200
# Three-way pairs of single sentences are many, and tell little about retrieval.
_THINNED: Final = {"ling_val": 3, "healthver_dev": 2}


def main() -> None:
    """Write the evidence to a file."""
    parser = argparse.ArgumentParser(description="Evidence of LocalJudge on labelled claims.")
    for name in ("model", "tokenizer", "dev", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--thin", type=int, default=1)
    parser.add_argument("--made", type=Path, help="claims by rule, of made.py")
    parser.add_argument("--half", choices=("tune", "test", "all"), default="all")
    options = parser.parse_args()
    encoder = CrossEncoder(ModelFiles(options.model, options.tokenizer))
    benchmark = load_benchmark("lexical_agreement")
    with options.out.open("w", encoding="utf-8") as out:
        for name in benchmark.SETS:
            for line in _set(benchmark, name, options, encoder):
                print(json.dumps(line), file=out)
            print(name, flush=True)
        if options.made:
            claims = [(each, "tune") for each in benchmark.read(options.made)]
            for line in _lines("made", claims, encoder):
                print(json.dumps(line), file=out)
        for line in _lines("written", list(_written(options.half)), encoder):
            print(json.dumps(line), file=out)


def _written(half: str) -> Iterator[tuple[LabelledClaim, str]]:
    """Yields the English claims of ``pairs/`` that no model was trained on, with their half."""
    halves = {"fitting": "tune", "test": "test"}
    for passage in written.passages():
        own = halves.get(passage.part)
        if passage.language == "en" and own is not None and half in (own, "all"):
            for number, claim in enumerate(passage.claims, 1):
                identity = f"{passage.id}.{number}"
                yield _Written(identity, [passage.text], claim.text, claim.label), own


class _Written(NamedTuple):
    id: str
    premises: list[str]
    claim: str
    label: str


class LabelledClaim(Protocol):
    """A claim with the texts against which people labelled it."""

    @property
    def id(self) -> str: ...
    @property
    def premises(self) -> list[str]: ...
    @property
    def claim(self) -> str: ...
    @property
    def label(self) -> str: ...


Line = tuple[str, str, str, str, list[tuple[float, ...]]]
"""Identifier, set, half, label, and the features for each reference."""


def load_benchmark(name: str) -> ModuleType:
    """Import a script of ``tests/benchmarks`` as a module."""
    spec = importlib.util.spec_from_file_location(name, _BENCHMARKS / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _set(
    benchmark: ModuleType, name: str, options: argparse.Namespace, encoder: CrossEncoder
) -> Iterator[Line]:
    records = benchmark.read(options.dev / f"{name}.jsonl")
    halves = [benchmark.half_of(group) for group in benchmark.groups(name, records)]
    chosen = [
        (record, half)
        for record, half in list(zip(records, halves, strict=True))[
            :: options.thin * _THINNED.get(name, 1)
        ]
        if options.half in (half, "all")
    ]
    yield from _lines(name, chosen, encoder)


def _lines(
    name: str, chosen: Sequence[tuple[LabelledClaim, str]], encoder: CrossEncoder
) -> Iterator[Line]:
    for start in range(0, len(chosen), _CHUNK):
        part = chosen[start : start + _CHUNK]
        joined = name == "wice_claim_dev"
        cells = asyncio.run(_cells([record for record, _ in part], joined=joined))
        logits = iter(
            encoder.logits([pair for each in cells for _, pairs in each for pair in pairs])
        )
        for (record, half), each in zip(part, cells, strict=True):
            found = [cell_features(verdict, next(logits)) for verdict, pairs in each if pairs]
            yield record.id, name, half, record.label, found


async def _cells(
    records: Sequence[LabelledClaim], *, joined: bool
) -> list[list[tuple[Verdict, list[tuple[str, str]]]]]:
    judge = LexicalJudge(sure_from=0.5)
    found: list[list[tuple[Verdict, list[tuple[str, str]]]]] = []
    for record in records:
        premises = ["\n".join(record.premises)] if joined else record.premises
        (row,) = (await judge.check([Claim(text=record.claim)], premises)).rows
        order = sorted(range(len(row)), key=lambda at: -_support(row[at]))[:_REFERENCES]
        shown = [(row[at], _pairs(record.claim, premises[at])) for at in order]
        found.append([(verdict, pairs) for verdict, pairs in shown if verdict and pairs])
    return found


def _pairs(claim: str, premise: str) -> list[tuple[str, str]]:
    return [(claim, window) for window in Passage(premise, "en").windows_for(claim)]


def _support(verdict: Verdict | None) -> float:
    return (verdict.entailed or 0.0) + (verdict.contradicted or 0.0) if verdict else 0.0


if __name__ == "__main__":
    main()
