"""``LexicalJudge``: turns word coverage and edits into verdicts; needs no model or network."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import product
from typing import Final

from pydantic import JsonValue

from claimspan.judges.lexical.cells import (
    WORDS_SURE_FROM,
    Verdicts,
    checked_sure_from,
    context_cells,
    entails,
    gathered_beyond_one,
    matrix_of,
    sure_verdicts,
    verdicts_of,
    with_joint,
)
from claimspan.judges.lexical.readings import KeptReferences, Reading
from claimspan.judges.protocol import Cell
from claimspan.quantities import VALUES_VERSION
from claimspan.text.abstention import abstains
from claimspan.text.answers import (
    as_statement,
    asks_for_truth,
    asks_yes_or_no,
    has_label,
    is_short_answer,
    label_of,
    polarity,
)
from claimspan.text.clauses import assertions, asserts_something
from claimspan.text.languages import detect_language
from claimspan.text.markdown import Sentence, content_sentences
from claimspan.verdicts import Claim, VerdictMatrix

__all__ = [
    "LexicalJudge",
]


def _extract(text: str, question: str | None, language: str) -> list[Claim]:
    """Returns the clauses of a text that assert something, in order.

    A short answer, as the whole text, as its first sentence, or behind a label (``Length: 725
    km``), becomes the statement that it makes. A fenced block of code is a claim if nothing else in
    the text is: beside prose it shows what the prose says.

    Returns:
        Claims, each with the sentence it came from; empty if the text asserts nothing.
    """
    # "I cannot say. Please see the manual." Without its first sentence, the second is a claim.
    if abstains(text):
        return []
    sentences = list(content_sentences(text, language))
    answer = sentences[0].standalone if len(sentences) == 1 else text
    statement = as_statement(question, answer)
    if statement != answer:
        return [Claim(text=statement, sentence=text.strip())]
    prose = [sentence for sentence in sentences if not sentence.is_code]
    # "Yes, it is legal." says what its first word says once more.
    claims = {claim.text.casefold(): claim for claim in _claims(prose, question, language)}
    return list(claims.values()) or [
        Claim(text=each.standalone, sentence=each.written) for each in sentences if each.is_code
    ]


def _claims(sentences: Sequence[Sentence], question: str | None, language: str) -> Iterator[Claim]:
    # Questions of other languages are not turned, but for an answer of one word.
    if (
        sentences
        and (language == "en" or asks_for_truth(question))
        and (answered := _answered(question, sentences[0].standalone))
    ):
        yield Claim(text=answered, sentence=sentences[0].written)
        if is_short_answer(sentences[0].standalone):
            sentences = sentences[1:]
    # Where one line names an attribute, those beside it do: "Length: 725 km", "Mouth: Danube".
    has_labels = any(has_label(question, sentence.written) for sentence in sentences)
    for sentence in sentences:
        clauses = assertions(sentence.standalone, language)
        if clauses and has_labels and label_of(sentence.standalone):
            clauses = [as_statement(question, sentence.written)]
        for clause in clauses:
            yield Claim(text=clause, sentence=sentence.written)


def _answered(question: str | None, sentence: str) -> str | None:
    """Returns the statement that the first sentence of a text makes as an answer."""
    says = polarity(sentence)
    if says is not None:
        # "Of course! Heat the oven to 190 °C."
        if not (asks_yes_or_no(question) or asks_for_truth(question)):
            return None
        short = "Yes" if says else "No"
        statement = as_statement(question, short)
        return statement if statement != short else None
    if not (sentence.endswith(".") and is_short_answer(sentence) and asserts_something(sentence)):
        return None
    statement = as_statement(question, sentence)
    return statement if statement != sentence else None


class LexicalJudge:
    """Judges by comparing words, numbers and names: the baseline that needs no model.

    Claims are the clauses of a text that assert something. A verdict comes from the coverage of the
    claim's words, weighted by idf among the references of the call, in the best window of 120
    words. The claim is aligned with the best sentence there, and what differs is read as edits:
    another number, date, unit, nationality or name in the same place, a negation or an opposite
    turns a claim that is otherwise covered into a contradiction; so do two parts of a sentence that
    changed places around a verb. "All" makes a claim neutral if the reference limits
    what it says. A claim on a passage is sure if one sentence, with the one before it, has all that
    it tells. A claim that is a bare value is read as the answer to its question, and judged by
    the value check. An empty reference is neutral to everything.

    Agreement with people on the test halves, split by question or document, as
    ``python tests/benchmarks/lexical_agreement.py`` measures it. Thresholds and the weights of
    edits come from the tune halves. Stem length and the weight of function words were chosen on
    whole files, and test figures were in view while the rules were written: the table is
    slightly favourable. Columns: AUROC of coverage alone; AUROC of the judge's ``entailed``; the
    latter for entailed against contradicted claims only; balanced accuracy of "entailed or not" by
    the judge's label, and by a threshold chosen for the set::

        set                      n   coverage      judge     E vs C      label  threshold
        refchecker_msmarco    1078      0.739      0.755      0.761      0.652      0.656
        lfqa_verification      632      0.883      0.877          -      0.810      0.812
        factcheckgpt_stance    925      0.772      0.783      0.620      0.706      0.698
        begin_dev              587      0.944      0.927          -      0.866      0.849
        fever_sym_dev          348      0.700      0.780      0.780      0.690      0.698
        fm2_dev                585      0.610      0.643      0.643      0.544      0.577
        healthver_dev          421      0.613      0.597      0.461      0.496      0.584
        wice_claim_dev         157      0.798      0.787          -      0.723      0.737
        qags_xsum              119      0.642      0.706          -      0.615      0.621
        ling_val              1552      0.651      0.686      0.666      0.599      0.625

    Differences below .03 are noise in most sets. The gain is where numbers, names and negation
    decide (fever_sym, fm2); on begin_dev the edits cost .02. Claims written to fool word overlap
    (fm2, healthver) stay near chance by label. Contradictions are found only if there is an
    edit, and most kinds of edits know English only.

    Whole answers: the harmonic mean of correctness and completeness has AUROC .931 for right
    against wrong answers in the test half of FinanceBench (``answer_agreement.py``).

    The judge penalises fluent paraphrase: language models that it ranks come out in the wrong
    order. Use it to compare versions of one system, never different models.
    """

    def __init__(
        self,
        *,
        language: str | None = None,
        sure_from: float | Sequence[float] = WORDS_SURE_FROM,
    ) -> None:
        """Creates a judge; nothing is loaded.

        Args:
            language: Code of the language (``en``, ``sl``, ``de`` ...) by whose rules sentences and
                words are read. None: that of each text, as ``detect_language`` tells it, or that of
                the texts beside it if one is too short to tell.
            sure_from: A verdict on a passage is left undecided if its claim is neither so probably
                entailed nor so probably not; two numbers, or one for both, from 0.5, at which every
                verdict is decided, to 1. By default a claim is passed if one sentence has all its
                words and no other value of the kind, and refused if something in it is changed; one
                in other words stays open. What a response and its ground truth say of each other is
                always decided.

        Raises:
            ConfigError: ``sure_from`` is not from 0.5 to 1, or not one or two numbers.
        """
        self._language = language
        self._sure_from = checked_sure_from(sure_from)
        self._kept = KeptReferences()

    blind_to: Final = "paraphrase, sums, permission and whose value it is"
    """As ``PartlyBlindJudge.blind_to``."""

    @property
    def name(self) -> str:
        """``lexical``."""
        return "lexical"

    @property
    def version(self) -> str:
        """Version of the verdicts; changes with every constant that may change one."""
        return f"12+values.{VALUES_VERSION}"

    def arguments(self) -> dict[str, JsonValue]:
        """Returns the keyword arguments that make an equal judge in another process."""
        return {"language": self._language, "sure_from": list(self._sure_from)}

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """Returns the clauses of a text that assert something, in order.

        A short answer, as the whole text or as its first sentence, becomes the statement that it
        makes, given the question: ``Paris``, ``Yes``, ``1889``.

        Args:
            text: A response or a ground truth.
            question: The question that the text answers; None if unknown.

        Returns:
            Claims, each with the sentence it came from; empty if the text asserts nothing.
        """
        return _extract(text, question, self._language or detect_language(text) or "en")

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """Returns a verdict with probabilities for every claim against every reference.

        Args:
            claims: The claims to check.
            references: The texts to check against, each on its own.
            question: The query, if known. A reference of a few words is read as its answer, and
                a claim that is a bare value by the scale and the unit that it asks for.

        Returns:
            A matrix of shape ``(len(claims), len(references))``; a cell is None if the judge is not
            sure of it.
        """
        cells = list(product(range(len(claims)), range(len(references))))
        return await self.check_cells(claims, references, cells, question=question)

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
            question: The query, if known.

        Returns:
            A matrix of shape ``(len(claims), len(references))``; a cell that was not asked for is
            None.
        """
        found = await verdicts_of(self._reading(question).verdicts, claims, references, cells)
        return self._matrix(found, cells, (len(claims), len(references)), references)

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

        Returns:
            A matrix of shape ``(len(claims), len(references) + 1)``.
        """
        width = len(references)
        wanted, single = context_cells(cells, context, width)
        reading = self._reading(question)
        found = await verdicts_of(reading.verdicts, claims, references, single)
        gathered = await gathered_beyond_one(
            {i: claims[i].text for i in wanted if not entails(found, i, context)},
            [references[j] for j in context],
            self._language,
        )
        for i, text in gathered.items():
            found[i, width] = (await reading.verdicts([claims[i]], [text]))[0][0]
        joint = with_joint(found, wanted, context, width)
        return self._matrix(joint, cells, (len(claims), width + 1), references)

    def _matrix(
        self,
        verdicts: Verdicts,
        cells: Collection[Cell],
        shape: tuple[int, int],
        references: Sequence[str],
    ) -> VerdictMatrix:
        return matrix_of(sure_verdicts(verdicts, references, self._sure_from), cells, shape)

    def _reading(self, question: str | None) -> Reading:
        return Reading(question, self._language, self._kept)
