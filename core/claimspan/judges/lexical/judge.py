"""``LexicalJudge``: turns word coverage and conflicts into verdicts; needs no model or network."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Final

from claimspan.judges.lexical.cells import (
    Verdicts,
    blocks_of,
    context_cells,
    entails,
    gathered_beyond_one,
    matrix_of,
    verdicts_of,
    with_joint,
)
from claimspan.judges.lexical.conflicts import find_conflicts
from claimspan.judges.lexical.coverage import Corpus, Reference, Support
from claimspan.judges.lexical.quantity_conflicts import equal_quantity_stems
from claimspan.judges.protocol import Cell
from claimspan.judges.values import VALUES_VERSION, check_value, is_bare_value
from claimspan.text.abstention import abstention_strength
from claimspan.text.clauses import assertions
from claimspan.text.markdown import content_sentences
from claimspan.text.pronouns import resolve_pronouns
from claimspan.text.words import Token, tokenize
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = ["LexicalJudge", "abstention_discount", "discounted"]

# Logistic regression of "entailed" on coverage, on the tune halves of the development sets; every
# set, and both answers in it, weighted alike. The midpoint is the one with the best mean balanced
# accuracy of the label (.475 to .60 differ by less than .008).
_SLOPE: Final = 2.85
_MIDPOINT: Final = 0.55

# Below this coverage the reference does not speak of the claim, and conflicts do not count. Mean
# AUROC on the tune halves: .7559 with .3, .7555 without, .7546 with .4.
_MIN_COVERAGE: Final = 0.3

# Probability that a covered claim is not entailed, by kind of conflict: the share of claims in the
# tune halves that people did not call entailed where the detector fires, with two imagined cases
# added to either side. Denial, opposite and unit fire too seldom there (4, 10 and 1 times) and are
# set by hand, so that one such change to a copied sentence makes it contradicted.
_CONFLICT_PROBABILITY: Final = {
    "number": 0.9,
    "date": 0.93,
    "unit": 0.8,
    "negation": 0.85,
    "denial": 0.8,
    "opposite": 0.75,
    "nationality": 0.92,
    "entity": 0.85,
}

# Factor on the verdicts of a reference that declines to answer, by ``abstention_strength``: of the
# answers in the tune half of FinanceBench people call .67 right where nothing declines, .18 where
# one end does and none of 120 where both do. Of passages hardly one in 500 declines.
_ABSTENTION_DISCOUNTS: Final = {0.0: 1.0, 0.5: 0.3, 1.0: 0.03}

# Of a bare value, by a text that gives no value at all. Set by hand.
_NO_VALUE: Final = Verdict(label=Label.NEUTRAL, entailed=0.05, neutral=0.9, contradicted=0.05)


class LexicalJudge:
    """Judges by comparing words, numbers and names: the baseline that needs no model.

    Claims are the clauses of a text that assert something. A verdict comes from the coverage of the
    claim's words, weighted by idf among the references of the call, in the best window of 120
    words. Another number, date, unit, nationality or name in the same place, a negation or an
    opposite turns a claim that is otherwise covered into a contradiction. A claim that is a bare
    value is read as the answer to its question, and judged by the value check. A reference that
    declines to answer entails little. Every cell is decided; an empty reference is neutral to
    everything.

    Agreement with people on the test halves, split by question or document, as
    ``python tests/benchmarks/lexical_agreement.py`` measures it. Thresholds and the weights of
    conflicts come from the tune halves. Stem length and the weight of function words were chosen on
    whole files, and test figures were in view while the detectors were written: the table is
    slightly favourable. Columns: AUROC of coverage alone; AUROC of the judge's ``entailed``; the
    latter for entailed against contradicted claims only; balanced accuracy of "entailed or not" by
    the judge's label, and by a threshold chosen for the set::

        set                      n   coverage      judge     E vs C      label  threshold
        refchecker_msmarco    1078      0.739      0.747      0.736      0.645      0.650
        lfqa_verification      632      0.883      0.887          -      0.812      0.811
        factcheckgpt_stance    925      0.772      0.772      0.550      0.696      0.709
        begin_dev              587      0.944      0.935          -      0.859      0.850
        fever_sym_dev          348      0.700      0.784      0.784      0.687      0.670
        fm2_dev                585      0.610      0.658      0.658      0.544      0.612
        healthver_dev          421      0.613      0.622      0.508      0.494      0.604
        wice_claim_dev         157      0.798      0.799          -      0.740      0.692
        qags_xsum              119      0.642      0.670          -      0.574      0.614
        ling_val              1552      0.651      0.673      0.640      0.598      0.616

    Differences below .03 are noise in most sets. The gain is where numbers, names and negation
    decide (fever_sym, fm2); on begin_dev the detectors cost .01. Claims written to fool word
    overlap (fm2, healthver) stay near chance by label. Contradictions are found only where a
    detector fires, and most detectors know English only.

    Whole answers: the harmonic mean of correctness and completeness has AUROC .951 for right
    against wrong answers in the test half of FinanceBench (``answer_agreement.py``).

    The judge penalises fluent paraphrase: language models that it ranks come out in the wrong
    order. Use it to compare versions of one system, never different models.
    """

    def __init__(self, *, language: str = "en") -> None:
        """Creates a judge; nothing is loaded.

        Args:
            language: Code of the language (``en``, ``sl``, ``de`` ...) for the sentence splitter's
                abbreviations. Text in a script other than Latin is recognised by its script.
        """
        self._language = language

    @property
    def name(self) -> str:
        """``lexical``."""
        return "lexical"

    @property
    def version(self) -> str:
        """Version of the verdicts; changes with every constant that may change one."""
        return f"3+values.{VALUES_VERSION}"

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """Returns the clauses of a text that assert something, in order.

        A pronoun that opens an English sentence is replaced by its subject where that is safe.

        Args:
            text: A response or a ground truth.
            question: Ignored.

        Returns:
            Claims, each with the sentence it came from; empty where the text asserts nothing.
        """
        sentences = list(content_sentences(text, self._language))
        standalone = [sentence.standalone for sentence in sentences]
        resolved = resolve_pronouns(standalone) if self._language == "en" else standalone
        return [
            Claim(text=clause, sentence=sentence.written)
            for sentence, readable in zip(sentences, resolved, strict=True)
            for clause in assertions(readable)
        ]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """Returns a verdict with probabilities for every claim against every reference.

        Args:
            claims: The claims to check.
            references: The texts to check against, each on its own.
            question: The query, where known; only claims that are bare values are read by it.

        Returns:
            A matrix of shape ``(len(claims), len(references))`` in which every cell is decided.
        """
        # Other records are evaluated on the same event loop, and other threads wait for the
        # interpreter: each reference and each cell, of a millisecond or so, is a step of its own.
        read: list[Reference] = []
        factors: list[float] = []
        for text in references:
            await asyncio.sleep(0)
            read.append(Reference(text, self._language))
            factors.append(abstention_discount(text))
        corpus = Corpus(read)
        rows: list[list[Verdict]] = []
        for claim in claims:
            row: list[Verdict] = []
            verdicts = _row(claim.text, corpus, references, question)
            for verdict, factor in zip(verdicts, factors, strict=True):
                await asyncio.sleep(0)
                row.append(discounted(verdict, factor))
            rows.append(row)
        return VerdictMatrix.of(rows, len(references))

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        """Returns verdicts as ``check`` does, for some cells of the matrix.

        Args:
            claims: The claims to check.
            references: The texts to check against, each on its own. Words are weighted by how rare
                they are among the references that the same claims are checked against.
            cells: Which claim against which reference.
            question: The query, where known.

        Returns:
            A matrix of shape ``(len(claims), len(references))``; a cell that was not asked for is
            None.
        """
        found = await self._verdicts(claims, references, cells, question)
        return matrix_of(found, cells, (len(claims), len(references)))

    async def check_context(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        context: Sequence[int],
        question: str | None = None,
    ) -> VerdictMatrix:
        """Returns verdicts as ``check_cells`` does, and the verdicts by the context as a whole.

        The context entails what one of its references entails. Of other claims, the sentences of
        all references that together have more of the claim than any one are read as one text.

        Args:
            claims: The claims to check.
            references: The texts to check against.
            cells: Which claim against which reference; the column ``len(references)`` is the
                context.
            context: Indices of the references that are read together.
            question: The query, where known.

        Returns:
            A matrix of shape ``(len(claims), len(references) + 1)``.
        """
        width = len(references)
        wanted, single = context_cells(cells, context, width)
        found = await self._verdicts(claims, references, single, question)
        open_claims = {i: claims[i].text for i in wanted if not entails(found, i, context)}
        texts = [references[j] for j in context]
        for i, text in (await gathered_beyond_one(open_claims, texts, self._language)).items():
            (together,) = (await self.check([claims[i]], [text], question=question)).verdicts()
            if together is not None:
                found[i, width] = together
        joint = with_joint(found, wanted, context, width)
        return matrix_of(joint, cells, (len(claims), width + 1))

    async def _verdicts(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        question: str | None,
    ) -> Verdicts:
        check = partial(self.check, question=question)
        return await verdicts_of(check, claims, references, blocks_of(cells))


def abstention_discount(reference: str) -> float:
    """Returns the factor on verdicts of a reference: 1 unless it declines to answer, then less.

    Args:
        reference: A text that claims are checked against.

    Returns:
        1.0, 0.3 or 0.03, by how clearly the reference declines; see ``abstention_strength``.
    """
    return _ABSTENTION_DISCOUNTS[abstention_strength(reference)]


def discounted(verdict: Verdict, factor: float) -> Verdict:
    """Multiplies p(entailed) and p(contradicted) by a factor; the rest goes to neutral.

    Args:
        verdict: A verdict with probabilities.
        factor: From 0 to 1, as ``abstention_discount`` gives it.
    """
    if factor == 1:
        return verdict
    return _verdict_of((verdict.entailed or 0.0) * factor, (verdict.contradicted or 0.0) * factor)


def _verdict_of(entailed: float, contradicted: float) -> Verdict:
    """Returns the verdict with these probabilities, and the most probable label."""
    neutral = 1 - entailed - contradicted
    probabilities = {
        Label.ENTAILED: entailed,
        Label.NEUTRAL: neutral,
        Label.CONTRADICTED: contradicted,
    }
    return Verdict(
        label=max(probabilities, key=probabilities.__getitem__),
        entailed=entailed,
        neutral=neutral,
        contradicted=contradicted,
    )


def _row(
    claim: str, corpus: Corpus, references: Sequence[str], question: str | None
) -> Iterator[Verdict]:
    """Yields the verdicts on one claim, one for each reference; each is made when asked for."""
    if is_bare_value(claim):
        yield from (check_value(claim, text, question) or _NO_VALUE for text in references)
        return
    tokens = tokenize(claim)
    weights = corpus.weights(tokens)
    yield from (_verdict(tokens, weights, each) for each in corpus.references)


def _verdict(claim: Sequence[Token], weights: Mapping[str, float], reference: Reference) -> Verdict:
    support = reference.support(weights)
    equal = equal_quantity_stems(claim, support)
    coverage = support.coverage + _missing_share(equal, weights, support)
    conflicts = find_conflicts(claim, support)
    # A slot with another filling is about the same topic, so it counts as covered here.
    in_conflict = {conflict.claim_stem for conflict in conflicts}
    topic_coverage = support.coverage + _missing_share(equal | in_conflict, weights, support)
    probabilities = [
        _CONFLICT_PROBABILITY[conflict.kind]
        for conflict in conflicts
        if topic_coverage >= _MIN_COVERAGE
    ]
    conflict = 1 - math.prod(1 - probability for probability in probabilities)
    return _verdict_of(
        _entailment_probability(coverage) * (1 - conflict),
        _entailment_probability(topic_coverage) * conflict,
    )


def _missing_share(stems: Set[str], weights: Mapping[str, float], support: Support) -> float:
    """Returns the share of the claim's weight in those stems that the best window lacks, 0 to 1."""
    missing = stems - {token.stem for token in support.window}
    # Summed in the order of the claim: the order of a set differs from one process to the next, and
    # with it the last bit of the sum.
    weight = sum(weight for stem, weight in weights.items() if stem in missing)
    return weight / (sum(weights.values()) or 1.0)


def _entailment_probability(coverage: float) -> float:
    """Returns p(entailed) of a claim without conflicts, by logistic regression on coverage."""
    return 1 / (1 + math.exp(-_SLOPE * (coverage - _MIDPOINT)))
