"""What ``LocalJudge`` costs on one core: one whole record, pairs a second, and memory.

    python tests/benchmarks/local_speed.py

The record has ten chunks of 800 characters from the English prose in Python's own documentation.
The response and the ground truth are eight and seven of their sentences, three of them in both.
"Processor seconds" are those of this process. On a machine that does other work as well they grow
too; the pairs and word pieces that the model reads are the same everywhere.
"""

from __future__ import annotations

import asyncio
import random
import resource
import time
from collections.abc import Sequence
from pydoc_data.topics import topics
from typing import Final

from claimspan import Chunk, RagRecord
from claimspan.evaluation.matrices import judge_matrices
from claimspan.judges import LexicalJudge
from claimspan.judges.local.background import Stop, never
from claimspan.judges.local.cross_encoder import CrossEncoder, Reading, TextPair
from claimspan.judges.local.judge import BUNDLED_MODEL, LoadedModel, LocalJudge
from claimspan.text.sentences import split_prose
from claimspan.verdicts import Claim

_CHUNK_CHARACTERS, _N_CHUNKS, _N_PAIRS = 800, 10, 128
_RESPONSE: Final = slice(0, 8)
_GROUND_TRUTH: Final = slice(5, 12)


class CountingEncoder(CrossEncoder):
    """Counts the pairs and the word pieces that it reads."""

    n_pairs = 0
    n_pieces = 0.0

    def read(self, pairs: Sequence[TextPair], stop: Stop = never) -> Reading:
        """Read the pairs as the model does."""
        distinct = set(pairs)
        self.n_pairs += len(distinct)
        self.n_pieces += self.mean_length([*distinct]) * len(distinct)
        return super().read(pairs, stop)


class CountingJudge(LocalJudge):
    """Counts what its model reads."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = CountingEncoder(BUNDLED_MODEL)

    def _load(self) -> LoadedModel:
        return super()._load()._replace(encoder=self.encoder)


def main() -> None:
    """Print the figures."""
    before = memory()
    record, response, ground_truth = make_record()
    n_cells = (len(response) + len(ground_truth)) * (_N_CHUNKS + 1)
    for judge in (LexicalJudge(), LocalJudge()):
        asyncio.run(judge.check(response[:1], [record.response]))
        began = time.process_time()
        asyncio.run(judge_matrices(judge, record, response, ground_truth))
        spent = time.process_time() - began
        print(f"{judge.name}: {n_cells} cells and the context of {len(response)}: {spent:.2f} s")
    print(f"memory above the process without a judge: {memory() - before:.0f} MB")
    counting = CountingJudge()
    asyncio.run(judge_matrices(counting, record, response, ground_truth))
    print(f"read: {counting.encoder.n_pairs} pairs, {counting.encoder.n_pieces:.0f} word pieces")
    print(f"pairs of 124 word pieces: {pairs_a_second():.0f} a second")


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


def pairs_a_second() -> float:
    """Pairs of 124 word pieces that the model reads in a second of one core."""
    words = " ".join(topics[name] for name in sorted(topics)[:12]).split()
    encoder = CrossEncoder(BUNDLED_MODEL)
    pairs = [(f"It is claim {at}.", " ".join(words[at : at + 66])) for at in range(_N_PAIRS)]
    encoder.logits(pairs[:8])
    began = time.process_time()
    encoder.logits(pairs)
    return _N_PAIRS / (time.process_time() - began)


def memory() -> float:
    """The most that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
