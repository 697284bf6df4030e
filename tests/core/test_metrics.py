"""What each metric says on examples small enough to work out by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import pytest

from claimspan.errors import ConfigError, LabelError
from claimspan.metrics import METRICS, Measurement, Undefined, compute_metrics, measure
from claimspan.metrics.compute import Labels, matrices_of_labels
from claimspan.metrics.truths import NO_CONTEXT_VERDICTS
from claimspan.verdicts import Label, Verdict, VerdictMatrices, VerdictMatrix

E: Final = Label.ENTAILED
N: Final = Label.NEUTRAL
C: Final = Label.CONTRADICTED
U: Final = None

# Five claims of the response, three of the ground truth, three chunks.
A: Final = [E, N, C, N, E]  # response claims by the ground truth: 1 and 5 are right
B: Final = [E, N, C]  # ground-truth claims by the response
CHUNKS: Final = [  # response claims by chunk
    [E, N, N],  # right, from chunk 1
    [E, E, N],  # wrong, from chunks 1 and 2
    [N, E, N],  # wrong, from chunk 2
    [N, N, C],  # wrong, from nowhere, and chunk 3 denies it
    [N, N, N],  # right, from nowhere
]
D: Final = [  # ground-truth claims by chunk: chunk 1 alone is relevant, claim 3 is not retrieved
    [E, N, N],
    [E, N, C],
    [N, N, N],
]
CONTEXT: Final = [E, N, E, C, E]  # response claims by all chunks: claim 5 is spread over two


OF_LABELS: Final = tuple(name for name in METRICS if name != "soft_alignment")
"""The metrics that need no probabilities."""


def metrics_of_the_example(undefined: Undefined = "omit") -> dict[str, float]:
    return compute_metrics(
        response_vs_ground_truth=A,
        ground_truth_vs_response=B,
        response_vs_chunks=CHUNKS,
        ground_truth_vs_chunks=D,
        response_vs_context=CONTEXT,
        undefined=undefined,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("precision", 2 / 5),  # claims 1 and 5 of 5
        ("recall", 1 / 3),  # ground-truth claim 1 of 3
        ("f1", 4 / 11),  # 2 * 2/5 * 1/3 / (2/5 + 1/3) = 4/15 / 11/15
        ("claim_recall", 2 / 3),  # chunk 1 holds ground-truth claims 1 and 2
        ("context_precision", 1 / 3),  # chunk 1 of 3
        ("context_utilization", 1 / 2),  # of the retrieved claims 1 and 2, the response says 1
        ("noise_sensitivity_in_relevant", 1 / 5),  # claim 2: a relevant chunk wins over another
        ("noise_sensitivity_in_irrelevant", 1 / 5),  # claim 3
        ("hallucination", 1 / 5),  # claim 4: wrong and from nowhere
        ("self_knowledge", 1 / 5),  # claim 5: right and from nowhere
        ("faithfulness", 3 / 5),  # claims 1, 2, 3
        ("groundedness", 3 / 5),  # claims 1, 3, 5
        ("contradicted_by_chunks", 1 / 5),  # claim 4
        ("contradicted_by_ground_truth", 1 / 5),  # claim 3
        ("correctness", 1 / 2),  # 1 entailed / (1 entailed + 1 contradicted)
        ("completeness", 1 / 3),  # 1 entailed of 3
        ("alignment", 2 / 5),  # 2 * 1/2 * 1/3 / (1/2 + 1/3) = 1/3 / 5/6
    ],
)
def test_each_metric_is_what_the_hand_works_out(name: str, value: float) -> None:
    assert math.isclose(metrics_of_the_example()[name], value, abs_tol=1e-12)


def test_metrics_come_in_the_order_of_their_names() -> None:
    assert tuple(metrics_of_the_example()) == OF_LABELS


def test_metrics_that_are_left_out_do_not_change_the_order() -> None:
    names = list(compute_metrics(response_vs_chunks=CHUNKS, ground_truth_vs_response=B))

    assert names == sorted(names, key=METRICS.index)
    assert len(names) == 6


def test_ragchecker_spellings_give_the_same_metrics() -> None:
    spelled = {E: "Entailment", N: "Neutral", C: "Contradiction"}

    def row(labels: Sequence[Label]) -> list[str]:
        return [spelled[label] for label in labels]

    metrics = compute_metrics(
        response_vs_ground_truth=row(A),
        ground_truth_vs_response=row(B),
        response_vs_chunks=[row(labels) for labels in CHUNKS],
        ground_truth_vs_chunks=[row(labels) for labels in D],
        response_vs_context=row(CONTEXT),
    )

    assert metrics == metrics_of_the_example()


def test_pinecone_metrics_are_those_of_its_documentation() -> None:
    # One fact entailed, one neutral, one contradicted: 1/2, 1/3, and 2 * 1/6 / (5/6) = 0.4.
    metrics = compute_metrics(ground_truth_vs_response=["entailed", "neutral", "contradicted"])

    assert metrics["correctness"] == 0.5
    assert metrics["completeness"] == 1 / 3
    assert math.isclose(metrics["alignment"], 0.4, abs_tol=1e-12)


def test_a_claim_that_one_chunk_denies_and_another_entails_is_not_contradicted() -> None:
    metrics = compute_metrics(response_vs_chunks=[[C, E], [C, N]])

    assert metrics["contradicted_by_chunks"] == 1 / 2


def test_groundedness_differs_from_faithfulness_where_support_is_spread_or_disputed() -> None:
    metrics = compute_metrics(
        response_vs_chunks=[[N, N], [E, C], [E, N]], response_vs_context=[E, C, E]
    )

    assert metrics["groundedness"] == 2 / 3  # claims 1 and 3
    assert metrics["faithfulness"] == 2 / 3  # claims 2 and 3


def test_harmonic_means_are_zero_where_one_side_is() -> None:
    metrics = compute_metrics(response_vs_ground_truth=[E], ground_truth_vs_response=[C])

    assert (metrics["f1"], metrics["alignment"]) == (0.0, 0.0)


# --- undefined ---

NEED_GROUND_TRUTH: Final = {
    name
    for name in METRICS
    if name not in ("faithfulness", "groundedness", "contradicted_by_chunks")
}
NEED_CHUNKS: Final = {
    "claim_recall",
    "context_precision",
    "context_utilization",
    "noise_sensitivity_in_relevant",
    "noise_sensitivity_in_irrelevant",
    "hallucination",
    "self_knowledge",
    "faithfulness",
    "groundedness",
    "contradicted_by_chunks",
}
OF_RESPONSE_CLAIMS: Final = {
    "precision",
    "f1",
    "noise_sensitivity_in_relevant",
    "noise_sensitivity_in_irrelevant",
    "hallucination",
    "self_knowledge",
    "faithfulness",
    "groundedness",
    "contradicted_by_chunks",
    "contradicted_by_ground_truth",
}


def because(reason: str, found: Measurement) -> set[str]:
    """The metrics that have no value for one reason."""
    return {name for name, given in found.undefined.items() if given == reason}


def test_without_ground_truth_two_metrics_are_left() -> None:
    found = measure(matrices_of_labels(response_vs_chunks=CHUNKS))

    assert found.metrics == {"faithfulness": 3 / 5, "contradicted_by_chunks": 1 / 5}
    assert because("no ground truth", found) == NEED_GROUND_TRUTH
    assert because(NO_CONTEXT_VERDICTS, found) == {"groundedness"}


def test_without_labels_of_chunks_the_reason_says_so() -> None:
    found = measure(matrices_of_labels(response_vs_ground_truth=A, ground_truth_vs_response=B))

    assert {"faithfulness", "hallucination"} <= because("chunks not checked", found)
    assert found.metrics["precision"] == 2 / 5


def test_without_response_claims_their_metrics_are_undefined() -> None:
    found = measure(
        matrices_of_labels(
            response_vs_ground_truth=[],
            ground_truth_vs_response=B,
            response_vs_chunks=[],
            ground_truth_vs_chunks=D,
            response_vs_context=[],
        )
    )

    assert because("no response claims", found) == OF_RESPONSE_CLAIMS
    assert set(found.metrics) == set(OF_LABELS) - OF_RESPONSE_CLAIMS


def test_without_ground_truth_claims_their_metrics_are_undefined() -> None:
    found = measure(
        matrices_of_labels(
            response_vs_ground_truth=A,
            ground_truth_vs_response=[],
            response_vs_chunks=CHUNKS,
            ground_truth_vs_chunks=[],
        )
    )

    assert because("no ground truth claims", found) == {
        "recall",
        "f1",
        "claim_recall",
        "context_precision",
        "context_utilization",
        "noise_sensitivity_in_relevant",
        "noise_sensitivity_in_irrelevant",
        "correctness",
        "completeness",
        "alignment",
        "soft_alignment",
    }


def test_without_chunks_the_metrics_about_chunks_are_undefined() -> None:
    found = measure(
        matrices_of_labels(
            response_vs_ground_truth=A,
            ground_truth_vs_response=B,
            response_vs_chunks=[[] for _ in A],
            ground_truth_vs_chunks=[[] for _ in B],
        )
    )

    assert because("no chunks", found) == NEED_CHUNKS
    assert set(found.metrics) == set(OF_LABELS) - NEED_CHUNKS


def test_nothing_retrieved_leaves_context_utilization_undefined() -> None:
    found = measure(
        matrices_of_labels(ground_truth_vs_response=[E, N], ground_truth_vs_chunks=[[N], [C]])
    )

    assert because("no ground truth claim was retrieved", found) == {"context_utilization"}
    assert found.metrics["claim_recall"] == 0.0


def test_a_response_that_takes_up_no_fact_has_no_correctness_and_an_alignment_of_0() -> None:
    found = measure(matrices_of_labels(ground_truth_vs_response=[N, N]))

    assert because("the response takes up no ground truth claim", found) == {"correctness"}
    assert found.metrics["completeness"] == 0.0
    assert found.metrics["alignment"] == 0.0


def test_labels_alone_give_no_soft_alignment() -> None:
    found = measure(matrices_of_labels(ground_truth_vs_response=[E, N]))

    assert because("the judge gives no probabilities", found) == {"soft_alignment"}


def test_a_label_among_probabilities_counts_as_certain() -> None:
    rows = [[Verdict(label=E)], [Verdict(label=N, entailed=0.25, neutral=0.5, contradicted=0.25)]]
    matrices = VerdictMatrices(ground_truth_vs_response=VerdictMatrix.of(rows))

    # E = 1.25, C = 0.25, N = 0.5: 2.5 / (2.5 + 0.5 + 0.5)
    assert measure(matrices).metrics["soft_alignment"] == pytest.approx(2.5 / 3.5)


def test_when_every_verdict_is_undecided_no_metric_has_a_value() -> None:
    found = measure(
        matrices_of_labels(
            response_vs_ground_truth=[U],
            ground_truth_vs_response=[U],
            response_vs_chunks=[[U]],
            ground_truth_vs_chunks=[[U]],
            response_vs_context=[U],
        )
    )

    assert found.metrics == {}
    undecided = because("every verdict is undecided", found)
    assert undecided >= set(METRICS) - {"context_utilization"}


@pytest.mark.parametrize("undefined", ["omit", "zero"])
def test_every_metric_has_either_a_value_or_a_reason(undefined: Undefined) -> None:
    found = measure(
        matrices_of_labels(response_vs_ground_truth=[], response_vs_chunks=[]), undefined=undefined
    )

    assert set(found.metrics) | set(found.undefined) == set(METRICS)
    assert set(found.metrics) & set(found.undefined) == set()


def test_zero_makes_an_empty_denominator_zero() -> None:
    found = measure(
        matrices_of_labels(
            response_vs_ground_truth=[],
            ground_truth_vs_response=[],
            response_vs_chunks=[],
            ground_truth_vs_chunks=[],
            response_vs_context=[],
        ),
        undefined="zero",
    )

    assert found.metrics == dict.fromkeys(OF_LABELS, 0.0)
    assert found.undefined == {"soft_alignment": "no ground truth claims"}


def test_zero_does_not_make_up_metrics_whose_labels_were_not_given() -> None:
    found = measure(matrices_of_labels(response_vs_chunks=CHUNKS), undefined="zero")

    assert set(found.metrics) == {"faithfulness", "contradicted_by_chunks"}
    assert because("no ground truth", found) == NEED_GROUND_TRUTH


def test_zero_changes_nothing_where_every_metric_is_defined() -> None:
    assert metrics_of_the_example("zero") == metrics_of_the_example("omit")


# --- undecided ---


def test_an_undecided_verdict_leaves_numerator_and_denominator() -> None:
    metrics = compute_metrics(
        response_vs_ground_truth=[E, U, N], ground_truth_vs_response=[E, U, U, N, C]
    )

    assert metrics["precision"] == 1 / 2
    assert metrics["recall"] == 1 / 3
    assert metrics["correctness"] == 1 / 2
    assert metrics["contradicted_by_ground_truth"] == 0.0


def test_an_entailed_cell_decides_an_or_although_another_is_undecided() -> None:
    # Claim 1 is faithful, claim 2 is undecided, claim 3 is not faithful: 1 of 2.
    metrics = compute_metrics(response_vs_chunks=[[E, U], [U, N], [N, N]])

    assert metrics["faithfulness"] == 1 / 2


def test_a_relevant_chunk_stays_relevant_although_another_cell_is_undecided() -> None:
    # Chunk 1 is relevant, chunk 2 undecided, chunk 3 irrelevant: 1 of 2.
    metrics = compute_metrics(ground_truth_vs_chunks=[[E, U, N], [U, N, N]])

    assert metrics["context_precision"] == 1 / 2


def test_a_right_claim_is_no_hallucination_whatever_the_undecided_chunk_says() -> None:
    # Claim 1 is right: no hallucination. Claim 2 is wrong and from nowhere. 1 of 2.
    metrics = compute_metrics(response_vs_ground_truth=[E, N], response_vs_chunks=[[U], [N]])

    assert metrics["hallucination"] == 1 / 2
    assert metrics["self_knowledge"] == 0.0  # claim 1 is undecided, claim 2 is not right: 0 of 1


def test_a_claim_from_a_relevant_chunk_is_no_irrelevant_noise_whatever_the_other_chunk_is() -> None:
    # The wrong claim stands in both chunks; chunk 1 is relevant, chunk 2 is undecided.
    metrics = compute_metrics(
        response_vs_ground_truth=[N],
        ground_truth_vs_response=[E],
        response_vs_chunks=[[E, E]],
        ground_truth_vs_chunks=[[E, U]],
    )

    assert metrics["noise_sensitivity_in_relevant"] == 1.0
    assert metrics["noise_sensitivity_in_irrelevant"] == 0.0


def test_a_wrong_claim_from_a_chunk_of_undecided_relevance_is_neither_kind_of_noise() -> None:
    found = measure(
        matrices_of_labels(
            response_vs_ground_truth=[N],
            ground_truth_vs_response=[E],
            response_vs_chunks=[[E]],
            ground_truth_vs_chunks=[[U]],
        )
    )

    assert {
        "noise_sensitivity_in_relevant",
        "noise_sensitivity_in_irrelevant",
    } <= because("every verdict is undecided", found)


def test_a_retrieved_claim_with_an_undecided_use_leaves_context_utilization() -> None:
    # All three are retrieved; the response says 1, maybe 2, not 3: 1 of 2.
    metrics = compute_metrics(
        ground_truth_vs_response=[E, U, N], ground_truth_vs_chunks=[[E], [E], [E]]
    )

    assert metrics["context_utilization"] == 1 / 2


def test_a_claim_that_may_not_have_been_retrieved_leaves_context_utilization() -> None:
    # Claim 1 is retrieved and not said; claim 2 is said, but nobody knows if retrieved: 0 of 1.
    metrics = compute_metrics(ground_truth_vs_response=[N, E], ground_truth_vs_chunks=[[E], [U]])

    assert metrics["context_utilization"] == 0.0


# --- refusals ---


def test_labels_that_cannot_be_used_are_an_error_of_the_tree_and_a_value_error() -> None:
    assert issubclass(LabelError, ConfigError)
    assert issubclass(LabelError, ValueError)


def test_another_way_to_treat_undefined_metrics_is_refused() -> None:
    with pytest.raises(ConfigError, match="undefined is 'nan': give 'omit' or 'zero'"):
        compute_metrics(response_vs_ground_truth=[E], undefined="nan")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - the refusal is what is tested


def test_a_label_of_another_type_is_refused() -> None:
    with pytest.raises(LabelError, match="a label is of type int: give a Label, a str or None"):
        compute_metrics(response_vs_ground_truth=[1])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType] - the refusal is what is tested


def test_a_label_in_no_known_spelling_is_refused() -> None:
    with pytest.raises(LabelError, match="'maybe' is not a label"):
        compute_metrics(response_vs_ground_truth=["Entailment", "maybe"])


def test_different_numbers_of_response_claims_are_refused() -> None:
    with pytest.raises(LabelError, match="2 and 1 rows of response claims"):
        compute_metrics(response_vs_ground_truth=[E, N], response_vs_chunks=[[E]])


def test_different_numbers_of_ground_truth_claims_are_refused() -> None:
    with pytest.raises(LabelError, match="1 and 2 rows of ground truth claims"):
        compute_metrics(ground_truth_vs_response=[E], ground_truth_vs_chunks=[[E], [N]])


@pytest.mark.parametrize(
    ("response_vs_chunks", "ground_truth_vs_chunks"),
    [
        ([[E, N], [E]], None),
        (None, [[E], []]),
        ([[E, N]], [[E]]),
    ],
)
def test_different_numbers_of_chunks_are_refused(
    response_vs_chunks: Sequence[Labels] | None, ground_truth_vs_chunks: Sequence[Labels] | None
) -> None:
    with pytest.raises(LabelError, match="every row needs the same number"):
        compute_metrics(
            response_vs_chunks=response_vs_chunks, ground_truth_vs_chunks=ground_truth_vs_chunks
        )
