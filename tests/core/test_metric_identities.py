"""What holds for the metrics of every record, whatever its labels are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Final, NamedTuple, TypeVar

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from claimspan.metrics import METRICS, Undefined, compute_metrics, measure
from claimspan.verdicts import Label, Verdict, VerdictMatrices, VerdictMatrix

T = TypeVar("T")
Row = list[Label | None]

TOLERANCE: Final = 1e-9
SIZES: Final = st.integers(min_value=1, max_value=5)
SIZES_OR_NONE: Final = st.integers(min_value=0, max_value=4)
DECIDED: Final = st.sampled_from(Label)
ANY_CELL: Final = st.one_of(st.none(), DECIDED)

# A slow machine is no broken promise.


class Case(NamedTuple):
    """The labels of one record."""

    a: Row
    b: Row
    c: list[Row]
    d: list[Row]

    def metrics(self, undefined: Undefined = "omit") -> dict[str, float]:
        return compute_metrics(
            response_vs_ground_truth=self.a,
            ground_truth_vs_response=self.b,
            response_vs_chunks=self.c,
            ground_truth_vs_chunks=self.d,
            undefined=undefined,
        )

    def with_first_cell(self, matrix: str, label: Label | None) -> Case:
        """The same labels but for the first cell of one matrix."""
        match matrix:
            case "a":
                return self._replace(a=[label, *self.a[1:]])
            case "b":
                return self._replace(b=[label, *self.b[1:]])
            case "c":
                return self._replace(c=[[label, *self.c[0][1:]], *self.c[1:]])
            case _:
                return self._replace(d=[[label, *self.d[0][1:]], *self.d[1:]])


@st.composite
def cases(
    draw: st.DrawFn, cells: st.SearchStrategy[Label | None], sizes: st.SearchStrategy[int]
) -> Case:
    n_r, n_g, k = draw(sizes), draw(sizes), draw(sizes)

    def row(length: int) -> Row:
        return draw(st.lists(cells, min_size=length, max_size=length))

    return Case(row(n_r), row(n_g), [row(k) for _ in range(n_r)], [row(k) for _ in range(n_g)])


DECIDED_CASES: Final = cases(DECIDED, SIZES)
ALL_CASES: Final = cases(ANY_CELL, SIZES_OR_NONE)


def picked(items: Sequence[T], order: Sequence[int]) -> list[T]:
    return [items[index] for index in order]


@given(DECIDED_CASES)
def test_every_claim_is_right_or_noise_or_hallucinated(case: Case) -> None:
    metrics = case.metrics()

    total = (
        metrics["precision"]
        + metrics["noise_sensitivity_in_relevant"]
        + metrics["noise_sensitivity_in_irrelevant"]
        + metrics["hallucination"]
    )

    assert math.isclose(total, 1.0, abs_tol=TOLERANCE)


@given(DECIDED_CASES)
def test_every_claim_is_faithful_or_hallucinated_or_known(case: Case) -> None:
    metrics = case.metrics()

    total = metrics["faithfulness"] + metrics["hallucination"] + metrics["self_knowledge"]

    assert math.isclose(total, 1.0, abs_tol=TOLERANCE)


@given(DECIDED_CASES)
def test_only_ratios_over_a_selection_can_be_undefined_when_all_is_decided(case: Case) -> None:
    missing = set(METRICS) - set(case.metrics())

    assert missing <= {"context_utilization", "correctness", "groundedness", "soft_alignment"}


@given(ALL_CASES)
def test_every_metric_is_between_zero_and_one(case: Case) -> None:
    outside = {name: value for name, value in case.metrics().items() if not 0.0 <= value <= 1.0}

    assert outside == {}


@given(ALL_CASES)
def test_zero_and_omit_agree_where_a_metric_is_defined(case: Case) -> None:
    omitted = case.metrics("omit")
    zeroed = case.metrics("zero")

    # The labels have no probabilities and no column of all chunks: two metrics are not asked for.
    asked = [name for name in METRICS if name not in ("groundedness", "soft_alignment")]
    # A score that most of its labels are missing for would be a false one in either mode.
    left = {name for name in asked if name not in zeroed}
    assert not left or None in [*case.a, *case.b, *chain(*case.c, *case.d)]
    assert left.isdisjoint(omitted)
    assert zeroed == {name: omitted.get(name, 0.0) for name in asked if name not in left}


@given(ALL_CASES, st.data())
def test_the_order_of_claims_does_not_matter(case: Case, data: st.DataObject) -> None:
    response = data.draw(st.permutations(range(len(case.a))))
    ground_truth = data.draw(st.permutations(range(len(case.b))))

    shuffled = Case(
        a=picked(case.a, response),
        b=picked(case.b, ground_truth),
        c=picked(case.c, response),
        d=picked(case.d, ground_truth),
    )

    assert shuffled.metrics() == case.metrics()


@given(ALL_CASES, st.data())
def test_the_order_of_chunks_does_not_matter(case: Case, data: st.DataObject) -> None:
    width = max((len(row) for row in case.c + case.d), default=0)
    chunks = data.draw(st.permutations(range(width)))

    shuffled = case._replace(
        c=[picked(row, chunks) for row in case.c], d=[picked(row, chunks) for row in case.d]
    )

    assert shuffled.metrics() == case.metrics()


@given(DECIDED_CASES, st.sampled_from("abcd"))
def test_an_undecided_cell_gives_nothing_that_no_decision_could_give(
    case: Case, matrix: str
) -> None:
    undecided = case.with_first_cell(matrix, None).metrics()
    decisions = [case.with_first_cell(matrix, label).metrics() for label in Label]
    everywhere = set(undecided).intersection(*decisions)
    assume(everywhere)

    for name in everywhere:
        allowed = [metrics[name] for metrics in decisions]
        assert min(allowed) - TOLERANCE <= undecided[name] <= max(allowed) + TOLERANCE, name


def certain_verdict(label: Label) -> Verdict:
    return Verdict(
        label=label,
        entailed=float(label is Label.ENTAILED),
        neutral=float(label is Label.NEUTRAL),
        contradicted=float(label is Label.CONTRADICTED),
    )


def verdict_matrices(rows: Sequence[Verdict | None]) -> VerdictMatrices:
    return VerdictMatrices(ground_truth_vs_response=VerdictMatrix.of([[row] for row in rows], 1))


@given(st.lists(ANY_CELL, min_size=1, max_size=8))
def test_alignment_is_the_limit_of_the_harmonic_mean(labels: Row) -> None:
    entailed, denied = labels.count(Label.ENTAILED), labels.count(Label.CONTRADICTED)
    neutral = labels.count(Label.NEUTRAL)
    metrics = compute_metrics(ground_truth_vs_response=labels)

    decided = entailed + denied + neutral
    if decided == 0 or decided < len(labels) / 2:
        assert "alignment" not in metrics
        return
    # With a share of an entailed claim so small that it counts nothing, and no zero denominator.
    e = entailed + 1e-12
    correctness, completeness = e / (e + denied), e / (e + denied + neutral)
    mean = 2 * correctness * completeness / (correctness + completeness)
    assert math.isclose(metrics["alignment"], mean, abs_tol=TOLERANCE)


@given(st.lists(ANY_CELL, min_size=1, max_size=8))
def test_soft_alignment_is_alignment_where_probabilities_are_0_and_1(labels: Row) -> None:
    certain = [None if label is None else certain_verdict(label) for label in labels]
    metrics = measure(verdict_matrices(certain)).metrics

    assert metrics.get("soft_alignment") == pytest.approx(metrics.get("alignment"))


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1)).filter(lambda pair: sum(pair) <= 1), min_size=1
    )
)
def test_soft_alignment_is_the_harmonic_mean_of_soft_correctness_and_completeness(
    pairs: list[tuple[float, float]],
) -> None:
    verdicts = [
        Verdict(label=Label.NEUTRAL, entailed=e, contradicted=c, neutral=max(0.0, 1 - e - c))
        for e, c in pairs
    ]
    entailed, denied = sum(e for e, _ in pairs), sum(c for _, c in pairs)
    assume(entailed > TOLERANCE)
    correctness, completeness = entailed / (entailed + denied), entailed / len(pairs)

    found = measure(verdict_matrices(verdicts)).metrics["soft_alignment"]

    mean = 2 * correctness * completeness / (correctness + completeness)
    assert math.isclose(found, mean, abs_tol=TOLERANCE)
