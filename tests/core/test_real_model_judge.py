"""The judge's protocol on a real server: llama.cpp with a model of 135 million parameters.

The model is too small to be right. What it says has to keep to the protocol all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from claimspan import Evaluations, RagRecord
from claimspan.evaluation.evaluate import aevaluate_many
from claimspan.files.record_files import read_records
from claimspan.judges.llm.extraction import Extraction

from small_model import served_model, small_judge

SAMPLES: Final = Path(__file__).resolve().parents[3] / "shared" / "bench" / "samples20.json"
EACH: Final = 2
"""Samples with either prompt: the model takes ten seconds for one."""

SENTENCES: Final = re.compile(r"(?<=[.!?])\s+")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served_model() as at:
        yield at


def samples() -> list[RagRecord]:
    """The samples, short enough for a model that reads 200 tokens a second."""
    return [shortened(record) for record in read_samples()]


def read_samples() -> list[RagRecord]:
    if not SAMPLES.is_file():
        pytest.skip("shared data is absent: the 20 samples of the peers' measurements")
    return read_records(SAMPLES)


def shortened(record: RagRecord) -> RagRecord:
    chunk = record.chunks[0]
    return record.model_copy(
        update={
            "response": SENTENCES.split(record.response)[0][:80],
            "ground_truth": SENTENCES.split(str(record.ground_truth))[0][:80],
            "chunks": (chunk.model_copy(update={"text": chunk.text[:150]}),),
        }
    )


async def evaluate_all(
    records: list[RagRecord], url: str, extraction: Extraction, chunks_per_call: int = 10
) -> Evaluations:
    judge = small_judge(url, extraction, chunks_per_call)
    return await aevaluate_many(records, judge=judge, concurrency=2, max_claims=2)


@pytest.mark.parametrize(
    ("extraction", "first"), [("direct", 0), ("reasoned", EACH)], ids=["direct", "reasoned"]
)
async def test_samples_keep_to_the_protocol(url: str, extraction: Extraction, first: int) -> None:
    records = samples()[first : first + EACH]

    evaluations = await evaluate_all(records, url, extraction)

    assert [e.error for e in evaluations] == [None] * EACH
    assert [e.undecided for e in evaluations] == [{}] * EACH  # every id of every call has matched
    checked = [e for e in evaluations if e.response_claims and e.ground_truth_claims]
    assert len(checked) >= EACH / 2
    # Log probabilities are read. A record whose label tokens are not among the alternatives has its
    # labels alone, and says so; which ones, hangs on how the server batches calls when busy.
    read = [e for e in checked if e.score_mode in ("graded", "mixed")]
    assert len(read) > len(checked) / 2
    for record, evaluation in zip(records, evaluations, strict=True):
        assert all(str(c.sentence) in record.response for c in evaluation.response_claims)
        assert evaluation.undecided_claims == 0
        assert evaluation.usage.calls == 2 + bool(
            evaluation.response_claims or evaluation.ground_truth_claims
        )
        assert evaluation.usage.input_tokens > 300


@pytest.mark.parametrize("chunks_per_call", [10, 1], ids=["in the same call", "in one more call"])
async def test_a_real_server_labels_two_chunks_together(url: str, chunks_per_call: int) -> None:
    record = next(each for each in read_samples() if len(each.chunks) > 1)
    chunks = tuple(c.model_copy(update={"text": c.text[:150]}) for c in record.chunks[:2])
    short = shortened(record).model_copy(update={"chunks": chunks, "ground_truth": None})

    (evaluation,) = await evaluate_all([short], url, "direct", chunks_per_call)

    assert evaluation.error is None
    assert evaluation.undecided == {}
    assert evaluation.response_vs_context is not None
    assert evaluation.response_vs_context.shape == (len(evaluation.response_claims), 1)
    assert len(evaluation.response_claims) >= 1
    assert "groundedness" in evaluation.metrics
    assert evaluation.usage.calls == (2 if chunks_per_call > 1 else 4)
