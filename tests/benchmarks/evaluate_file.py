"""Processor time per record and peak memory of `claimspan evaluate` over files of different sizes.

Run it with `python tests/benchmarks/evaluate_file.py`. Each size is a process of its own, whose
time and peak memory the operating system reports; `--checked` evaluates a file whose claims and
labels are all recorded, which leaves the time of reading and writing. The last lines are the ratios
between the largest and the smallest file: about 1 for both means that records are read, evaluated
and forgotten one by one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

N_CHUNKS = 5
SENTENCES = 12
"""Sentences of a chunk: about 200 words, as retrievers are set to by default."""


class Measured(NamedTuple):
    records: int
    seconds: float
    peak_mib: float


def record(number: int) -> dict[str, object]:
    """A record with five chunks of which one holds the answer; no two records are the same."""
    chunks = [
        " ".join(
            f"Part {number}-{place}-{i} of the bridge weighs {number + i} tonnes and was built "
            f"in {1800 + (number + i) % 200} by workers of the town."
            for i in range(SENTENCES)
        )
        for place in range(N_CHUNKS)
    ]
    return {
        "id": f"r{number}",
        "query": f"How heavy is part {number}-0-3 of the bridge?",
        "response": f"Part {number}-0-3 of the bridge weighs {number + 3} tonnes. It is red.",
        "ground_truth": f"It weighs {number + 3} tonnes.",
        "chunks": chunks,
    }


def checked() -> dict[str, object]:
    """Six claims and their labels, of RAGChecker's form."""
    return {
        "response_claims": ["The part weighs much."] * 4,
        "gt_answer_claims": ["It weighs much."] * 2,
        "answer2response": ["Entailment"] * 4,
        "response2answer": ["Entailment"] * 2,
        "retrieved2response": [["Neutral"] * N_CHUNKS] * 4,
        "retrieved2answer": [["Neutral"] * N_CHUNKS] * 2,
    }


def measure(folder: Path, n: int, suffix: str, *, is_checked: bool) -> Measured:
    """Evaluate a file of ``n`` records in a process of its own."""
    known = checked() if is_checked else {}
    path = folder / f"{n}.jsonl"
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{json.dumps({**record(number), **known})}\n" for number in range(n))
    output = folder / f"{n}.out.{suffix}"
    command = [sys.executable, "-m", "claimspan", "evaluate", str(path), "--judge", "lexical"]
    process = subprocess.Popen([*command, "-o", str(output), "--json"], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = usage.ru_utime + usage.ru_stime
    if status:
        raise SystemExit(f"claimspan evaluate ended with {status}")
    return Measured(n, seconds, usage.ru_maxrss / 1024)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 1_000])
    parser.add_argument("--format", choices=["jsonl", "json"], default="jsonl")
    parser.add_argument("--checked", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:

        def measured(n: int) -> Measured:
            return measure(Path(folder), n, options.format, is_checked=options.checked)

        # The first process of all also reads the interpreter and its packages from the disk.
        start = measured(1)
        print(f"start of a process  {start.seconds:8.2f} s            {start.peak_mib:8.1f} MiB")
        found = [measured(n) for n in options.sizes]
    for each in found:
        per_record = 1_000 * (each.seconds - start.seconds) / each.records
        speed = f"{each.seconds:8.2f} s  {per_record:6.1f} ms a record"
        print(f"{each.records:>7} records  {speed}  {each.peak_mib:8.1f} MiB")
    first, last = found[0], found[-1]
    ratio = last.peak_mib / first.peak_mib
    slope = (last.seconds - start.seconds) / (first.seconds - start.seconds)
    slope *= first.records / last.records
    print(f"time per record, {last.records} to {first.records} records: {slope:.2f}")
    print(f"peak memory, {last.records} to {first.records} records: {ratio:.2f}")


if __name__ == "__main__":
    main()
