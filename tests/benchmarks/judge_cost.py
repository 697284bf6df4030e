"""Cost of an evaluation with OpenAIJudge, compared with other tools: calls, tokens, time, CPU.

    python tests/benchmarks/judge_cost.py --samples FILE [--json]

The peers were measured on 20 samples of RAGChecker's meta-evaluation data, which do not come with
claimspan: give their file. A stub in a process of its own answers after 300 ms and counts, as for
the peers. Tokens are cl100k's where its tables are found (LlamaIndex ships them; or set
TIKTOKEN_CACHE_DIR), else our estimate, which is within 2 % of them on these samples.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Final, NamedTuple
from urllib.request import urlopen

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

from openai import AsyncOpenAI  # noqa: E402 - after the path
from results import Bar, Results, Table, show  # noqa: E402 - after the path

from claimspan import Evaluation, RagRecord  # noqa: E402 - after the path
from claimspan.evaluation.estimate import aestimate  # noqa: E402 - after the path
from claimspan.evaluation.evaluate import aevaluate, aevaluate_many  # noqa: E402 - after the path
from claimspan.files.record_files import read_records  # noqa: E402 - after the path
from claimspan.judges import OpenAIJudge  # noqa: E402 - after the path
from claimspan.judges.llm.judge import CHUNKS_PER_CALL  # noqa: E402 - after the path
from claimspan.judges.llm.prompts import CHECK  # noqa: E402 - after the path
from claimspan.judges.llm.replies import verdicts_schema  # noqa: E402 - after the path
from claimspan.judges.verdict_cache import VerdictCache  # noqa: E402 - after the path

from judge_server import TOKENIZER  # noqa: E402 - after the path

SAMPLES: Final = ROOT.parent / "shared" / "bench" / "samples20.json"
LATENCY: Final = 0.3

MOST_CALLS: Final = Fraction(1, 8)
MOST_TOKENS: Final = Fraction(1, 4)
"""Of RAGChecker's calls and prompt tokens for the 11 metrics."""

HOW: Final = (
    "Judge calls and tokens of one sample with the 11 metrics of RAGChecker, and seconds: for 20 "
    "samples evaluated together, a sample's share, and for one alone. A stub in a process of its "
    "own answers after {latency:g} ms and counts. The peers were measured once, on the same "
    "samples and against the same kind of stub, after 300 ms."
)


class Row(NamedTuple):
    """Cost of one sample with one tool; None where it was not measured."""

    tool: str
    calls: float
    prompt: float
    completion: float
    together: float | None
    """Seconds per sample, for 20 samples evaluated concurrently."""
    alone: float | None
    """Seconds for one sample alone."""


# Measured on the same samples and machine against the same kind of stub, 2026-11-21:
# ../shared/facts/peer-performance.md, section 2.
PEERS: Final = (
    Row("RAGChecker 0.1.9, default", 43.8, 24_661, 814, 2.7, 4.6),
    Row("RAGChecker, one claim a call", 164.2, 68_665, 691, 10.0, None),
    Row("RAGAS 0.4.3, nearest set of metrics", 69, 95_333, 25_080, 1.8, 7.6),
    Row("RAGAS, four metrics", 14, 21_097, 1_457, 0.43, 4.3),
    Row("DeepEval 4.3.1, five RAG metrics", 22, 21_162, 6_566, 1.0, 3.3),
    Row("TruLens 2.16.0, RAG triad", 20.1, 27_412, 984, 0.68, 5.2),
)


@contextmanager
def stub() -> Generator[str]:
    """Runs the stub in a process of its own; yields its base URL."""
    command = [sys.executable, str(ROOT / "tests" / "support" / "judge_server.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def control(url: str, path: str) -> dict[str, float]:
    """The counts of the stub; ``reset/LATENCY/MALFORMED_EVERY`` also resets them."""
    with urlopen(url.removesuffix("/v1") + path, timeout=10) as response:  # noqa: S310 - loopback
        counts: dict[str, float] = json.load(response)
    return counts


def judge_of(url: str, chunks_per_call: int | None, cache: VerdictCache | None) -> OpenAIJudge:
    """A judge with 32 calls in flight."""
    return OpenAIJudge(
        "gpt-4o-mini",
        api_key="none",
        base_url=url,
        chunks_per_call=chunks_per_call,
        concurrency=32,
        cache=cache,
    )


async def know_ground_truths(judge: OpenAIJudge, records: list[RagRecord]) -> None:
    """Puts the claims of every ground truth into the cache of the judge."""
    for record in records:
        await judge.extract_claims(str(record.ground_truth), question=record.query)


class Way(NamedTuple):
    """A way to check the claims of a sample."""

    name: str
    chunks_per_call: int | None
    is_known: bool
    """Whether the claims of the ground truth are in the cache."""


async def measure(url: str, records: list[RagRecord], way: Way, latency: float) -> Row:
    """One row: all samples together, then the first one alone, both with a cold cache."""
    judge = judge_of(url, way.chunks_per_call, None)
    if way.is_known:
        await know_ground_truths(judge, records)
    control(url, f"/reset/{latency}/0")
    started = time.perf_counter()
    evaluations = await aevaluate_many(records, judge=judge, concurrency=32, progress=False)
    together = (time.perf_counter() - started) / len(records)
    assert [e.error for e in evaluations] == [None] * len(records)
    counts = control(url, "/stats")
    alone = judge_of(url, way.chunks_per_call, None)
    if way.is_known:
        await know_ground_truths(alone, records[:1])
    started = time.perf_counter()
    await aevaluate(records[0], judge=alone)
    return Row(
        way.name,
        counts["calls"] / len(records),
        counts["prompt_tokens"] / len(records),
        counts["completion_tokens"] / len(records),
        together,
        time.perf_counter() - started,
    )


async def malformed(url: str, records: list[RagRecord]) -> str:
    """Measures the effect of 5 % malformed replies."""
    control(url, "/reset/0.05/0")
    good = await aevaluate_many(records, judge=judge_of(url, CHUNKS_PER_CALL, None), progress=False)
    control(url, "/reset/0.05/20")
    bad = await aevaluate_many(records, judge=judge_of(url, CHUNKS_PER_CALL, None), progress=False)
    counts = control(url, "/stats")
    return (
        f"Every 20th reply malformed: {counts['malformed']:.0f} of {counts['calls']:.0f}, "
        f"{moved(good, bad)} scores moved, "
        f"{sum(e.undecided_claims for e in bad)} claims undecided, "
        f"{sum(e.error is not None for e in bad)} evaluations failed with a reason."
    )


def moved(good: Sequence[Evaluation], bad: Sequence[Evaluation]) -> int:
    """Number of scores that differ."""
    pairs = zip(good, bad, strict=True)
    return sum(a.metrics[name] != b.metrics[name] for a, b in pairs for name in b.metrics)


async def cpu_of_a_call(url: str, records: list[RagRecord], rounds: int) -> float:
    """CPU milliseconds of this process per judge call, evaluation included."""
    control(url, "/reset/0/0")
    started = time.process_time()
    for _ in range(rounds):
        await aevaluate_many(records, judge=judge_of(url, CHUNKS_PER_CALL, None), progress=False)
    return (time.process_time() - started) * 1e3 / control(url, "/stats")["calls"]


async def cpu_of_a_bare_call(url: str, record: RagRecord, calls: int) -> float:
    """CPU milliseconds of this process per call of the openai package with a check's prompt."""
    asked = {
        "call": "123456789",
        "claims": {str(100 + i): record.response[:100] for i in range(15)},
        "references": {
            str(10 + i): chunk.text for i, chunk in enumerate(record.chunks[:CHUNKS_PER_CALL])
        },
    }
    async with AsyncOpenAI(api_key="none", base_url=url, max_retries=0) as client:

        async def call() -> None:
            await client.chat.completions.create(
                model="stub",
                messages=[
                    {"role": "system", "content": CHECK},
                    {"role": "user", "content": json.dumps(asked)},
                ],
                extra_body={
                    "response_format": {
                        "type": "json_schema",
                        "json_schema": {"name": "verdicts", "schema": verdicts_schema()},
                    }
                },
            )

        await call()
        started = time.process_time()
        for _ in range(calls // 20):
            await asyncio.gather(*(call() for _ in range(20)))
        return (time.process_time() - started) * 1e3 / calls


async def run(url: str, records: list[RagRecord], latency: float) -> Results:
    """All measurements."""
    await aevaluate(records[0], judge=judge_of(url, CHUNKS_PER_CALL, None))  # loads the client
    ours = [
        await measure(url, records, Way(name, chunks, known), latency)
        for name, chunks, known in (
            ("claimspan, default", CHUNKS_PER_CALL, False),
            ("claimspan, ground truth known", CHUNKS_PER_CALL, True),
            ("claimspan, all at once", None, False),
            ("claimspan, all at once, ground truth known", None, True),
            ("claimspan, careful: one text a call", 1, False),
        )
    ]
    return Results(
        title="An evaluation by a language model",
        command="python tests/benchmarks/judge_cost.py --samples FILE",
        how=HOW.format(latency=latency * 1e3),
        tables=[table(ours)],
        bars=bars(ours[0]),
        notes=[
            f"Tokens by {'cl100k' if TOKENIZER else 'our own estimate'}.",
            await estimated(url, records, ours[0]),
            await malformed(url, records),
            await processor_time(url, records),
        ],
    )


async def estimated(url: str, records: list[RagRecord], used: Row) -> str:
    """How far the estimate is from what was used."""
    estimate = await aestimate(records, judge_of(url, CHUNKS_PER_CALL, None))
    count = len(records)
    return (
        f"The estimate against the use: calls {estimate.calls / count / used.calls - 1:+.1%}, "
        f"prompt {estimate.input_tokens / count / used.prompt - 1:+.1%}, "
        f"completion {estimate.output_tokens / count / used.completion - 1:+.1%}."
    )


async def processor_time(url: str, records: list[RagRecord]) -> str:
    """What a judge call costs this process."""
    ours_ms = await cpu_of_a_call(url, records, rounds=5)
    bare_ms = await cpu_of_a_bare_call(url, records[0], calls=400)
    return (
        f"CPU of the process: {ours_ms:.2f} ms a judge call, evaluation included; "
        f"{ours_ms / bare_ms:.2f} x a bare call of the openai package ({bare_ms:.2f} ms)."
    )


def table(ours: list[Row]) -> Table:
    """One row a tool, beside RAGChecker."""
    its = PEERS[0]
    rows = [
        [
            row.tool,
            f"{row.calls:.1f}",
            f"{row.calls / its.calls:.2f}",
            f"{row.prompt:,.0f}",
            f"{row.prompt / its.prompt:.2f}",
            f"{row.completion:,.0f}",
            *("-" if s is None else f"{s:.2f}" for s in (row.together, row.alone)),
        ]
        for row in (*PEERS, *ours)
    ]
    columns = ["tool", "calls", "of RAGChecker's", "prompt tokens", "of RAGChecker's"]
    times = ["completion tokens", "seconds, 20 together", "seconds, one alone"]
    return Table(caption="A sample", columns=columns + times, rows=rows)


def bars(mine: Row) -> list[Bar]:
    its = PEERS[0]
    return [
        Bar(
            promise=f"Judge calls a sample: at most {MOST_CALLS} of RAGChecker's",
            measured=f"{mine.calls:.1f} of {its.calls}: {mine.calls / its.calls:.2f}",
            is_kept=mine.calls <= MOST_CALLS * its.calls,
        ),
        Bar(
            promise=f"Prompt tokens a sample: at most {MOST_TOKENS} of RAGChecker's",
            measured=f"{mine.prompt:,.0f} of {its.prompt:,.0f}: {mine.prompt / its.prompt:.2f}",
            is_kept=mine.prompt <= MOST_TOKENS * its.prompt,
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Cost of an evaluation, beside the peers.")
    parser.add_argument("--samples", type=Path, default=SAMPLES)
    parser.add_argument("--latency", type=float, default=LATENCY, help="of the stub, in seconds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.samples.is_file():
        parser.error("give the file of the samples with --samples FILE")
    with stub() as url:
        results = asyncio.run(run(url, read_records(options.samples), options.latency))
    show(results, as_json=options.json)


if __name__ == "__main__":
    main()
