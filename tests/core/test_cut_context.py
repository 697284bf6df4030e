"""A context of which a bound has kept a part: what that part does not hold is undecided."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from claimspan import Chunk, Evaluation, RagRecord, evaluate
from claimspan.evaluation.matrices import beyond_what_was_kept
from claimspan.files.record_files import read_records
from claimspan.files.record_rows import Recorded
from claimspan.metrics import CATALOGUE
from claimspan.metrics.compute import matrices_of_labels
from claimspan.metrics.truths import Truths, UndefinedMetricError
from claimspan.results.rag_results import RagResult
from claimspan.results.rows import digest
from claimspan.verdicts import Label

from scripted import ScriptedJudge

CUT = "1 of 2 chunks are kept"
SCRIPT = {
    ("It is long", "k"): Label.ENTAILED,
    ("It is old", "k"): Label.CONTRADICTED,
    ("It is long", "truth"): Label.ENTAILED,
}
"""The third claim, that it is blue, is in no text."""

RECORD = RagRecord(
    query="How is it?",
    response="It is long. It is old. It is blue.",
    chunks=(Chunk(id="k", text="k"),),
    context_cut=CUT,
)


def evaluated(record: RagRecord = RECORD) -> Evaluation:
    judge = ScriptedJudge(lambda claim, text: SCRIPT.get((claim, text), Label.NEUTRAL))
    return evaluate(record, judge=judge, metrics="all")


def test_what_no_kept_chunk_entails_is_undecided_for_the_bound_also_if_one_contradicts_it() -> None:
    found = evaluated()

    assert found.response_vs_chunks is not None
    assert found.response_vs_chunks.merged == [Label.ENTAILED, None, None]
    assert found.undefined["faithfulness"].startswith("2 of 3 verdicts are undecided")
    assert found.metrics["contradicted_by_chunks"] == 0.0
    assert found.undecided == {CUT: 2}
    assert found.undecided_claims == 2
    assert found.error is None


def test_no_claim_of_a_cut_context_makes_a_score_of_nought() -> None:
    found = evaluated(RECORD.model_copy(update={"response": "It is blue."}))

    assert "faithfulness" not in found.metrics
    assert found.judgement.label == "unknown"
    assert found.error is None


def test_a_fact_that_no_kept_chunk_holds_is_undecided() -> None:
    truth = "It is long. It is blue."
    found = evaluated(RECORD.model_copy(update={"ground_truth": truth}))

    assert found.ground_truth_vs_chunks is not None
    assert found.ground_truth_vs_chunks.merged == [Label.ENTAILED, None]
    assert found.metrics["claim_recall"] == 1.0
    assert found.context_coverage is not None
    assert found.context_coverage.combined_or is None
    assert found.context_coverage.per_chunk == (0.5,)


def test_a_whole_context_is_judged_as_ever() -> None:
    found = evaluated(RECORD.model_copy(update={"context_cut": None}))

    assert found.metrics["faithfulness"] == pytest.approx(1 / 3)
    assert found.undecided == {}


LABELS = [Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED]


@pytest.mark.parametrize("seed", range(200))
def test_whatever_is_decided_stays_so_if_the_rest_of_the_context_becomes_known(seed: int) -> None:
    drawn = random.Random(seed)

    def column(length: int) -> list[Label]:
        return drawn.choices(LABELS, k=length)

    claims, facts, chunks = 3, 2, 2
    tables = [[column(chunks + 1) for _ in range(n)] for n in (claims, facts)]
    texts = {
        "response_vs_ground_truth": column(claims),
        "ground_truth_vs_response": column(facts),
    }
    whole, kept = (
        matrices_of_labels(
            response_vs_chunks=[row[:width] for row in tables[0]],
            ground_truth_vs_chunks=[row[:width] for row in tables[1]],
            **texts,
        )
        for width in (chunks + 1, chunks)
    )
    cut, _ = beyond_what_was_kept(kept)

    for metric in CATALOGUE.values():
        if metric.counted is None or "response_vs_context" in metric.needs:
            continue
        try:
            part, truth = metric.counted(Truths(cut)), metric.counted(Truths(whole))
        except UndefinedMetricError:
            continue
        pairs = zip(part, truth, strict=True)
        assert all(known is None or known == true for known, true in pairs), metric.name


def test_a_record_is_the_same_one_with_a_part_of_its_context() -> None:
    assert digest(RECORD) == digest(RECORD.model_copy(update={"context_cut": None}))


def test_a_file_may_say_that_a_context_was_cut(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text(f"{RECORD.model_dump_json()}\n", "utf-8")

    assert read_records(file) == [RECORD]


def test_results_of_ragchecker_have_no_label_where_something_was_not_seen() -> None:
    result = RagResult.of(RECORD, Recorded(), evaluated())

    assert result.retrieved2response is None
    assert "faithfulness" not in result.metrics


def test_an_evaluation_of_a_cut_context_survives_json() -> None:
    found = evaluated()

    assert Evaluation.model_validate_json(found.model_dump_json()) == found
