"""Labels in every spelling, verdicts as distributions, matrices that keep their shape."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrices, VerdictMatrix

E = Verdict(label=Label.ENTAILED)
N = Verdict(label=Label.NEUTRAL)
C = Verdict(label=Label.CONTRADICTED)


# --- labels ---


@pytest.mark.parametrize(
    ("spelling", "label"),
    [
        ("entailed", Label.ENTAILED),
        ("Entailment", Label.ENTAILED),
        ("neutral", Label.NEUTRAL),
        ("Neutral", Label.NEUTRAL),
        ("contradicted", Label.CONTRADICTED),
        ("Contradiction", Label.CONTRADICTED),
        ("  CONTRADICTION\n", Label.CONTRADICTED),
    ],
)
def test_a_label_is_read_in_every_spelling_in_use(spelling: str, label: Label) -> None:
    assert Label.parse(spelling) is label


@pytest.mark.parametrize("label", Label)
def test_a_label_is_read_from_what_it_is_written_as(label: Label) -> None:
    assert Label.parse(str(label)) is label


@pytest.mark.parametrize("spelling", ["", "entail", "not an Entailment", "yes"])
def test_an_unknown_spelling_is_refused_and_the_known_ones_are_named(spelling: str) -> None:
    with pytest.raises(ValueError, match="entailed, entailment, neutral") as caught:
        Label.parse(spelling)

    assert repr(spelling) in str(caught.value)


# --- claims ---


def test_a_claim_without_text_is_refused() -> None:
    with pytest.raises(ValidationError):
        Claim(text="")


def test_a_claim_cannot_be_changed() -> None:
    claim = Claim(text="The sky is blue.")

    with pytest.raises(ValidationError):
        claim.text = "The sky is green."  # pyright: ignore[reportAttributeAccessIssue] - the refusal is what is tested


# --- verdicts ---


def test_a_verdict_may_have_a_label_alone() -> None:
    assert (E.entailed, E.neutral, E.contradicted) == (None, None, None)


def test_a_verdict_keeps_the_probabilities_that_it_was_given() -> None:
    verdict = Verdict(label=Label.ENTAILED, entailed=0.7, neutral=0.2, contradicted=0.1)

    assert (verdict.entailed, verdict.neutral, verdict.contradicted) == (0.7, 0.2, 0.1)


def test_probabilities_may_be_off_by_a_rounding_error() -> None:
    verdict = Verdict(label=Label.NEUTRAL, entailed=1 / 3, neutral=0.333333, contradicted=0.333334)

    assert verdict.neutral == 0.333333


@pytest.mark.parametrize(
    ("entailed", "neutral", "contradicted"),
    [
        (0.5, 0.2, 0.2),
        (0.5, 0.5, 0.5),
        (0.0, 0.0, 0.0),
        (1.0, None, None),
        (0.5, 0.5, None),
        (1.2, -0.1, -0.1),
        (float("nan"), 0.5, 0.5),
    ],
)
def test_probabilities_that_are_no_distribution_are_refused(
    entailed: float | None, neutral: float | None, contradicted: float | None
) -> None:
    with pytest.raises(ValidationError):
        Verdict(label=Label.ENTAILED, entailed=entailed, neutral=neutral, contradicted=contradicted)


def test_a_verdict_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        E.label = Label.NEUTRAL  # pyright: ignore[reportAttributeAccessIssue] - the refusal is what is tested


# --- matrices ---


def test_a_matrix_has_one_row_a_claim_and_one_cell_a_reference() -> None:
    matrix = VerdictMatrix.of([[E, N, C], [N, None, E]])

    assert matrix.shape == (2, 3)
    assert len(matrix) == 2
    assert matrix[0] == (E, N, C)
    assert matrix[1][1] is None
    assert matrix[:1] == ((E, N, C),)
    assert list(matrix.verdicts()) == [E, N, C, N, None, E]


def test_claims_without_references_keep_their_number() -> None:
    matrix = VerdictMatrix.of([[], []])

    assert matrix.shape == (2, 0)
    assert matrix.labels == [[], []]


def test_references_without_claims_keep_their_number() -> None:
    assert VerdictMatrix.of([], n_references=3).shape == (0, 3)
    assert VerdictMatrix.of([]).shape == (0, 0)


def test_labels_are_the_matrix_without_probabilities() -> None:
    likely = Verdict(label=Label.ENTAILED, entailed=0.8, neutral=0.2, contradicted=0.0)

    assert VerdictMatrix.of([[likely, None]]).labels == [[Label.ENTAILED, None]]


@pytest.mark.parametrize(
    ("row", "merged"),
    [
        ([C, None, N, E], Label.ENTAILED),
        ([C, None, N], None),
        ([N, C, N], Label.CONTRADICTED),
        ([N, N], Label.NEUTRAL),
        ([], Label.NEUTRAL),
    ],
)
def test_a_claim_merges_as_entailed_then_undecided_then_contradicted_then_neutral(
    row: list[Verdict | None], merged: Label | None
) -> None:
    assert VerdictMatrix.of([row]).merged == [merged]


def test_every_claim_is_merged_on_its_own() -> None:
    matrix = VerdictMatrix.of([[N, E], [C, N], [None, N]])

    assert matrix.merged == [Label.ENTAILED, Label.CONTRADICTED, None]


def test_ragged_rows_are_refused() -> None:
    with pytest.raises(ValidationError, match="every row needs exactly 2 cells"):
        VerdictMatrix.of([[E, N], [E]])


def test_a_number_of_references_that_the_rows_do_not_have_is_refused() -> None:
    with pytest.raises(ValidationError, match="every row needs exactly 3 cells"):
        VerdictMatrix.of([[E, N]], n_references=3)


def test_a_matrix_cannot_be_changed() -> None:
    matrix = VerdictMatrix.of([[E]])

    with pytest.raises(ValidationError):
        matrix.rows = ()  # pyright: ignore[reportAttributeAccessIssue] - the refusal is what is tested


@pytest.mark.parametrize(
    "matrix",
    [
        VerdictMatrix.of([[E, None], [C, N]]),
        VerdictMatrix.of([[Verdict(label=Label.NEUTRAL, entailed=0, neutral=1, contradicted=0)]]),
        VerdictMatrix.of([], n_references=2),
        VerdictMatrix.of([[], []]),
    ],
)
def test_a_matrix_is_the_same_after_json(matrix: VerdictMatrix) -> None:
    again = VerdictMatrix.model_validate_json(matrix.model_dump_json())

    assert again == matrix
    assert again.shape == matrix.shape


# --- the four matrices of a record ---


def test_matrices_of_one_record_count_each_undecided_claim_once() -> None:
    matrices = VerdictMatrices(
        response_vs_chunks=VerdictMatrix.of([[E, None], [N, C], [None, None]]),
        response_vs_ground_truth=VerdictMatrix.of([[None], [E], [E]]),
        ground_truth_vs_response=VerdictMatrix.of([[None]]),
    )

    assert matrices.undecided_claims == 3


def test_matrices_of_one_record_know_their_score_mode() -> None:
    graded = Verdict(label=Label.NEUTRAL, entailed=0, neutral=1, contradicted=0)
    row, column = VerdictMatrix.of([[graded]]), VerdictMatrix.of([[E]])

    assert VerdictMatrices().score_mode is None
    assert VerdictMatrices(response_vs_chunks=row).score_mode == "graded"
    assert VerdictMatrices(ground_truth_vs_response=column).score_mode == "label"
    mixed = VerdictMatrices(response_vs_chunks=row, ground_truth_vs_response=column)
    assert mixed.score_mode == "mixed"


@pytest.mark.parametrize(
    ("matrices", "message"),
    [
        (
            {"response_vs_chunks": [[E], [E]], "response_vs_ground_truth": [[E]]},
            "1 and 2 rows of response claims",
        ),
        (
            {"ground_truth_vs_chunks": [[E]], "ground_truth_vs_response": [[E], [E]]},
            "2 and 1 rows of ground truth claims",
        ),
        (
            {"response_vs_chunks": [[E, N]], "ground_truth_vs_chunks": [[E]]},
            r"rows of \[1, 2\] chunks",
        ),
        ({"response_vs_ground_truth": [[E, N]]}, "one verdict against one text"),
    ],
)
def test_matrices_that_cannot_be_of_one_record_are_refused(
    matrices: dict[str, list[list[Verdict | None]]], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        VerdictMatrices(**{name: VerdictMatrix.of(rows) for name, rows in matrices.items()})
