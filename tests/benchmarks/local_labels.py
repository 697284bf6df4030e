"""How often the labels of the bundled model are those of the same weights in 32 bits.

    python tests/benchmarks/local_labels.py [--data DIR] [--records FILE] [--half HALF] [--claims N]

The model reads a pair in 8 bits, and once more in 32 bits where its two largest logits are close.
How close is an input of the model, so that one file gives all three readings: 8 bits alone, as it
is shipped, and all in 32 bits. That the last is what PyTorch computes of the same weights shows
``cross_encoder_peer.py``.

The pairs are those of the two references with the most words of a claim: up to N claims of each
labelled set of ``lexical_agreement.py``, and the claims of ten-chunk records, those of a file and
those that ``lexical_speed.py`` makes. ``HALF`` is ``tune``, on which the bound was chosen, or
``test``. Both split questions and documents as those of ``lexical_agreement.py`` do.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from lexical_agreement import DATA, SETS, Half, groups, half_of, read
from lexical_speed import made_records
from numpy.typing import NDArray

from claimspan import RagRecord
from claimspan.files.record_files import read_records
from claimspan.judges import LexicalJudge
from claimspan.judges.local.cross_encoder import CrossEncoder, TextPair
from claimspan.judges.local.models import bundled_files
from claimspan.judges.local.reading import Passage
from claimspan.verdicts import Claim, Verdict

from near_ties import IN_8_BITS, IN_32_BITS, BoundedEncoder

RECORDS: Final = DATA.parents[2] / "bench" / "samples20.json"
_SPLIT_ARTICLES: Final = frozenset({"wice_claim_dev"})
_N_REFERENCES, _N_RECORDS = 2, 20
_N_LABELS: Final = 3

Logits = NDArray[np.float32]


class Labels(NamedTuple):
    """How the readings of some pairs compare."""

    n_pairs: int
    n_again: int
    """Pairs that were read a second time."""

    n_other_in_8_bits: int
    """Pairs whose label is another one in 8 bits alone."""

    n_other: int
    """Pairs whose label is another one as the model is shipped."""

    largest_gap: float
    """Largest difference of a probability, as the model is shipped."""


class Readings:
    """The three readings of the bundled model."""

    def __init__(self) -> None:
        self.in_8_bits = BoundedEncoder(IN_8_BITS)
        self.shipped = CrossEncoder(bundled_files(), known_bytes=0)
        self.in_32_bits = BoundedEncoder(IN_32_BITS)


def compared(readings: Readings, pairs: Sequence[TextPair]) -> Labels:
    """Reads pairs in the three ways."""
    encoders = (readings.in_8_bits, readings.shipped, readings.in_32_bits)
    quick, shipped, exact = (np.array(each.logits(pairs), np.float32) for each in encoders)
    truth = _best(exact)
    return Labels(
        n_pairs=len(pairs),
        n_again=int((quick != shipped).any(axis=1).sum()),
        n_other_in_8_bits=int((_best(quick) != truth).sum()),
        n_other=int((_best(shipped) != truth).sum()),
        largest_gap=float(np.abs(_probabilities(shipped) - _probabilities(exact)).max()),
    )


def _best(logits: Logits) -> NDArray[np.int64]:
    best: NDArray[np.int64] = logits[:, :_N_LABELS].argmax(axis=1)
    return best


def _probabilities(logits: Logits) -> Logits:
    powers = np.exp(logits[:, :_N_LABELS] - logits[:, :_N_LABELS].max(axis=1, keepdims=True))
    shares: Logits = (powers / powers.sum(axis=1, keepdims=True)).astype(np.float32)
    return shares


def added(found: Sequence[Labels]) -> Labels:
    """The sum of several sets."""
    *counts, gaps = zip(*found, strict=True)
    n_pairs, n_again, n_other_in_8_bits, n_other = map(sum, counts)
    return Labels(n_pairs, n_again, n_other_in_8_bits, n_other, max(gaps))


def row(name: str, found: Labels) -> str:
    """One line of the table."""
    equal = [1 - each / found.n_pairs for each in (found.n_other_in_8_bits, found.n_other)]
    cells = [f"{equal[0]:>10.2%}", f"{equal[1]:>10.2%}", f"{found.n_again / found.n_pairs:>12.1%}"]
    return f"{name:<22}{found.n_pairs:>7}{''.join(cells)}{found.largest_gap:>13.3f}"


async def set_pairs(path: Path, half: Half, n_claims: int) -> list[TextPair]:
    """The pairs of one half of a labelled set."""
    records = read(path)
    chosen = list(zip(records, groups(path.stem, records), strict=True))
    pairs: list[TextPair] = []
    for record, group in chosen[:: max(1, len(chosen) // n_claims)]:
        if half_of(group) == half:
            whole = ["\n".join(record.premises)]
            references = whole if path.stem in _SPLIT_ARTICLES else record.premises
            pairs += await claim_pairs(record.claim, references)
    return list(dict.fromkeys(pairs))


async def record_pairs(name: str, records: Sequence[RagRecord], half: Half) -> list[TextPair]:
    """The pairs of those records that are in a half, by their question and response."""
    pairs: list[TextPair] = []
    for record in records:
        if half_of(f"{name}{record.query}{str(record.response)[:50]}") != half:
            continue
        texts = [chunk.text for chunk in record.chunks]
        for said in filter(None, (record.response, record.ground_truth)):
            for claim in await LexicalJudge().extract_claims(said):
                pairs += await claim_pairs(claim.text, texts)
    return list(dict.fromkeys(pairs))


async def claim_pairs(claim: str, references: Sequence[str]) -> list[TextPair]:
    """A claim beside the windows of the references that have most of its words."""
    (verdicts,) = (await LexicalJudge(sure_from=0.5).check([Claim(text=claim)], references)).rows
    order = sorted(range(len(references)), key=lambda at: -_support(verdicts[at]))
    nearest = [Passage(references[at], "en") for at in order[:_N_REFERENCES]]
    return [(claim, window) for passage in nearest for window in passage.windows_for(claim)]


def _support(verdict: Verdict | None) -> float:
    return (verdict.entailed or 0.0) + (verdict.contradicted or 0.0) if verdict else 0.0


async def all_pairs(options: argparse.Namespace) -> Mapping[str, list[TextPair]]:
    """The pairs of one half, by source."""
    folder: Path = options.data
    found = {
        name: await set_pairs(folder / f"{name}.jsonl", options.half, options.claims)
        for name in SETS
    }
    if options.records.is_file():
        found["bench"] = await record_pairs("bench", read_records(options.records), options.half)
    found["made"] = await record_pairs("made", made_records(_N_RECORDS), options.half)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Labels of LocalJudge's model beside 32 bits.")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the labelled sets")
    parser.add_argument("--records", type=Path, default=RECORDS, help="file of records")
    parser.add_argument("--half", choices=("tune", "test"), default="test")
    parser.add_argument("--claims", type=int, default=400, help="claims of a set, both halves")
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(f"no folder of labelled sets at {options.data}")
    readings = Readings()
    print(f"{'':<22}{'pairs':>7}{'8 bits':>10}{'shipped':>10}{'read again':>12}{'probability':>13}")
    found: list[Labels] = []
    for name, pairs in asyncio.run(all_pairs(options)).items():
        if pairs:
            found.append(compared(readings, pairs))
            print(row(name, found[-1]), flush=True)
    print(row("all", added(found)))


if __name__ == "__main__":
    main()
