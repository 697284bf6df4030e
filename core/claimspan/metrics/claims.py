"""The metrics of claim-level RAG evaluation, from labels alone.

Notation, after RAGChecker (arXiv 2408.08067, section 3.3 and appendix): with ``R`` the claims of
the response, ``G`` those of the ground truth and ``k`` chunks,

* ``A[i]``: the ground truth entails response claim i
* ``B[i]``: the response entails ground-truth claim i
* ``C[i][j]``: chunk j entails response claim i
* ``D[i][j]``: chunk j entails ground-truth claim i

A chunk is *relevant* when it entails any ground-truth claim. The noise metrics follow
ragchecker 0.1.9, where a claim supported by both kinds of chunk counts as relevant only.

Every cell may be undecided. The rules are Kleene's: an OR is true as soon as one side is, false
only when all are, undecided otherwise. What stays undecided leaves numerator and denominator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeVar

from claimspan.verdicts import Label

__all__ = ["METRICS", "Measurement", "Undefined", "compute_metrics", "measure"]

Undefined = Literal["omit", "zero"]
"""What to do with a metric that has no value: leave it out, or call it 0.0 as ragchecker does."""

Labels = Sequence[Label | str | None]
_T = TypeVar("_T")

Truth = bool | None
"""True, False, or None where undecided."""

METRICS: Final = (
    "precision",
    "recall",
    "f1",
    "claim_recall",
    "context_precision",
    "context_utilization",
    "noise_sensitivity_in_relevant",
    "noise_sensitivity_in_irrelevant",
    "hallucination",
    "self_knowledge",
    "faithfulness",
    "contradicted_by_chunks",
    "contradicted_by_ground_truth",
    "correctness",
    "completeness",
    "alignment",
)
"""Every metric: RAGChecker's eleven, the two shares of contradicted claims, Pinecone's three."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """Metrics, and why the others have no value."""

    metrics: Mapping[str, float]
    """Name to value, between 0 and 1."""

    undefined: Mapping[str, str] = field(default_factory=dict[str, str])
    """Name to reason, for each metric that has no value."""


def compute_metrics(
    *,
    response_vs_ground_truth: Labels | None = None,
    ground_truth_vs_response: Labels | None = None,
    response_vs_chunks: Sequence[Labels] | None = None,
    ground_truth_vs_chunks: Sequence[Labels] | None = None,
    undefined: Undefined = "omit",
) -> dict[str, float]:
    """Compute every metric that the given labels allow.

    Args:
        response_vs_ground_truth: Label of each response claim by the ground truth,
            shape ``(n_response_claims,)``.
        ground_truth_vs_response: Label of each ground-truth claim by the response,
            shape ``(n_ground_truth_claims,)``.
        response_vs_chunks: Label of each response claim by each chunk,
            shape ``(n_response_claims, n_chunks)``.
        ground_truth_vs_chunks: Label of each ground-truth claim by each chunk,
            shape ``(n_ground_truth_claims, n_chunks)``.
        undefined: ``"omit"`` leaves out a metric whose denominator is empty; ``"zero"`` makes it
            0.0, as ragchecker 0.1.9 does. A metric whose labels were not given is left out in
            both.

    Returns:
        Name to value between 0 and 1, in the order of ``METRICS``.

    Raises:
        ValueError: A label has an unknown spelling, or the shapes do not fit together.
    """
    return dict(
        measure(
            response_vs_ground_truth=response_vs_ground_truth,
            ground_truth_vs_response=ground_truth_vs_response,
            response_vs_chunks=response_vs_chunks,
            ground_truth_vs_chunks=ground_truth_vs_chunks,
            undefined=undefined,
        ).metrics
    )


def measure(
    *,
    response_vs_ground_truth: Labels | None = None,
    ground_truth_vs_response: Labels | None = None,
    response_vs_chunks: Sequence[Labels] | None = None,
    ground_truth_vs_chunks: Sequence[Labels] | None = None,
    undefined: Undefined = "omit",
) -> Measurement:
    """As ``compute_metrics``, with the reason for each metric that has no value."""
    if undefined not in ("omit", "zero"):
        raise ValueError(f"undefined is {undefined!r}: give 'omit' or 'zero'")
    labels = _LabelSet(
        a=_parse_row(response_vs_ground_truth),
        b=_parse_row(ground_truth_vs_response),
        c=_parse_matrix(response_vs_chunks),
        d=_parse_matrix(ground_truth_vs_chunks),
    )
    labels.check_shapes()
    metrics: dict[str, float] = {}
    reasons: dict[str, str] = {}
    for name in METRICS:
        try:
            metrics[name] = _FORMULAS[name](labels)
        except _NotGivenError as missing:
            reasons[name] = str(missing)
        except _EmptyError as empty:
            reasons[name] = str(empty)
            if undefined == "zero":
                metrics[name] = 0.0
    if undefined == "zero":
        reasons = {name: reason for name, reason in reasons.items() if name not in metrics}
    return Measurement(metrics, reasons)


# --- truth values -------------------------------------------------------------------------------


def _any(values: Iterable[Truth]) -> Truth:
    undecided = False
    for value in values:
        if value:
            return True
        undecided = undecided or value is None
    return None if undecided else False


def _not(value: Truth) -> Truth:
    return None if value is None else not value


def _and(left: Truth, right: Truth) -> Truth:
    return _not(_any((_not(left), _not(right))))


def _is(label: Label | None, wanted: Label) -> Truth:
    return None if label is None else label is wanted


def _share(values: Iterable[Truth]) -> float:
    """The share of true ones among the decided ones."""
    decided = [value for value in values if value is not None]
    if not decided:
        raise _EmptyError("every verdict is undecided")
    return sum(decided) / len(decided)


class _NotGivenError(Exception):
    """The labels that a metric rests on were not given: it is left out, whatever the mode."""


class _EmptyError(Exception):
    """A denominator is empty: left out or 0.0, as the mode says."""


# --- the labels of one record -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _LabelSet:
    """The four label matrices, and the truth values that the formulas are written in."""

    a: Sequence[Label | None] | None
    b: Sequence[Label | None] | None
    c: Sequence[Sequence[Label | None]] | None
    d: Sequence[Sequence[Label | None]] | None

    def check_shapes(self) -> None:
        for name, vector, matrix in (
            ("response", self.a, self.c),
            ("ground truth", self.b, self.d),
        ):
            if vector is not None and matrix is not None and len(vector) != len(matrix):
                raise ValueError(
                    f"{len(vector)} and {len(matrix)} rows of {name} claims: give as many in both"
                )
        widths = {len(row) for matrix in (self.c, self.d) for row in matrix or ()}
        if len(widths) > 1:
            raise ValueError(f"rows of {sorted(widths)} chunks: every row needs the same number")

    def entailed_by_ground_truth(self) -> list[Truth]:
        """A, shape ``(n_response_claims,)``."""
        return _entailed(_claims(_given(self.a, "no ground truth"), "response"))

    def entailed_by_response(self) -> list[Truth]:
        """B, shape ``(n_ground_truth_claims,)``."""
        return _entailed(_claims(_given(self.b, "no ground truth"), "ground truth"))

    def response_by_chunk(self) -> list[list[Truth]]:
        """C, shape ``(n_response_claims, n_chunks)``."""
        return _by_chunk(_given(self.c, "chunks not checked"), "response")

    def ground_truth_by_chunk(self) -> list[list[Truth]]:
        """D, shape ``(n_ground_truth_claims, n_chunks)``."""
        return _by_chunk(_given(self.d, "no ground truth"), "ground truth")

    def faithful(self) -> list[Truth]:
        """Whether any chunk supports each response claim."""
        return [_any(row) for row in self.response_by_chunk()]

    def retrieved(self) -> list[Truth]:
        """Whether any chunk holds each ground-truth claim."""
        return [_any(row) for row in self.ground_truth_by_chunk()]

    def relevant(self) -> list[Truth]:
        """Whether each chunk holds any ground-truth claim, shape ``(n_chunks,)``."""
        return [_any(column) for column in zip(*self.ground_truth_by_chunk(), strict=True)]


def _given(labels: _T | None, reason: str) -> _T:
    if labels is None:
        raise _NotGivenError(reason)
    return labels


def _claims(rows: Sequence[_T], of: str) -> Sequence[_T]:
    if not rows:
        raise _EmptyError(f"no {of} claims")
    return rows


def _entailed(labels: Sequence[Label | None]) -> list[Truth]:
    return [_is(label, Label.ENTAILED) for label in labels]


def _by_chunk(matrix: Sequence[Sequence[Label | None]], of: str) -> list[list[Truth]]:
    rows = [_entailed(row) for row in _claims(matrix, of)]
    if not rows[0]:
        raise _EmptyError("no chunks")
    return rows


def _parse(label: object) -> Label | None:
    if label is None:
        return None
    if not isinstance(label, str):
        raise ValueError(f"a label is a {type(label).__name__}: give a Label, a str or None")
    return Label.parse(label)


def _parse_row(labels: Labels | None) -> list[Label | None] | None:
    return None if labels is None else [_parse(label) for label in labels]


def _parse_matrix(matrix: Sequence[Labels] | None) -> list[list[Label | None]] | None:
    return None if matrix is None else [[_parse(label) for label in row] for row in matrix]


# --- the formulas -------------------------------------------------------------------------------


def _precision(labels: _LabelSet) -> float:
    return _share(labels.entailed_by_ground_truth())


def _recall(labels: _LabelSet) -> float:
    return _share(labels.entailed_by_response())


def _f1(labels: _LabelSet) -> float:
    return _harmonic_mean(_precision(labels), _recall(labels))


def _harmonic_mean(left: float, right: float) -> float:
    return 2 * left * right / (left + right) if left > 0 and right > 0 else 0.0


def _claim_recall(labels: _LabelSet) -> float:
    return _share(labels.retrieved())


def _context_precision(labels: _LabelSet) -> float:
    return _share(labels.relevant())


def _context_utilization(labels: _LabelSet) -> float:
    """Share of the retrieved ground-truth claims that the response uses."""
    found = labels.retrieved()
    pairs = zip(found, labels.entailed_by_response(), strict=True)
    used = [in_response for retrieved, in_response in pairs if retrieved]
    if not used and None not in found:
        raise _EmptyError("no ground truth claim was retrieved")
    return _share(used)


def _noise(labels: _LabelSet, *, relevant: bool) -> float:
    """Share of response claims that are wrong and come from (ir)relevant chunks."""
    wrong = [_not(correct) for correct in labels.entailed_by_ground_truth()]
    rows = labels.response_by_chunk()
    chunk_relevant = labels.relevant()
    shares: list[Truth] = []
    for row, is_wrong in zip(rows, wrong, strict=True):
        cells = list(zip(row, chunk_relevant, strict=True))
        source = _any(_and(entails, is_relevant) for entails, is_relevant in cells)
        if not relevant:
            elsewhere = _any(_and(entails, _not(is_relevant)) for entails, is_relevant in cells)
            source = _and(elsewhere, _not(source))
        shares.append(_and(source, is_wrong))
    return _share(shares)


def _noise_in_relevant(labels: _LabelSet) -> float:
    return _noise(labels, relevant=True)


def _noise_in_irrelevant(labels: _LabelSet) -> float:
    return _noise(labels, relevant=False)


def _hallucination(labels: _LabelSet) -> float:
    pairs = zip(labels.faithful(), labels.entailed_by_ground_truth(), strict=True)
    return _share(_and(_not(faithful), _not(correct)) for faithful, correct in pairs)


def _self_knowledge(labels: _LabelSet) -> float:
    pairs = zip(labels.faithful(), labels.entailed_by_ground_truth(), strict=True)
    return _share(_and(_not(faithful), correct) for faithful, correct in pairs)


def _faithfulness(labels: _LabelSet) -> float:
    return _share(labels.faithful())


def _contradicted_by_chunks(labels: _LabelSet) -> float:
    """Share of response claims that some chunk contradicts and none entails."""
    matrix = _claims(_given(labels.c, "chunks not checked"), "response")
    contradicted = [_any(_is(cell, Label.CONTRADICTED) for cell in row) for row in matrix]
    pairs = zip(contradicted, labels.faithful(), strict=True)
    return _share(_and(denied, _not(faithful)) for denied, faithful in pairs)


def _contradicted_by_ground_truth(labels: _LabelSet) -> float:
    row = _claims(_given(labels.a, "no ground truth"), "response")
    return _share(_is(label, Label.CONTRADICTED) for label in row)


def _correctness(labels: _LabelSet) -> float:
    """Pinecone: facts of the ground truth, entailed / (entailed + contradicted) by the response."""
    row = _claims(_given(labels.b, "no ground truth"), "ground truth")
    taken_up = [label for label in row if label is not Label.NEUTRAL]
    if not taken_up:
        raise _EmptyError("the response takes up no ground truth claim")
    return _share(_entailed(taken_up))


def _completeness(labels: _LabelSet) -> float:
    return _recall(labels)


def _alignment(labels: _LabelSet) -> float:
    return _harmonic_mean(_correctness(labels), _completeness(labels))


_FORMULAS: Final[Mapping[str, Callable[[_LabelSet], float]]] = {
    "precision": _precision,
    "recall": _recall,
    "f1": _f1,
    "claim_recall": _claim_recall,
    "context_precision": _context_precision,
    "context_utilization": _context_utilization,
    "noise_sensitivity_in_relevant": _noise_in_relevant,
    "noise_sensitivity_in_irrelevant": _noise_in_irrelevant,
    "hallucination": _hallucination,
    "self_knowledge": _self_knowledge,
    "faithfulness": _faithfulness,
    "contradicted_by_chunks": _contradicted_by_chunks,
    "contradicted_by_ground_truth": _contradicted_by_ground_truth,
    "correctness": _correctness,
    "completeness": _completeness,
    "alignment": _alignment,
}
