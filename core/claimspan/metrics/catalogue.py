"""Every metric of a claim-level evaluation: its formula, its meaning, and its threshold.

This table is the one place that knows a metric. Formulas, reasons in words, directions, thresholds
and the verdicts that have to be asked for follow from it, and its order is the order of all scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

from claimspan.errors import ConfigError
from claimspan.metrics import means
from claimspan.metrics.truths import LEAST_DECIDED, Truth, Truths, share

__all__ = [
    "CATALOGUE",
    "DEFAULT_METRICS",
    "LOW_RECORDS",
    "METRICS",
    "WITHOUT_GROUND_TRUTH",
    "ClaimMetric",
    "Group",
    "in_order",
    "unknown_metric",
]

GOOD_FROM: Final = 0.8
"""Share from which on a metric is good whose higher end is better. One claim in four that nothing
supports is what a reader notices, and one in five is not."""

GOOD_TO: Final = 0.2
"""The same share of a metric whose lower end is better."""


class Group(StrEnum):
    """The part of a pipeline that a metric measures."""

    OVERALL = "overall"
    RETRIEVER = "retriever"
    GENERATOR = "generator"
    CONTRADICTIONS = "contradictions"
    FACTS = "ground-truth facts"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimMetric:
    """A number about one answer, made of the verdicts on its claims."""

    name: str
    """The key in ``Evaluation.metrics``."""

    group: Group
    """The part of a pipeline that it measures."""

    sentence: str
    """The definition in one sentence."""

    needs: frozenset[str]
    """The matrices, fields of ``VerdictMatrices``, whose verdicts it is made of."""

    lower_is_better: bool | None = False
    """Direction of the scale; None if neither end is better."""

    threshold: float | None = GOOD_FROM
    """The worst value that is good; None for a metric that calls no answer low, such as
    ``context_precision``: of the five chunks that are always retrieved an answer needs one."""

    counted: Callable[[Truths], Sequence[Truth]] | None = None
    """The values that it is the share of; None if it is no share."""

    least_decided: float = LEAST_DECIDED
    """The share of these values that has to be decided, 0 to 1; 0 for a metric that is low by one
    claim, and for one over some claims only, of which the others are None as well."""

    mean: Callable[[Truths], float] | None = None
    """Its formula if it is no share: returns the value, or raises ``UndefinedMetricError``."""

    told: str = ""
    """Words for the values that count against the answer: ``{claims}``, ``{facts}`` or ``{chunks}``
    stands for their number, ``{are}`` for the verb."""

    excused: Callable[[Truths], Sequence[Truth]] | None = None
    """As ``counted``, with what is no fault of the answer counted for it. A score that is low only
    without this excuse is neither low nor good."""

    excuse: str = ""
    """What excuses it, in words."""

    never_good: Callable[[Truths], Sequence[Truth]] | None = None
    """Values of which a single true one makes the score low."""

    mean_of: tuple[str, ...] = ()
    """The metrics that it is the harmonic mean of; it is low only if one of them is."""

    def value(self, truths: Truths) -> float:
        """Return the value, 0 to 1.

        Raises:
            UndefinedMetricError: It has none.
        """
        if self.mean is not None:
            return self.mean(truths)
        values = () if self.counted is None else self.counted(truths)
        return share(values, least=self.least_decided)

    @property
    def failure(self) -> bool:
        """The counted value that counts against the answer."""
        return self.lower_is_better is True

    @property
    def things(self) -> str:
        """The things counted: ``claims`` of the response, ``facts`` or ``chunks``; or nothing."""
        return self.told.partition("}")[0].removeprefix("{")


_RC, _RX = "response_vs_chunks", "response_vs_context"
_RG, _GR, _GC = "response_vs_ground_truth", "ground_truth_vs_response", "ground_truth_vs_chunks"

_ALL: Final = (
    ClaimMetric(
        name="faithfulness",
        group=Group.GENERATOR,
        sentence="Share of the response's claims that at least one chunk entails.",
        needs=frozenset({_RC}),
        counted=lambda truths: truths.faithful,
        told="{claims} {are} in no chunk",
    ),
    ClaimMetric(
        name="groundedness",
        group=Group.GENERATOR,
        sentence="Share of the response's claims that all chunks, read together, entail. "
        "Faithfulness asks each chunk alone: the two differ if a claim's support is spread over "
        "several chunks, or if chunks contradict each other.",
        needs=frozenset({_RC, _RX}),
        counted=lambda truths: truths.grounded,
        told="{claims} {are} not supported by the chunks read together",
    ),
    ClaimMetric(
        name="contradicted_by_chunks",
        group=Group.CONTRADICTIONS,
        sentence="Share of the response's claims that a chunk contradicts and none supports.",
        needs=frozenset({_RC}),
        lower_is_better=True,
        threshold=GOOD_TO,
        counted=lambda truths: truths.contradicted,
        least_decided=0,
        told="{claims} {are} contradicted by {by}",
    ),
    ClaimMetric(
        name="precision",
        group=Group.OVERALL,
        sentence="Share of the response's claims that the ground truth entails.",
        needs=frozenset({_RG}),
        counted=lambda truths: truths.correct,
        told="{claims} {are} not in the ground truth",
        excused=lambda truths: truths.correct_or_more,
        excuse="the chunks support what a short ground truth does not mention",
        never_good=lambda truths: truths.denied,
    ),
    ClaimMetric(
        name="recall",
        group=Group.OVERALL,
        sentence="Share of the ground truth's claims that the response entails.",
        needs=frozenset({_GR}),
        counted=lambda truths: truths.recalled,
        told="{facts} of the ground truth {are} missing from the answer",
        never_good=lambda truths: truths.facts_denied,
    ),
    ClaimMetric(
        name="f1",
        group=Group.OVERALL,
        sentence="Harmonic mean of precision and recall, by the judge's grades.",
        mean=means.f1,
        needs=frozenset({_RG, _GR}),
        mean_of=("precision", "recall"),
    ),
    ClaimMetric(
        name="claim_recall",
        group=Group.RETRIEVER,
        sentence="Share of the ground truth's claims that at least one chunk entails.",
        needs=frozenset({_GC}),
        counted=lambda truths: truths.retrieved,
        told="{facts} of the ground truth {are} in no chunk",
        excused=lambda truths: truths.retrieved_or_told,
        excuse="the answer states what the judge finds in no chunk, and the chunks support it",
    ),
    ClaimMetric(
        name="context_precision",
        group=Group.RETRIEVER,
        sentence="Share of the chunks that entail at least one claim of the ground truth.",
        needs=frozenset({_GC}),
        threshold=None,
        counted=lambda truths: truths.relevant,
        told="{chunks} {are} not relevant to the ground truth",
    ),
    ClaimMetric(
        name="contradicted_by_ground_truth",
        group=Group.CONTRADICTIONS,
        sentence="Share of the response's claims that the ground truth contradicts.",
        needs=frozenset({_RG}),
        lower_is_better=True,
        threshold=0.0,
        counted=lambda truths: truths.denied,
        least_decided=0,
        told="{claims} {are} contradicted by the ground truth",
    ),
    ClaimMetric(
        name="hallucination",
        group=Group.GENERATOR,
        sentence="Share of the response's claims that are wrong and that no chunk supports.",
        needs=frozenset({_RC, _RG}),
        lower_is_better=True,
        threshold=GOOD_TO,
        counted=lambda truths: truths.hallucinated,
        told="{claims} {are} neither in a chunk nor in the ground truth",
    ),
    ClaimMetric(
        name="context_utilization",
        group=Group.GENERATOR,
        sentence="Of the ground truth's claims that were retrieved, the share that the response "
        "uses.",
        needs=frozenset({_GC, _GR}),
        counted=lambda truths: truths.utilized,
        least_decided=0,
        told="{facts} of the ground truth that the chunks hold {are} missing from the answer",
    ),
    ClaimMetric(
        name="noise_sensitivity_in_relevant",
        group=Group.GENERATOR,
        sentence="Share of the response's claims that are wrong and come from a relevant chunk.",
        needs=frozenset({_RC, _RG, _GC}),
        lower_is_better=True,
        threshold=GOOD_TO,
        counted=lambda truths: truths.wrong_in_relevant,
        told="{claims} {are} not in the ground truth, but in a relevant chunk",
        excused=lambda truths: truths.of_denied(truths.wrong_in_relevant),
        excuse="a short ground truth does not contradict it",
    ),
    ClaimMetric(
        name="noise_sensitivity_in_irrelevant",
        group=Group.GENERATOR,
        sentence="Share of the response's claims that are wrong and come from irrelevant chunks "
        "only.",
        needs=frozenset({_RC, _RG, _GC}),
        lower_is_better=True,
        threshold=GOOD_TO,
        counted=lambda truths: truths.wrong_in_irrelevant,
        told="{claims} {are} not in the ground truth, but in irrelevant chunks",
        excused=lambda truths: truths.of_denied(truths.wrong_in_irrelevant),
        excuse="a short ground truth does not contradict it",
    ),
    ClaimMetric(
        name="self_knowledge",
        group=Group.GENERATOR,
        sentence="Share of the response's claims that are right although no chunk supports them.",
        needs=frozenset({_RC, _RG}),
        lower_is_better=None,
        threshold=None,
        counted=lambda truths: truths.known,
    ),
    ClaimMetric(
        name="correctness",
        group=Group.FACTS,
        sentence="Of the ground truth's claims that the response speaks about, the share it gets "
        "right.",
        needs=frozenset({_GR}),
        threshold=1.0,
        counted=lambda truths: truths.taken_up,
        least_decided=0,
        told="{facts} of the ground truth that the answer takes up {are} not as the answer has it",
    ),
    ClaimMetric(
        name="completeness",
        group=Group.FACTS,
        sentence="Share of the ground truth's claims that the response states.",
        needs=frozenset({_GR}),
        counted=lambda truths: truths.recalled,
        told="{facts} of the ground truth {are} missing from the answer",
        never_good=lambda truths: truths.facts_denied,
    ),
    ClaimMetric(
        name="alignment",
        group=Group.FACTS,
        sentence="Harmonic mean of correctness and completeness; 0 if completeness is 0.",
        mean=means.alignment,
        needs=frozenset({_GR}),
        mean_of=("correctness", "completeness"),
    ),
    ClaimMetric(
        name="soft_alignment",
        group=Group.FACTS,
        sentence="As alignment, with the judge's probabilities in place of its labels.",
        mean=means.soft_alignment,
        needs=frozenset({_GR}),
        mean_of=("correctness", "completeness"),
    ),
)

CATALOGUE: Final[Mapping[str, ClaimMetric]] = {metric.name: metric for metric in _ALL}
"""Name to metric, the most telling first: RAGChecker's eleven (arXiv 2408.08067, section 3.3 and
appendix, with the exclusive noise rule of its package, version 0.1.9: by the paper a claim in both
kinds of chunk would count twice), Pinecone's three (its evaluation API), and ours:
``groundedness``, the shares of contradicted claims, and ``soft_alignment``, which needs
probabilities."""

METRICS: Final = tuple(CATALOGUE)
"""The names of every metric, in the order of all scores."""

DEFAULT_METRICS: Final = METRICS[:8]
"""The default metrics of a record with a ground truth."""

WITHOUT_GROUND_TRUTH: Final = DEFAULT_METRICS[:3]
"""The default metrics of a record without one."""


def in_order(names: Iterable[str]) -> list[str]:
    """Return names of metrics in the order of all scores, each once; unknown ones as they come."""
    found = dict.fromkeys(names)
    return [*(n for n in METRICS if n in found), *(n for n in found if n not in CATALOGUE)]


LOW_RECORDS: Final = "low"
"""Name under which gate, alerts and comparisons have the share of records that are low."""


def unknown_metric(what: str, name: object, known: Sequence[str] = METRICS) -> ConfigError:
    """Return the error for a name that no metric has, with the name that was meant."""
    near = get_close_matches(str(name), known, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"give one of {', '.join(known)}"
    return ConfigError(f"{what} got the unknown metric {name!r}: {hint}")
