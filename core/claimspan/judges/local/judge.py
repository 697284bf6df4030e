"""The judge that runs in the worker, on a CPU, without a key or a network."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Final, NamedTuple

from claimspan.cost.usage import add_note
from claimspan.errors import ConfigError
from claimspan.judges.lexical.coverage import tokenize
from claimspan.judges.lexical.judge import LexicalJudge, share_left, weakened
from claimspan.judges.lexical.values import bare_values
from claimspan.judges.local.combination import (
    LABELS,
    Combination,
    distribution,
    evidence,
    lexical_evidence,
)
from claimspan.judges.local.cross_encoder import CrossEncoder, ModelFiles, TextPair
from claimspan.judges.local.published import Published, find_published
from claimspan.judges.local.windows import Passage
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = ["FILES", "OTHER_LANGUAGE", "WEIGHTS", "LocalJudge"]

WEIGHTS: Final = Path(__file__).parent / "weights"
FILES: Final = ModelFiles(
    WEIGHTS / "local.onnx",
    WEIGHTS / "tokenizer.json",
    {
        "local.onnx": "58fd18e784925c4f060f340ddc6dab6586b072262de695b205b13678f5aaea2c",
        "tokenizer.json": "9114256b104cca80e04367526f03f46aa3c443c2ed174904142a73bbf13b9fbb",
    },
)

# One sentence may say a claim in other words altogether. A passage that has few of a claim's words
# does not speak of it: see ``Combination.skip_below``.
_LONG_WORDS: Final = 60

# A text of any length in English has one word in five of these; other languages share few.
_ENGLISH: Final = frozenset(
    "the of and to in is was for that it with as on by are from at an be this which or were has "
    "have had not but its his her they their can who will what when how you does did do".split()
)
_ENGLISH_SHARE: Final = 0.08
_ENOUGH_WORDS: Final = 20

OTHER_LANGUAGE: Final = "not English: judged by words, numbers and names alone"
"""Stands in ``Evaluation.notes``, and on the span."""

_LOG: Final = logging.getLogger("claimspan")


class _Cell(NamedTuple):
    """A claim and a reference that the cross-encoder is asked about."""

    row: int
    column: int
    pairs: list[TextPair]


class LocalJudge:
    """Words, numbers and names, and a small cross-encoder, weighed together and calibrated.

    Claims are those of ``LexicalJudge``. Its lexical evidence, the verdict of the cross-encoder in
    the best of up to four windows of a reference, and the windows' disagreement go through one
    logistic regression, fitted to people's labels. Of a long reference one window gathers what is
    said of the claim in several places. A passage of 60 words or more that has too few of a claim's
    words is not read: 99.5 % of the entailed claims of every set lie above that bound. Bare values
    are judged by ``LexicalJudge``.

    On the test halves of eight sets the mean AUROC of ``entailed`` is .834, where ``LexicalJudge``
    has .782; trained without the set that is measured it is .820. The expected calibration error
    is .034. Set by set, with what it is bad at: ``weights/MODEL_CARD.md``.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        language: str = "en",
        threads: int = 1,
        sure_from: float = 0.0,
    ) -> None:
        """Make a judge; weights are loaded at the first check.

        Args:
            model: Another cross-encoder for natural language inference: a folder, or ``org/name``
                on the Hugging Face hub, which is then downloaded. None is the one that claimspan
                carries. Another model's probabilities are taken as they are, not calibrated.
            language: Code of the language whose abbreviations the sentence splitter knows. The
                carried model knows English; for any other language, also where the texts show it
                themselves, verdicts are those of ``LexicalJudge``; ``Evaluation.notes`` says so.
            threads: Threads of one inference.
            sure_from: A cell whose most probable label is less probable than this is None, not
                sure; at 0 every cell is decided.

        Raises:
            ConfigError: ``threads`` is less than 1, or ``sure_from`` not from 0 to 1.
        """
        if threads < 1:
            raise ConfigError(f"threads={threads} is less than 1")
        if not 0 <= sure_from <= 1:
            raise ConfigError(f"sure_from={sure_from} is no probability from 0 to 1")
        self._model = None if model is None else str(model)
        self._language = language
        self._threads = threads
        self._sure_from = sure_from
        self._lexical = LexicalJudge(language=language)
        self._loading = threading.Lock()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="claimspan-local-judge")
        self._has_warned = False

    @property
    def name(self) -> str:
        """``local``, or ``local:`` and the model."""
        return "local" if self._model is None else f"local:{self._model}"

    @property
    def version(self) -> str:
        """Changes with the weights, with every constant, and with the lexical judge's version."""
        return f"2+lexical.{self._lexical.version}"

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """The clauses of the text that assert something, each with the sentence it came from."""
        return await self._lexical.extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """A verdict for every cell; None where ``sure_from`` is not reached.

        Raises:
            MissingExtraError: onnxruntime or tokenizers is not installed.
            ConfigError: The weights are missing or damaged, or there is no such model.
        """
        lexical = await self._lexical.check(claims, references, question=question)
        if not self._is_understood(claims, references):
            add_note(OTHER_LANGUAGE, len(claims) * len(references))
            return self._sure(lexical.rows, len(references))
        texts = [claim.text for claim in claims]
        given = lexical if self._model is None else None
        rows = await self._off_the_loop(texts, references, given)
        return self._sure(rows, len(references))

    def _sure(self, rows: Sequence[Sequence[Verdict | None]], n_references: int) -> VerdictMatrix:
        return VerdictMatrix.of(
            [[cell if cell and _confidence(cell) >= self._sure_from else None for cell in row]
             for row in rows], n_references,
        )  # fmt: skip

    # --- language ---

    def _is_understood(self, claims: Sequence[Claim], references: Sequence[str]) -> bool:
        if self._model is not None:
            return True
        # All texts at once: one chunk may be a table or code, and have no word of any language.
        texts = (*(claim.text for claim in claims), *references)
        understood = self._language == "en" and _may_be_english(" ".join(texts))
        if not understood and not self._has_warned:
            self._has_warned = True
            _LOG.warning(
                "the local judge knows English only: texts in other languages are judged by their "
                "words, numbers and names alone"
            )
        return understood

    # --- inference ---

    async def _off_the_loop(
        self, claims: Sequence[str], references: Sequence[str], lexical: VerdictMatrix | None
    ) -> list[list[Verdict]]:
        work = partial(self._verdicts, claims, references, lexical)
        try:
            future = asyncio.get_running_loop().run_in_executor(self._executor, work)
        except RuntimeError:
            # The interpreter is ending: no thread takes new work, but this one may finish its own.
            return work()
        return await future

    def _verdicts(
        self, claims: Sequence[str], references: Sequence[str], lexical: VerdictMatrix | None
    ) -> list[list[Verdict]]:
        if lexical is None:
            return self._published_verdicts(claims, references)
        rows = [[self._combination.verdict(lexical_evidence(_given(cell))) for cell in row]
                for row in lexical.rows]  # fmt: skip
        for cell, found in self._read(self._cells(claims, references, lexical)):
            words = _given(lexical[cell.row][cell.column])
            rows[cell.row][cell.column] = self._combination.verdict(evidence(words, found))
        left = [share_left(reference) for reference in references]
        rows = [[weakened(cell, share) for cell, share in zip(row, left, strict=True)]
                for row in rows]  # fmt: skip
        return [
            list(map(_given, words)) if _is_value(claim) else row
            for claim, words, row in zip(claims, lexical.rows, rows, strict=True)
        ]

    def _read(self, cells: Sequence[_Cell]) -> Iterator[tuple[_Cell, list[list[float]]]]:
        """Every cell with the logits of its pairs."""
        logits = iter(self._encoder.logits([pair for cell in cells for pair in cell.pairs]))
        for cell in cells:
            yield cell, [next(logits) for _ in cell.pairs]

    def _cells(
        self, claims: Sequence[str], references: Sequence[str], lexical: VerdictMatrix
    ) -> list[_Cell]:
        """The cells that could be entailed, each with the pairs to ask about."""
        passages = [Passage(reference, self._language) for reference in references]
        is_long = [len(reference.split()) >= _LONG_WORDS for reference in references]
        found: list[_Cell] = []
        for row, claim in enumerate(claims):
            if _is_value(claim):
                continue
            for column, (passage, verdict) in enumerate(zip(passages, lexical[row], strict=True)):
                if is_long[column] and _support(verdict) < self._combination.skip_below:
                    continue
                if pairs := [(claim, window) for window in passage.shown(claim)]:
                    found.append(_Cell(row, column, pairs))
        return found

    def _published_verdicts(
        self, claims: Sequence[str], references: Sequence[str]
    ) -> list[list[Verdict]]:
        shown = [Passage(each, self._language).windows or [""] for each in references]
        pairs = [(window, claim) for claim in claims for each in shown for window in each]
        logits = iter(self._encoder.logits(pairs))
        labels = self._published.labels
        return [[_most_entailed([next(logits) for _ in each], labels) for each in shown]
                for _ in claims]  # fmt: skip

    @cached_property
    def _combination(self) -> Combination:
        return Combination.read(WEIGHTS / "combination.json")

    @cached_property
    def _published(self) -> Published:
        return find_published(self._model or "")

    @property
    def _encoder(self) -> CrossEncoder:
        with self._loading:
            return self._loaded

    @cached_property
    def _loaded(self) -> CrossEncoder:
        if self._model is None:
            return CrossEncoder(FILES, threads=self._threads)
        return CrossEncoder(self._published.files, threads=self._threads, premise_first=True)


def _given(verdict: Verdict | None) -> Verdict:
    """The lexical judge decides every cell."""
    if verdict is None:
        raise AssertionError("the lexical judge left a cell undecided")
    return verdict


def _is_value(claim: str) -> bool:
    """A bare value has no words that a cross-encoder could read."""
    return bool(bare_values(tokenize(claim)))


def _support(verdict: Verdict | None) -> float:
    decided = _given(verdict)
    return (decided.entailed or 0.0) + (decided.contradicted or 0.0)


def _confidence(verdict: Verdict) -> float:
    return max(verdict.entailed or 0.0, verdict.neutral or 0.0, verdict.contradicted or 0.0)


def _may_be_english(text: str) -> bool:
    """Whether nothing speaks against English: a short text tells nothing."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    if sum(not word.isascii() for word in words) > len(words) / 4:
        return False
    if len(words) < _ENOUGH_WORDS:
        return True
    return sum(word in _ENGLISH for word in words) >= _ENGLISH_SHARE * len(words)


def _most_entailed(windows: Sequence[Sequence[float]], labels: Sequence[Label]) -> Verdict:
    """The verdict of the window that says most of the claim, in the model's own probabilities."""

    def verdict(logits: Sequence[float]) -> Verdict:
        by_label = dict(zip(labels, logits, strict=True))
        return distribution([by_label.get(label, -1e9) for label in LABELS])

    return max(map(verdict, windows), key=lambda each: each.entailed or 0.0)
