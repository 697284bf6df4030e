"""What a record costs by the metrics that are chosen: judge calls and tokens.

    python tests/benchmarks/chosen_metrics.py --samples FILE [--json]

A stub in this process answers by OpenAI's protocol and counts, as in ``judge_cost.py``. Each row is
a judge with an empty cache.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from results import Results, Table, show  # noqa: E402 - after the path

from claimspan import RagRecord, Usage  # noqa: E402 - after the path
from claimspan.evaluation.evaluate import aevaluate_many  # noqa: E402 - after the path
from claimspan.evaluation.selection import MetricsLike  # noqa: E402 - after the path
from claimspan.files.record_files import read_records  # noqa: E402 - after the path
from claimspan.judges import OpenAIJudge  # noqa: E402 - after the path
from claimspan.judges.criteria import Criterion  # noqa: E402 - after the path

from judge_server import TOKENIZER, JudgeServer, judge_server  # noqa: E402 - after the path

SAMPLES: Final = ROOT.parent / "shared" / "bench" / "samples20.json"

CRITERIA: Final = (
    Criterion("polite", "The answer is polite and does not blame the user."),
    Criterion("brief", "The answer has no sentence that the question does not need.", scale=5),
    Criterion("understood", "A reader who knows nothing of the field understands the answer."),
)
ABOUT_CHUNKS: Final = Criterion(
    "cited", "The answer tells for each fact which document it comes from.", with_chunks=True
)

CHOSEN: Final[Mapping[str, MetricsLike | None]] = {
    "None: the default": None,
    '"all"': "all",
    '["faithfulness"]': ["faithfulness"],
    '["precision", "recall", "f1"]': ["precision", "recall", "f1"],
    "the default and 3 criteria": ["default", *CRITERIA],
    "the default and 3 criteria, one about the chunks": ["default", *CRITERIA[:2], ABOUT_CHUNKS],
    "3 criteria alone": list(CRITERIA),
}


async def used(
    server: JudgeServer, records: Sequence[RagRecord], chosen: MetricsLike | None
) -> Usage:
    """What all records take together."""
    judge = OpenAIJudge("stub", base_url=server.url)
    found = await aevaluate_many(records, judge=judge, metrics=chosen, progress=False)
    assert [each.error for each in found] == [None] * len(records)
    return sum((each.usage for each in found), Usage())


async def table(server: JudgeServer, caption: str, records: Sequence[RagRecord]) -> Table:
    """A row for each choice."""
    rows: list[list[str]] = []
    for name, chosen in CHOSEN.items():
        usage = await used(server, records, chosen)
        tokens = (usage.calls, usage.input_tokens, usage.output_tokens)
        calls, sent, got = (each / len(records) for each in tokens)
        rows.append([name, f"{calls:.1f}", f"{sent:,.0f}", f"{got:,.0f}"])
    columns = ["metrics", "calls", "prompt tokens", "completion tokens"]
    return Table(caption=caption, columns=columns, rows=rows)


async def run(records: Sequence[RagRecord]) -> Results:
    """Both tables."""
    without = [each.model_copy(update={"ground_truth": None}) for each in records]
    with judge_server() as server:
        tables = [
            await table(server, "A record with a ground truth", records),
            await table(server, "A record without one", without),
        ]
    return Results(
        title="What is chosen, and what it costs",
        command="python tests/benchmarks/chosen_metrics.py --samples FILE",
        how="Judge calls and tokens of one record by the metrics that are chosen; a mean.",
        tables=tables,
        notes=[f"Tokens by {'cl100k' if TOKENIZER else 'our own estimate'}."],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="What a record costs by what is chosen.")
    parser.add_argument("--samples", type=Path, default=SAMPLES)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.samples.is_file():
        parser.error("give the file of the samples with --samples FILE")
    show(asyncio.run(run(read_records(options.samples))), as_json=options.json)


if __name__ == "__main__":
    main()
