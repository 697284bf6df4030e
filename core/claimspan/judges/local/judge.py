"""``LocalJudge``: judges on the CPU of the worker, without a key or a network."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from weakref import WeakSet

from pydantic import JsonValue

from claimspan.cost.usage import add_note
from claimspan.errors import ConfigError
from claimspan.judges.lexical.cells import (
    WORDS_SURE_FROM,
    SureFrom,
    Verdicts,
    checked_sure_from,
    context_cells,
    entails,
    gathered_beyond_one,
    matrix_of,
    sure_verdicts,
    with_joint,
)
from claimspan.judges.lexical.judge import LexicalJudge
from claimspan.judges.lexical.short_answers import (
    affirmed,
    as_read,
    decided_by_words,
    inverted,
    readable_claim,
)
from claimspan.judges.local.background import InferenceThread, Stop, keep_forever
from claimspan.judges.local.cross_encoder import KNOWN_BYTES, CrossEncoder, PairCounts
from claimspan.judges.local.models import bundled_combination, bundled_files, find_pretrained
from claimspan.judges.local.reading import (
    Question,
    Reads,
    bundled_verdicts,
    pretrained_verdicts,
)
from claimspan.judges.local.shared_reads import SharedReads, Work
from claimspan.judges.protocol import Cell, SparseJudge
from claimspan.text.languages import languages_of
from claimspan.verdicts import Claim, VerdictMatrix

__all__ = ["CUT", "OTHER_LANGUAGE", "LocalJudge", "readable_cells"]


def readable_cells(
    claims: Sequence[str],
    references: Sequence[str],
    language: str | None,
    question: str | None = None,
) -> tuple[list[int], list[int]]:
    """Returns the places of the claims and of the references that are in English.

    Each text is decided on its own, unless ``language`` is that of all texts. A name, a table or
    code, which have too few words to tell, counts as English unless all other texts, and the
    question, are in another language.
    """
    texts = [*claims, *references]
    beside = [question] if question else ()
    found = languages_of(texts, beside) if language is None else [language] * len(texts)
    english = [i for i, code in enumerate(found) if code == "en"]
    rows = [i for i in english if i < len(claims)]
    return rows, [i - len(claims) for i in english[len(rows) :]]


OTHER_LANGUAGE: Final = "not English: judged by words, numbers and names alone"
"""Note in ``Evaluation.notes``, and on the span, for verdicts without the cross-encoder."""

CUT: Final = "claim or chunk longer than the model reads: its end was left out"
"""Note in ``Evaluation.notes``, and on the span, for verdicts on texts of too many word pieces."""

_LOG: Final = logging.getLogger("claimspan")

_SURE_FROM: Final = SureFrom(0.59, 0.7)


class LocalJudge(SparseJudge):
    """Judges with a small cross-encoder and the lexical judge, combined and calibrated.

    Claims are those of ``LexicalJudge``. The features of a verdict are the lexical verdict and the
    cross-encoder's logits; a logistic regression, fitted to people's labels, turns them into
    probabilities. The cross-encoder reads up to 80 words of a reference: the sentences, from
    several places, that together have most of the claim. It reads what words leave open:

    - not a claim that is a sentence of the reference, word for word: that is entailed;
    - of several references in the order of their promise, not those after two in a row that do not
      entail the claim;
    - not bare values, which have no words to read: they are judged as by ``LexicalJudge``.

    The context as a whole entails what one of its references entails, or what their sentences
    entail when they are read as one text.

    On the test halves of ten sets the mean AUROC of ``entailed`` is .827, where ``LexicalJudge``
    has .757. The gain differs from set to set and is within noise on some. A claim with a value
    that the reference does not give, or gives otherwise, is at most unsure. Figures by set, and
    known weaknesses: ``MODEL_CARD.md`` beside the weights.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        language: str | None = None,
        threads: int = 1,
        sure_from: float | Sequence[float] = _SURE_FROM,
        known_bytes: int = KNOWN_BYTES,
    ) -> None:
        """Creates a judge; the weights are loaded by the first check.

        Args:
            model: A cross-encoder for natural language inference to use instead of the bundled one:
                a folder, or ``org/name`` on the Hugging Face hub, which is then downloaded. Its
                probabilities are used as they are, not calibrated. None: the bundled model.
            language: Code of the language of all texts; None to detect it for each of them. The
                bundled model reads English only: if a claim or a reference is in another
                language, the verdict is that of ``LexicalJudge``, and ``Evaluation.notes`` says so.
            threads: Threads of one inference; at least 1.
            sure_from: A verdict is left undecided if its claim is neither so probably entailed nor
                so probably not; two numbers, or one for both, from 0.5, at which every verdict is
                decided, to 1. By default a refusal has to be surer: it sounds an alarm, and most
                claims of an application are true, unlike those that the probabilities were fitted
                to; and texts that the model cannot read are decided as by ``LexicalJudge()``. What
                a response and its ground truth say of each other is always decided.
            known_bytes: Memory for what the model said of pairs of texts, kept by a digest of the
                texts: a pair that comes again, in the same record or another, is not computed
                again. 0 to keep nothing.

        Raises:
            ConfigError: ``threads`` is less than 1, ``sure_from`` is not from 0.5 to 1 or not one
                or two numbers, or ``known_bytes`` is negative.
        """
        if threads < 1:
            raise ConfigError(f"threads={threads!r} is too low: use 1 or more")
        if known_bytes < 0:
            raise ConfigError(f"known_bytes={known_bytes!r} is negative: use 0 or more")
        self._model = None if model is None else str(model)
        self._known_bytes = known_bytes
        self._language = language
        self._threads = threads
        self._sure_from = checked_sure_from(sure_from)
        is_default = self._sure_from == _SURE_FROM
        self._words_sure_from = WORDS_SURE_FROM if is_default else self._sure_from
        self._lexical = LexicalJudge(language=language, sure_from=0.5)
        self._has_warned = False
        self._prepare()
        _judges.add(self)

    def _prepare(self) -> None:
        """Make what a forked child cannot take from its parent."""
        self._loaded: _Loaded | None = None
        self._loading = threading.Lock()
        self._shared = SharedReads(InferenceThread(self._threads))
        self._n_asked = 0

    def restart_in_child(self) -> None:
        """Begin anew in a forked child, which has none of the threads; it loads the model again."""
        if self._loaded is not None:
            keep_forever(self._loaded)
        self._prepare()

    blind_to: Final = "sums, and text in other languages than English"
    """As ``PartlyBlindJudge.blind_to``."""

    @property
    def name(self) -> str:
        """``local``, or ``local:MODEL`` for another model."""
        return "local" if self._model is None else f"local:{self._model}"

    @property
    def version(self) -> str:
        """Version of the verdicts; changes with weights, constants and the lexical judge."""
        return f"13+lexical.{self._lexical.version}"

    @property
    def pairs(self) -> PairCounts:
        """How many pairs were asked for, read and computed in this process so far."""
        encoder = self._loaded.encoder if self._loaded else None
        n_read, n_run = (encoder.n_read, encoder.n_run) if encoder else (0, 0)
        return PairCounts(self._n_asked, n_read, n_run)

    def arguments(self) -> dict[str, JsonValue]:
        """Returns the keyword arguments that make an equal judge in another process."""
        return {
            "model": self._model,
            "language": self._language,
            "threads": self._threads,
            "sure_from": list(self._sure_from),
            "known_bytes": self._known_bytes,
        }

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """As ``LexicalJudge.extract_claims``."""
        return await self._lexical.extract_claims(text, question=question)

    async def check_cells(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        question: str | None = None,
    ) -> VerdictMatrix:
        """As ``SparseJudge.check_cells``; None if the judge is not as sure as ``sure_from`` asks.

        Raises:
            MissingExtraError: onnxruntime, tokenizers or the weights are not installed.
            ConfigError: The weights are damaged, or there is no such model.
        """
        found, words = await self._verdicts(claims, references, cells, question)
        sure = self._sure(found, references, words)
        return matrix_of(sure, cells, (len(claims), len(references)))

    async def check_context(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        *,
        context: Sequence[int],
        question: str | None = None,
    ) -> VerdictMatrix:
        """As ``ContextJudge.check_context``.

        The context entails what one of its references entails. Of other claims, the sentences of
        all references that together have more of the claim than any one are read as one text.
        """
        width = len(references)
        wanted, single = context_cells(cells, context, width)
        found, words = await self._verdicts(claims, references, single, question)
        open_claims = {i: claims[i].text for i in wanted if not entails(found, i, context)}
        gathered = await gathered_beyond_one(
            open_claims, [references[j] for j in context], self._language
        )
        together, unread = await self._verdicts(
            [claims[i] for i in gathered],
            list(gathered.values()),
            {(at, at) for at in range(len(gathered))},
            question,
            goes_on=True,
        )
        found |= {(i, width): together[at, at] for at, i in enumerate(gathered)}
        words |= {(i, width) for at, i in enumerate(gathered) if (at, at) in unread}
        joint = with_joint(found, wanted, context, width)
        sure = self._sure(joint, references, words)
        return matrix_of(sure, cells, (len(claims), width + 1))

    def _sure(
        self, verdicts: Verdicts, references: Sequence[str], by_words: Collection[Cell]
    ) -> Verdicts:
        words = {cell: each for cell, each in verdicts.items() if cell in by_words}
        read = {cell: each for cell, each in verdicts.items() if cell not in by_words}
        return sure_verdicts(read, references, self._sure_from) | sure_verdicts(
            words, references, self._words_sure_from
        )

    # --- inference ---

    async def _verdicts(
        self,
        claims: Sequence[Claim],
        references: Sequence[str],
        cells: Collection[Cell],
        question: str | None,
        *,
        goes_on: bool = False,
    ) -> tuple[Verdicts, set[Cell]]:
        """Decides cells by words, and those that it can read by the model on its own thread.

        Returns:
            The verdicts, and the cells that the model cannot read.
        """
        claims, denials = affirmed(claims, question)
        matrix = await self._lexical.check_cells(claims, references, cells, question=question)
        found = {(i, j): cell for i, j in cells if (cell := matrix[i][j])}
        self._n_asked += len(found)
        texts = [readable_claim(claim, question) for claim in claims]
        shown = [as_read(reference, question) for reference in references]
        readable = self._readable(texts, shown, found, question)
        unread = found.keys() - readable.keys()
        if readable:
            asked = Question(texts, shown, readable, self._language, question)
            decided = await self._shared.run(partial(self._begin, asked), goes_on=goes_on)
            if decided.n_cut:
                add_note(CUT, decided.n_cut)
            found = found | decided_by_words(
                claims, references, question, words=readable, others=decided.verdicts
            )
        verdicts = {
            (i, j): inverted(verdict) if i in denials else verdict
            for (i, j), verdict in found.items()
        }
        return verdicts, unread

    def _readable(
        self,
        claims: Sequence[str],
        references: Sequence[str],
        lexical: Verdicts,
        question: str | None,
    ) -> Verdicts:
        """The cells that the model can read; notes the others, and warns of them once."""
        if self._model is not None:
            return lexical
        rows, columns = readable_cells(claims, references, self._language, question)
        readable = {
            (i, j): verdict for (i, j), verdict in lexical.items() if i in rows and j in columns
        }
        unread = len(lexical) - len(readable)
        if unread:
            add_note(OTHER_LANGUAGE, unread)
        if unread and not self._has_warned:
            self._has_warned = True
            _LOG.warning(
                "the local judge knows English only: texts in other languages are judged by their "
                "words, numbers and names alone"
            )
        return readable

    def _begin(self, asked: Question, stop: Stop) -> Work:
        stop()
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            encoder, verdicts = self._loaded
        return Work(encoder, verdicts(asked, stop))

    def _load(self) -> _Loaded:
        if self._model is None:
            files = bundled_files()
            verdicts = partial(bundled_verdicts, bundled_combination())
        else:
            files, labels = find_pretrained(self._model)
            verdicts = partial(pretrained_verdicts, labels)
        encoder = CrossEncoder(files, threads=self._threads, known_bytes=self._known_bytes)
        return _Loaded(encoder, verdicts)


class _Loaded(NamedTuple):
    encoder: CrossEncoder
    verdicts: Callable[[Question, Stop], Reads]


_judges: Final[WeakSet[LocalJudge]] = WeakSet()


def _restart_all_in_child() -> None:
    for judge in list(_judges):
        judge.restart_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_restart_all_in_child)
