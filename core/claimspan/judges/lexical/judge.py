"""The judge that needs no weights, no key and no network."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence, Set
from typing import Final

from claimspan.judges.lexical.conflicts import find_conflicts, restated
from claimspan.judges.lexical.coverage import Corpus, Reference, Support, Token, tokenize
from claimspan.judges.lexical.values import bare_values, value_verdict
from claimspan.text.declining import declining
from claimspan.text.pronouns import resolved
from claimspan.text.sentences import assertions, sentence_pieces
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = ["LexicalJudge", "distributed", "share_left", "weakened"]

# On the tune halves of the development sets, every set and both answers in it weighted alike: the
# slope of a logistic regression of "entailed" on coverage, and the midpoint with the best mean
# balanced accuracy of the label (.475 to .60 differ by less than .008).
_STEEPNESS: Final = 2.85
_MIDPOINT: Final = 0.55

# Below this coverage two texts speak of different matters, and no conflict counts. Mean AUROC on
# the tune halves: .7559 with .3, .7555 without, .7546 with .4.
_ON_TOPIC: Final = 0.3

# How much a conflict of each kind tells against "entailed": the share of claims that people did
# not call entailed where it fires on a covered claim of the tune halves, two imagined cases added
# to either side. Denial, opposite and unit fire too seldom there (4, 10 and 1 times) and are set
# by hand, so that one such change to a copied sentence makes it contradicted.
_DOUBT: Final = {
    "number": 0.9,
    "date": 0.93,
    "unit": 0.8,
    "negation": 0.85,
    "denial": 0.8,
    "opposite": 0.75,
    "nationality": 0.92,
    "entity": 0.85,
}

# What is left of a verdict by a reference that declines to answer, by how much it does: of the
# answers in the tune half of FinanceBench people call .67 right where nothing declines, .18 where
# one end does and none of 120 where both do. Of passages hardly one in 500 declines.
_LEFT: Final = {0.0: 1.0, 0.5: 0.3, 1.0: 0.03}


class LexicalJudge:
    """The honest floor: how much of a claim a reference says word by word, and what it denies.

    Claims are the sentences and clauses of a text. A verdict comes from the coverage of the
    claim's words, weighted by idf among the references of the call, in the best window of 120
    words; another number, date, unit, nationality or name in the same place, a negation or an
    opposite turns a claim that is otherwise covered into a contradiction. A claim that is a bare
    value is judged by whether the reference has the value, rounded or in another unit; a reference
    that declines to answer entails little. Every cell is decided; an empty reference is neutral to
    everything.

    Agreement with people on the test halves, split by question or document, as
    ``python tests/benchmarks/lexical_agreement.py`` measures it. Thresholds and the strength of
    the checks come from the tune halves. Stem length and the weight of function words were picked
    on whole files, and test figures were in view while the checks were written: take the table for
    slightly favourable. Columns are AUROC of coverage alone and of
    the judge's ``entailed``, the same for entailed against contradicted claims only, and balanced
    accuracy of "entailed or not" by the judge's label and by a threshold of the set's own::

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
    decide (fever_sym, fm2); on begin_dev the checks cost .01. Claims written to fool word overlap
    (fm2, healthver) stay near chance by label, contradictions are found only where a check fires,
    and most of the checks know English only.

    Whole answers, by the harmonic mean of correctness and completeness: AUROC .922 for right
    against wrong ones in the test half of FinanceBench (``answer_agreement.py``).

    It punishes fluent paraphrase: ranked by it, language models come out in the wrong order. Use
    it to compare the answers of one system, never one model with another.
    """

    def __init__(self, *, language: str = "en") -> None:
        """Make a judge; nothing is loaded.

        Args:
            language: Code of the language (``en``, ``sl``, ``de`` ...) whose abbreviations the
                sentence splitter knows. Texts in other scripts than Latin are recognised.
        """
        self._language = language

    @property
    def name(self) -> str:
        """``lexical``."""
        return "lexical"

    @property
    def version(self) -> str:
        """Changes with every constant that may change a verdict."""
        return "2"

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """The clauses of the text that assert something, in order.

        A pronoun that opens an English sentence is put back into its words where that is safe.
        """
        pieces = list(sentence_pieces(text, self._language))
        texts = [piece.text for piece in pieces]
        read = resolved(texts) if self._language == "en" else texts
        return [
            Claim(text=clause, sentence=piece.sentence)
            for piece, said in zip(pieces, read, strict=True)
            for clause in assertions(said)
        ]

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """A decided verdict for every cell; an empty reference is neutral to everything."""
        corpus = Corpus(references, self._language)
        left = [share_left(reference) for reference in references]
        rows: list[list[Verdict]] = []
        for claim in claims:
            # Other records run on the same event loop: let them in between claims.
            await asyncio.sleep(0)
            found = _row(tokenize(claim.text), corpus)
            rows.append([weakened(each, share) for each, share in zip(found, left, strict=True)])
        return VerdictMatrix.of(rows, len(references))


def share_left(reference: str) -> float:
    """What is left of a verdict by a reference that may decline to answer, 0 to 1."""
    return _LEFT[declining(reference)]


def weakened(verdict: Verdict, share: float) -> Verdict:
    """The verdict with a share of its probabilities; the rest goes to neutral."""
    if share == 1:
        return verdict
    return distributed((verdict.entailed or 0.0) * share, (verdict.contradicted or 0.0) * share)


def distributed(entailed: float, contradicted: float) -> Verdict:
    """The verdict with these probabilities, and the most probable label."""
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


def _row(claim: Sequence[Token], corpus: Corpus) -> list[Verdict]:
    if values := bare_values(claim):
        return [value_verdict(values, each.tokens) for each in corpus.references]
    weights = corpus.weights(claim)
    return [_verdict(claim, weights, each) for each in corpus.references]


def _verdict(claim: Sequence[Token], weights: Mapping[str, float], reference: Reference) -> Verdict:
    support = reference.support(weights)
    same = restated(claim, support)
    coverage = support.coverage + _missing_share(same, weights, support)
    conflicts = find_conflicts(claim, support)
    # A slot that is filled otherwise is about the same matter.
    contested = {conflict.contested for conflict in conflicts}
    on_topic = support.coverage + _missing_share(same | contested, weights, support)
    is_on_topic = on_topic >= _ON_TOPIC
    doubt = 1 - math.prod(1 - _DOUBT[conflict.check] for conflict in conflicts if is_on_topic)
    entailed = _supported(coverage) * (1 - doubt)
    contradicted = _supported(on_topic) * doubt
    return distributed(entailed, contradicted)


def _missing_share(words: Set[str], weights: Mapping[str, float], support: Support) -> float:
    """Share of the claim's weight in those of the words that the window lacks."""
    missing = words - {token.stem for token in support.window}
    return sum(weights.get(word, 0.0) for word in missing) / (sum(weights.values()) or 1.0)


def _supported(coverage: float) -> float:
    return 1 / (1 + math.exp(-_STEEPNESS * (coverage - _MIDPOINT)))
