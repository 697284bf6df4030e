"""The claims of an evaluation with their verdicts, as spans and pages report them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from claimspan.evaluation.diagnosis import CLOSE_CALL
from claimspan.evaluation.result import Evaluation
from claimspan.records import Chunk
from claimspan.verdicts import Claim, Label, VerdictMatrix

__all__ = ["ReportClaim", "reported_claims"]

_T = TypeVar("_T")


class ReportClaim(Claim):
    """A claim with its verdicts."""

    label: Label | None = None
    """A response claim against all chunks, or a ground-truth claim against the response.

    None if the judge was undecided.
    """

    ground_truth_label: Label | None = None
    """A response claim against the ground truth; None if undecided or without ground truth."""

    confidence: float | None = None
    """Probability of ``label``, 0 to 1; None if the judge gave only labels."""

    entailed: float | None = None
    """Highest probability that a chunk entails a response claim, or that the response entails a
    ground-truth claim; None if the judge gave only labels."""

    context_label: Label | None = None
    """A response claim against all chunks read together; None if it is as ``label``, if the
    judge was undecided, and if it reads each chunk on its own."""

    supported_by: tuple[str, ...] = ()
    contradicted_by: tuple[str, ...] = ()

    @property
    def is_close_call(self) -> bool:
        """Whether the judge is so unsure of the label that a person should look."""
        return self.confidence is not None and self.confidence < CLOSE_CALL


def reported_claims(
    chunks: Sequence[Chunk], evaluation: Evaluation
) -> tuple[tuple[ReportClaim, ...], tuple[ReportClaim, ...]]:
    """Return the claims of the response, and those of the ground truth."""
    response = _claims(
        chunks,
        evaluation.response_claims,
        evaluation.response_vs_chunks,
        evaluation.response_vs_chunks,
        truths=_merged(evaluation.response_vs_ground_truth),
        together=_merged(evaluation.response_vs_context),
    )
    return response, _claims(
        chunks,
        evaluation.ground_truth_claims,
        evaluation.ground_truth_vs_response,
        evaluation.ground_truth_vs_chunks,
    )


def _claims(
    chunks: Sequence[Chunk],
    claims: Sequence[Claim],
    judged: VerdictMatrix | None,
    against_chunks: VerdictMatrix | None,
    truths: Sequence[Label | None] = (),
    together: Sequence[Label | None] = (),
) -> tuple[ReportClaim, ...]:
    """The claims of one text: with the labels of one matrix, and their chunks by another."""
    labels = _merged(judged)
    # How sure each label is, and how probable it is that the claim is entailed.
    confidences, entailments = (judged.confidences, judged.entailments) if judged else ((), ())
    return tuple(
        ReportClaim(
            text=claim.text,
            # The sentence that the claim came from, unless it is the claim.
            sentence=None if claim.sentence == claim.text else claim.sentence or None,
            label=(label := _at(labels, index)),
            ground_truth_label=_at(truths, index),
            confidence=_at(confidences, index),
            entailed=_at(entailments, index),
            context_label=None if (joint := _at(together, index)) is label else joint,
            supported_by=_ids(chunks, against_chunks, index, Label.ENTAILED),
            contradicted_by=_ids(chunks, against_chunks, index, Label.CONTRADICTED),
        )
        for index, claim in enumerate(claims)
    )


def _ids(
    chunks: Sequence[Chunk], matrix: VerdictMatrix | None, index: int, wanted: Label
) -> tuple[str, ...]:
    if matrix is None:
        return ()
    # Strict: labels that were moved by one chunk would point at the wrong text.
    pairs = zip(chunks, matrix[index], strict=True)
    return tuple(chunk.id for chunk, cell in pairs if cell and cell.label is wanted)


def _merged(matrix: VerdictMatrix | None) -> Sequence[Label | None]:
    return [] if matrix is None else matrix.merged


def _at(values: Sequence[_T | None], index: int) -> _T | None:
    # Without a matrix the list is empty: nothing was checked, as if it were undecided.
    return values[index] if index < len(values) else None
