"""What ``LocalJudge`` costs on one core: a whole record, and pairs a second beside a peer.

    python tests/benchmarks/local_speed.py [--json] [--pairs N] [--rounds N]

The record has ten chunks of 800 characters from the English prose in Python's own documentation.
The response and the ground truth are eight and seven of their sentences, three of them in both.
"Processor seconds" are those of this process. The peer runs where it is installed, with onnx.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import time
from collections.abc import Callable, Sequence
from pydoc_data.topics import topics
from statistics import median
from typing import Final

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from cross_encoder_peer import is_installed, peer
from results import Bar, Results, Table, show

from claimspan import Chunk, RagRecord
from claimspan.evaluation.matrices import judge_matrices
from claimspan.judges import LexicalJudge
from claimspan.judges.local.cross_encoder import CrossEncoder, TextPair
from claimspan.judges.local.judge import LocalJudge
from claimspan.judges.local.models import bundled_files
from claimspan.text.sentences import split_prose
from claimspan.verdicts import Claim

Side = Callable[[Sequence[TextPair]], list[list[float]]]

_CHUNK_CHARACTERS, _N_CHUNKS = 800, 10
_RESPONSE: Final = slice(0, 8)
_GROUND_TRUTH: Final = slice(5, 12)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="What LocalJudge costs on one core.")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--pairs", type=int, default=128, help="pairs of a round")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of both sides in turn")
    options = parser.parse_args()
    show(measured(options.pairs, options.rounds), as_json=options.json)


def measured(n_pairs: int, n_rounds: int) -> Results:
    """All figures."""
    record = record_table()
    beside, bars = pairs_table(n_pairs, n_rounds)
    return Results(
        title="The local judge on one core",
        command="python tests/benchmarks/local_speed.py --json",
        how="Processor seconds of this process, one thread on each side, rounds in turn. Ours runs "
        "the weights in 8 bits with onnxruntime, the peer the same in 32 bits with PyTorch.",
        tables=[record, beside],
        bars=bars,
        notes=["Labels are compared on made pairs; on pairs of labelled sets: local_labels.py."],
    )


def record_table() -> Table:
    """One whole record with each judge, and with the local one again, when its pairs are known."""
    record, response, ground_truth = make_record()
    rows: list[list[str]] = []
    local = LocalJudge()
    for name, judge in (("lexical", LexicalJudge()), ("local", local), ("local, again", local)):
        asyncio.run(judge.check(response[:1], [record.response]))
        before, began = local.pairs, time.process_time()
        asyncio.run(judge_matrices(judge, record, response, ground_truth))
        spent = time.process_time() - began
        counts = [str(now - then) for now, then in zip(local.pairs, before, strict=True)]
        rows.append([name, f"{spent:.2f}", *(counts if judge is local else ["", "", ""])])
    columns = ["judge", "processor s", "pairs asked", "pairs read", "pairs run"]
    return Table(caption="A record of 8 + 7 claims and 10 chunks", columns=columns, rows=rows)


def pairs_table(n_pairs: int, n_rounds: int) -> tuple[Table, list[Bar]]:
    """Pairs a second, beside the peer where it is installed."""
    encoder = CrossEncoder(bundled_files(), known_bytes=0)
    sides: dict[str, Side] = {"claimspan": encoder.logits}
    if is_installed():
        sides["sentence-transformers"] = peer()
    pairs = made_pairs(n_pairs)
    found = {name: side(pairs[:8]) for name, side in sides.items()}
    speeds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(n_rounds):
        for name, side in sides.items():
            began = time.process_time()
            found[name] = side(pairs)
            speeds[name].append(len(pairs) / (time.process_time() - began))
    rows = [
        [name, f"{median(each):.0f} ({min(each):.0f} to {max(each):.0f})"]
        for name, each in speeds.items()
    ]
    if len(sides) == 1:
        rows.append(["sentence-transformers", "not installed"])
    table = Table(caption="Pairs a second", columns=["", "pairs a second"], rows=rows)
    return table, bars_of(speeds, found) if len(sides) > 1 else []


def bars_of(speeds: dict[str, list[float]], found: dict[str, list[list[float]]]) -> list[Bar]:
    """What is promised beside the peer: speed, and the label of the largest logit."""
    ours, theirs = speeds.values()
    ratio = median(one / other for one, other in zip(ours, theirs, strict=True))
    labels = [[row.index(max(row[:3])) for row in rows] for rows in found.values()]
    equal = sum(one == other for one, other in zip(*labels, strict=True)) / len(labels[0])
    # On pairs of labelled sets: local_labels.py.
    return [
        Bar(
            promise="pairs a second, at least 2 times the peer's",
            measured=f"{ratio:.1f}",
            is_kept=ratio >= 2,
        ),
        Bar(
            promise="labels equal on 99.5 % of made pairs, which are easy ones",
            measured=f"{equal:.1%}",
            is_kept=equal >= 0.995,
        ),
    ]


def made_pairs(n_pairs: int) -> list[TextPair]:
    """Each sentence of the record's chunks beside windows of 60 words of them."""
    record, _, _ = make_record()
    words = " ".join(chunk.text for chunk in record.chunks).split()
    said = list(split_prose(" ".join(words), "en"))
    chance = random.Random(1)
    starts = [chance.randrange(len(words) - 60) for _ in range(n_pairs)]
    return [
        (said[at % len(said)], f"{' '.join(words[start : start + chance.randint(20, 80)])} {at}")
        for at, start in enumerate(starts)
    ]


def make_record() -> tuple[RagRecord, list[Claim], list[Claim]]:
    """The record, the claims of its response, and those of its ground truth."""
    prose = " ".join(" ".join(topics[name].split()) for name in sorted(topics)[:12])
    texts = [prose[at * _CHUNK_CHARACTERS :][:_CHUNK_CHARACTERS] for at in range(_N_CHUNKS)]
    said = [each for each in split_prose(" ".join(texts), "en") if 6 < len(each.split()) < 25]
    random.Random(0).shuffle(said)
    record = RagRecord(
        query="How does it work?",
        chunks=tuple(Chunk(id=str(at), text=text) for at, text in enumerate(texts)),
        response=" ".join(said[_RESPONSE]),
        ground_truth=" ".join(said[_GROUND_TRUTH]),
    )
    claims = [Claim(text=each) for each in said]
    return record, claims[_RESPONSE], claims[_GROUND_TRUTH]


if __name__ == "__main__":
    main()
