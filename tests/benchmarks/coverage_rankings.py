"""How well metrics rank combinations of chunks of CLAPnq, by either judge that needs no key.

    python tests/benchmarks/coverage_rankings.py [--judge JUDGE] [--items N]

Two data sets. ``passages``: the text is the passage itself, so that the chunk that holds a fact is
the one that its sentence stands in. ``answers``: the text is the answer that a person wrote, and
the gold is the sentences that this person marked in the passage. Golden chunks are those of the
passage, noisy ones the nearest of the other passages. Nothing was tuned on either.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from claimspan.judges import default_judge
from claimspan_bench.context_coverage import (
    CoverageItem,
    build_items,
    judge_items,
    summarize,
)
from claimspan_bench.context_coverage.command import as_text

from clapnq_documents import answered_items, passages


def measure(name: str, items: Sequence[CoverageItem], judge: str) -> str:
    """The tables of one data set, with the time that they took."""
    started = time.perf_counter()
    judged = judge_items(items, default_judge(judge), concurrency=1)
    seconds = time.perf_counter() - started
    result = summarize(items, judged)
    total = time.perf_counter() - started
    return f"{name}: {seconds:.1f} s of judging, {total:.1f} s in all\n{as_text(result)}\n"


def main() -> None:
    """Measures both data sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judge", default="lexical", help="lexical or local")
    parser.add_argument(
        "--items", type=int, default=300, help="questions of CLAPnq, from the first"
    )
    given = parser.parse_args()
    print(measure("passages", build_items(passages(given.items)).items, given.judge))
    print(measure("answers", answered_items(given.items), given.judge))


if __name__ == "__main__":
    main()
