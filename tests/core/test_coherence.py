"""Verdicts of one record agree where logic forces it; the weaker one gives way, and is counted."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimspan import Chunk, RagRecord, evaluate
from claimspan.evaluation.evaluate import MADE_TO_AGREE
from claimspan.evaluation.matrices import coherent
from claimspan.evaluation.selection import Selection
from claimspan.files.record_rows import Recorded
from claimspan.metrics.compute import matrices_of_labels
from claimspan.results.recorded_judge import evaluate_recorded
from claimspan.testing import ScriptedJudge
from claimspan.verdicts import Label, Verdict, VerdictMatrices, VerdictMatrix

E, N, C = Label.ENTAILED, Label.NEUTRAL, Label.CONTRADICTED


def verdict(label: Label, confidence: float | None = None) -> Verdict:
    if confidence is None:
        return Verdict(label=label)
    rest = (1 - confidence) / 2
    return Verdict(
        label=label,
        **{each.value: confidence if each is label else rest for each in Label},
    )


def column(*cells: Verdict) -> VerdictMatrix:
    return VerdictMatrix.of([[cell] for cell in cells], 1)


def opened(claim: float | None, truth: float | None, fact: float | None) -> VerdictMatrices:
    """One chunk that entails the fact, and a claim that the truth contradicts."""
    return VerdictMatrices(
        response_vs_chunks=column(verdict(E, claim)),
        response_vs_ground_truth=column(verdict(C, truth)),
        ground_truth_vs_response=column(verdict(C, truth)),
        ground_truth_vs_chunks=column(verdict(E, fact)),
    )


@pytest.mark.parametrize(
    ("confidences", "changed"),
    [
        ((0.6, 0.9, 0.9), "response_vs_chunks"),
        ((0.9, 0.6, 0.9), "response_vs_ground_truth"),
        ((0.9, 0.9, 0.6), "ground_truth_vs_chunks"),
        ((None, None, None), "response_vs_chunks"),  # nothing is weaker: the claim gives way
    ],
)
def test_of_three_verdicts_that_cannot_all_hold_the_weakest_gives_way(
    confidences: tuple[float | None, float | None, float | None], changed: str
) -> None:
    before = opened(*confidences)
    after, n = coherent(before)

    assert n == 1
    assert [name for name, matrix in after if matrix != getattr(before, name)] == [changed]


def test_a_claim_that_gives_way_is_contradicted_since_the_chunk_says_what_the_truth_says() -> None:
    after, _ = coherent(opened(0.6, 0.9, 0.9))

    assert after.response_vs_chunks is not None
    assert after.response_vs_chunks.labels == [[C]]


def test_a_chunk_that_holds_another_fact_may_support_what_the_truth_contradicts() -> None:
    # The truth has two facts; the claim denies the second, and the chunk holds the first alone.
    mixed = matrices_of_labels(
        response_vs_chunks=[[E]],
        response_vs_ground_truth=[C],
        ground_truth_vs_response=[N, C],
        ground_truth_vs_chunks=[[E], [N]],
    )

    assert coherent(mixed) == (mixed, 0)


def test_chunks_together_do_not_entail_what_one_contradicts_and_none_entails() -> None:
    def aqua(single: float, together: float) -> VerdictMatrices:
        return VerdictMatrices(
            response_vs_chunks=VerdictMatrix.of([[verdict(C, single), verdict(N, 0.9)]]),
            response_vs_context=column(verdict(E, together)),
        )

    weak_context, n = coherent(aqua(0.8, 0.7))
    weak_chunk, m = coherent(aqua(0.6, 0.7))

    assert (n, m) == (1, 1)
    assert weak_context.response_vs_context is not None
    assert weak_context.response_vs_context.labels == [[C]]
    assert weak_chunk.response_vs_chunks is not None
    assert weak_chunk.response_vs_chunks.labels == [[N, N]]


def test_chunks_that_contradict_each_other_are_left_as_they_are() -> None:
    torn = matrices_of_labels(response_vs_chunks=[[E, C]], response_vs_context=[E])

    assert coherent(torn) == (torn, 0)


CELLS: Final = st.one_of(
    st.none(),
    st.builds(verdict, st.sampled_from(Label), st.one_of(st.none(), st.floats(0.4, 1.0))),
)


@st.composite
def matrices(draw: st.DrawFn) -> VerdictMatrices:
    n_claims, n_facts, n_chunks = (draw(st.integers(1, 3)) for _ in range(3))

    def table(rows: int, width: int) -> VerdictMatrix:
        return VerdictMatrix.of([[draw(CELLS) for _ in range(width)] for _ in range(rows)], width)

    return VerdictMatrices(
        response_vs_chunks=table(n_claims, n_chunks),
        response_vs_ground_truth=table(n_claims, 1),
        ground_truth_vs_response=table(n_facts, 1),
        ground_truth_vs_chunks=table(n_facts, n_chunks),
        response_vs_context=table(n_claims, 1),
    )


@given(matrices())
def test_what_is_coherent_stays_so_and_every_change_is_counted(before: VerdictMatrices) -> None:
    after, n = coherent(before)

    assert (after == before) == (n == 0)
    assert coherent(after)[0] == after
    for name, matrix in after:
        assert matrix.shape == getattr(before, name).shape


@given(matrices())
def test_no_chunk_supports_what_a_sole_fact_that_it_holds_contradicts(
    before: VerdictMatrices,
) -> None:
    after, _ = coherent(before)
    rows, by_truth = after.response_vs_chunks, after.response_vs_ground_truth
    facts, together = after.ground_truth_vs_chunks, after.response_vs_context
    assert rows is not None
    assert by_truth is not None
    assert facts is not None
    assert together is not None
    if len(facts) == 1:
        held = [cell is E for cell in facts.labels[0]]
        for row, (by,) in zip(rows.labels, by_truth.labels, strict=True):
            assert by is not C or not any(
                cell is E and holds for cell, holds in zip(row, held, strict=True)
            )
    for row, (joint,) in zip(rows.labels, together.labels, strict=True):
        assert joint is not E or C not in row or E in row


RECORD: Final = RagRecord(
    query="q", chunks=(Chunk(id="a", text="chunk"),), response="claim.", ground_truth="fact."
)
SCRIPT: Final = {
    ("claim", "chunk"): "entailed",
    ("claim", "fact."): "contradicted",
    ("fact", "claim."): "contradicted",
    ("fact", "chunk"): "entailed",
}


def test_an_evaluation_notes_the_verdicts_that_gave_way() -> None:
    found = evaluate(RECORD, judge=ScriptedJudge(SCRIPT), metrics="all")

    assert found.notes == {MADE_TO_AGREE: 1}
    assert found.metrics["faithfulness"] == 0.0
    assert found.metrics["contradicted_by_chunks"] == 1.0


async def test_labels_that_others_recorded_are_taken_as_they_are() -> None:
    recorded = Recorded(
        response_claims=("claim",),
        gt_answer_claims=("fact",),
        retrieved2response=((E,),),
        answer2response=(C,),
        response2answer=(C,),
        retrieved2answer=((E,),),
    )
    found = await evaluate_recorded(RECORD, recorded, None, "omit", Selection.of("all"))

    assert found.notes == {}
    assert found.metrics["faithfulness"] == 1.0
