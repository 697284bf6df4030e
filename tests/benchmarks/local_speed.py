"""What ``LocalJudge`` costs on one core: pairs a second, one whole record, and memory.

    python tests/benchmarks/local_speed.py

Texts are of the English prose in Python's own documentation. "Processor seconds" are those of this
process; on a machine that does other work as well the wall clock says little.
"""

from __future__ import annotations

import asyncio
import resource
import time
from itertools import cycle, islice
from pydoc_data.topics import topics
from typing import Final

from claimspan.judges import LexicalJudge
from claimspan.judges.local.cross_encoder import CrossEncoder
from claimspan.judges.local.judge import BUNDLED_MODEL, LocalJudge
from claimspan.text.sentences import split_prose
from claimspan.verdicts import Claim

_CHUNK_WORDS: Final = 105
"""About 150 word pieces of this prose."""

_N_CHUNKS, _N_CLAIMS, _N_PAIRS = 10, 15, 128


def main() -> None:
    """Print the three figures."""
    words = " ".join(topics[name] for name in sorted(topics)[:12]).split()
    chunks = [
        " ".join(words[at * _CHUNK_WORDS : (at + 1) * _CHUNK_WORDS]) for at in range(_N_CHUNKS)
    ]
    sentences = [s for s in split_prose(" ".join(chunks), "en") if 6 < len(s.split()) < 25]
    claims = [Claim(text=each) for each in islice(cycle(sentences), _N_CLAIMS)]
    before = memory()
    local = LocalJudge()
    for judge in (LexicalJudge(), local):
        asyncio.run(judge.check(claims[:1], chunks[:1]))
        began = time.process_time()
        asyncio.run(judge.check(claims, chunks))
        spent = time.process_time() - began
        print(f"{judge.name}: a record of {_N_CLAIMS} claims and {_N_CHUNKS} chunks: {spent:.2f} s")
    print(f"memory above the process without a judge: {memory() - before:.0f} MB")
    encoder = CrossEncoder(BUNDLED_MODEL)
    pairs = [(f"It is claim {at}.", " ".join(words[at : at + 66])) for at in range(_N_PAIRS)]
    encoder.logits(pairs[:8])
    began = time.process_time()
    encoder.logits(pairs)
    rate = _N_PAIRS / (time.process_time() - began)
    print(f"pairs of {encoder.mean_length(pairs):.0f} word pieces: {rate:.0f} a second")


def memory() -> float:
    """The most that this process has held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
