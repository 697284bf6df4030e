"""What ``LexicalJudge`` costs: processor time of a whole evaluation, record after record.

    python tests/benchmarks/lexical_speed.py [--records samples20.json] [--json]

Each round is an interpreter of its own, in which every record comes as it would in a queue: with
texts that were never seen before. Then the same record comes again, as where users ask the same
question, so that its chunks were read already. Without a file the records are made of the prose in
Python's own documentation, as ``local_speed.py`` makes its one: a response and a ground truth with
eight and seven claims, and ten chunks of 800 characters.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from pydoc_data.topics import topics
from typing import Final, NamedTuple

from results import Bar, Results, Table, show

from claimspan import Chunk, RagRecord, aevaluate
from claimspan.files.record_files import read_records
from claimspan.judges import LexicalJudge
from claimspan.text.sentences import split_prose

BAR_MS: Final = 3.0
_CHUNK_CHARACTERS: Final = 800
_N_CHUNKS: Final = 10
_N_RECORDS: Final = 20
_RESPONSE: Final = slice(0, 8)
_GROUND_TRUTH: Final = slice(5, 12)


class Spent(NamedTuple):
    """Processor time of one round, in milliseconds a record."""

    first: float
    """Of records whose texts were never seen."""

    again: float
    """Of the same records, each directly after it."""

    cells: float
    """Claims against references, a record."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the rounds, and print what they found."""
    options = _parser().parse_args(arguments)
    records = _records(options.records, options.limit)
    if options.one_round:
        sys.stdout.write(json.dumps(asyncio.run(one_round(records))))
        return
    rounds = [_in_own_interpreter(options.records, options.limit) for _ in range(options.rounds)]
    show(_results(rounds, len(records), options.records), as_json=options.json)


async def one_round(records: Sequence[RagRecord]) -> Spent:
    """Evaluate all records once, each with a second time directly after it.

    Args:
        records: The records. Another one comes before them, which reads the tables of the judge.
    """
    judge = LexicalJudge()
    await aevaluate(made_records(_N_RECORDS + 1)[-1], judge=judge)
    first, again, cells = 0.0, 0.0, 0
    for record in records:
        began = time.process_time()
        evaluation = await aevaluate(record, judge=judge)
        between = time.process_time()
        await aevaluate(record, judge=judge)
        again += time.process_time() - between
        first += between - began
        matrices = (
            getattr(evaluation.matrices, name) for name in type(evaluation.matrices).model_fields
        )
        cells += sum(matrix.shape[0] * matrix.shape[1] for matrix in matrices if matrix)
    n = len(records)
    return Spent(1000 * first / n, 1000 * again / n, cells / n)


def made_records(n: int) -> list[RagRecord]:
    """Make records, no two of which have a text in common.

    Args:
        n: How many; Python's documentation has prose for some 60.
    """
    prose = " ".join(" ".join(topics[name].split()) for name in sorted(topics))
    pieces = [prose[at * _CHUNK_CHARACTERS :][:_CHUNK_CHARACTERS] for at in range(n * _N_CHUNKS)]
    return [_record(at, pieces[at * _N_CHUNKS :][:_N_CHUNKS]) for at in range(n)]


def _record(seed: int, texts: Sequence[str]) -> RagRecord:
    said = [each for each in split_prose(" ".join(texts), "en") if 6 < len(each.split()) < 25]
    random.Random(seed).shuffle(said)
    return RagRecord(
        query="How does it work?",
        chunks=tuple(Chunk(id=str(at), text=text) for at, text in enumerate(texts)),
        response=" ".join(said[_RESPONSE]),
        ground_truth=" ".join(said[_GROUND_TRUTH]),
    )


def _records(path: Path | None, limit: int) -> list[RagRecord]:
    return (read_records(path) if path else made_records(_N_RECORDS))[:limit]


def _in_own_interpreter(path: Path | None, limit: int) -> Spent:
    command = [sys.executable, __file__, "--one-round", "--limit", str(limit)]
    command += ["--records", str(path)] if path else []
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return Spent(*json.loads(done.stdout))


def _results(rounds: Sequence[Spent], n_records: int, path: Path | None) -> Results:
    first = [each.first for each in rounds]
    texts = path.name if path else "made of Python's documentation"
    return Results(
        title="The lexical judge: processor time of a record",
        command="python tests/benchmarks/lexical_speed.py",
        how=f"{n_records} records ({texts}), {rounds[0].cells:.0f} cells each on average, whole "
        f"evaluations on one event loop; {len(rounds)} rounds, each in an interpreter of its own. "
        "On a machine that does other work as well, processor time grows by up to a half.",
        tables=[
            Table(
                caption="CPU, ms a record: median (least to most)",
                columns=["texts", "ms a record"],
                rows=[
                    ["never seen before", _spread(first)],
                    ["those of the record before", _spread([each.again for each in rounds])],
                ],
            )
        ],
        bars=[
            Bar(
                promise=f"By words in at most {BAR_MS:g} ms a record, each text first seen",
                measured=f"{statistics.median(first):.1f} ms",
                is_kept=statistics.median(first) <= BAR_MS,
            )
        ],
    )


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=Path, help="records in any format that claimspan reads")
    parser.add_argument("--limit", type=int, default=_N_RECORDS, help="at most so many records")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--one-round", action="store_true", help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    main()
