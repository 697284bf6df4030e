"""``LocalJudge``: judges on the CPU of the worker, without a key or a network."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Final, NamedTuple, cast
from weakref import WeakSet

from claimspan.cost.usage import add_note
from claimspan.errors import ConfigError
from claimspan.judges.lexical.judge import LexicalJudge, abstention_discount, discounted
from claimspan.judges.local.cross_encoder import CrossEncoder, ModelFiles, TextPair
from claimspan.judges.local.features import cell_features, lexical_features
from claimspan.judges.local.inherited import keep_forever
from claimspan.judges.local.language import ReadableCells, readable_cells
from claimspan.judges.local.pretrained import PretrainedModel, find_pretrained
from claimspan.judges.local.regression import LABELS, VerdictRegression, softmax_verdict
from claimspan.judges.local.windows import Passage
from claimspan.judges.values import is_bare_value
from claimspan.text.languages import detect_language
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = ["BUNDLED_MODEL", "OTHER_LANGUAGE", "WEIGHTS", "LocalJudge"]

WEIGHTS: Final = Path(__file__).parent / "weights"
"""Folder of the bundled model, its fitted constants and its model card."""

BUNDLED_MODEL: Final = ModelFiles(
    WEIGHTS / "local.onnx",
    WEIGHTS / "tokenizer.json",
    {
        "local.onnx": "58fd18e784925c4f060f340ddc6dab6586b072262de695b205b13678f5aaea2c",
        "tokenizer.json": "9114256b104cca80e04367526f03f46aa3c443c2ed174904142a73bbf13b9fbb",
    },
)
"""The cross-encoder that claimspan carries, with the digests of its files."""

OTHER_LANGUAGE: Final = "not English: judged by words, numbers and names alone"
"""Note in ``Evaluation.notes``, and on the span, for verdicts without the cross-encoder."""

# A shorter reference is always read: one sentence may paraphrase a claim without a common word.
# See ``VerdictRegression.skip_below``.
_LONG_REFERENCE_WORDS: Final = 60
# Score of a label that a pretrained model does not have: its probability becomes 0.
_NO_SUCH_LABEL: Final = -1e9

_LOG: Final = logging.getLogger("claimspan")

DecidedRows = Sequence[Sequence[Verdict]]
"""Rows of verdicts without undecided cells, shape ``(n_claims, n_references)``."""


class _Cell(NamedTuple):
    """A claim and a reference that the cross-encoder reads, and the pairs that it reads."""

    row: int
    column: int
    pairs: list[TextPair]


class LocalJudge:
    """Judges with a small cross-encoder and the lexical judge, combined and calibrated.

    Claims are those of ``LexicalJudge``. The features of a verdict are the lexical verdict, the
    cross-encoder's logits in up to four windows of the reference, and how far the windows disagree;
    a logistic regression, fitted to people's labels, turns them into probabilities. One window of a
    long reference gathers the sentences from several places that match the claim. A reference of 60
    words or more that has too few of a claim's words is not read: 99.5 % of the entailed claims of
    every set lie above that bound. Bare values, which have no words for a cross-encoder to read,
    are judged as by ``LexicalJudge``.

    On the test halves of eight sets the mean AUROC of ``entailed`` is .834, where ``LexicalJudge``
    has .782; trained without the set that is measured it is .820. The expected calibration error
    is .034. Figures by set, and known weaknesses: ``weights/MODEL_CARD.md``.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        language: str | None = None,
        threads: int = 1,
        sure_from: float = 0.0,
    ) -> None:
        """Creates a judge; the weights are loaded by the first check.

        Args:
            model: A cross-encoder for natural language inference to use instead of the bundled one:
                a folder, or ``org/name`` on the Hugging Face hub, which is then downloaded. Its
                probabilities are used as they are, not calibrated. None: the bundled model.
            language: Code of the language of all texts; None to detect it for each of them. The
                bundled model reads English only: where a claim or a reference is in another
                language, the verdict is that of ``LexicalJudge``, and ``Evaluation.notes`` says so.
            threads: Threads of one inference; at least 1.
            sure_from: A cell whose most probable label has a lower probability than this is left
                undecided, from 0 to 1; at 0 every cell is decided.

        Raises:
            ConfigError: ``threads`` is less than 1, or ``sure_from`` is not from 0 to 1.
        """
        if threads < 1:
            raise ConfigError(f"threads={threads!r} is too low: use 1 or more")
        if not 0 <= sure_from <= 1:
            raise ConfigError(f"sure_from={sure_from!r} is not a probability: use 0 to 1")
        self._model = None if model is None else str(model)
        self._language = language
        self._threads = threads
        self._sure_from = sure_from
        self._lexical = LexicalJudge(language=language)
        self._has_warned = False
        self._prepare()
        _judges.add(self)

    def _prepare(self) -> None:
        """Make what a forked child cannot take from its parent."""
        self._loaded: CrossEncoder | None = None
        self._loading = threading.Lock()
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="claimspan-local-judge")

    def restart_in_child(self) -> None:
        """Begin anew in a forked child, which has none of the threads; it loads the model again."""
        if self._loaded is not None:
            keep_forever(self._loaded)
        self._prepare()

    @property
    def name(self) -> str:
        """``local``, or ``local:MODEL`` for another model."""
        return "local" if self._model is None else f"local:{self._model}"

    @property
    def version(self) -> str:
        """Version of the verdicts; changes with weights, constants and the lexical judge."""
        return f"3+lexical.{self._lexical.version}"

    async def extract_claims(self, text: str, *, question: str | None = None) -> list[Claim]:
        """Returns the clauses of a text that assert something, as ``LexicalJudge`` does.

        Args:
            text: A response or a ground truth.
            question: Ignored.
        """
        return await self._lexical.extract_claims(text, question=question)

    async def check(
        self, claims: Sequence[Claim], references: Sequence[str], *, question: str | None = None
    ) -> VerdictMatrix:
        """Returns a verdict with probabilities for every claim against every reference.

        Args:
            claims: The claims to check.
            references: The texts to check against, each on its own.
            question: The query, where known; only claims that are bare values are read by it.

        Returns:
            A matrix of shape ``(len(claims), len(references))``; a cell is None where its most
            probable label is less probable than ``sure_from``.

        Raises:
            MissingExtraError: onnxruntime or tokenizers is not installed.
            ConfigError: The weights are missing or damaged, or there is no such model.
        """
        matrix = await self._lexical.check(claims, references, question=question)
        # The lexical judge decides every cell.
        lexical = cast("DecidedRows", matrix.rows)
        texts = [claim.text for claim in claims]
        cells = self._readable(texts, references)
        if cells.unread:
            add_note(OTHER_LANGUAGE, cells.unread)
        verdicts = [list(row) for row in lexical]
        if cells.rows and cells.columns:
            read = await self._off_the_loop(
                [texts[row] for row in cells.rows],
                [references[column] for column in cells.columns],
                [[lexical[row][column] for column in cells.columns] for row in cells.rows],
            )
            for row, cells_of_row in zip(cells.rows, read, strict=True):
                for column, verdict in zip(cells.columns, cells_of_row, strict=True):
                    verdicts[row][column] = verdict
        return self._sure_cells(verdicts, len(references))

    def _sure_cells(self, rows: DecidedRows, n_references: int) -> VerdictMatrix:
        """Leaves the cells undecided that the judge is not sure enough of."""
        sure = [
            [cell if _confidence(cell) >= self._sure_from else None for cell in row] for row in rows
        ]
        return VerdictMatrix.of(sure, n_references)

    # --- language ---

    def _readable(self, claims: Sequence[str], references: Sequence[str]) -> ReadableCells:
        """Returns the cells that the model can read; warns once where there are others."""
        if self._model is not None:
            return ReadableCells(range(len(claims)), range(len(references)), 0)
        cells = readable_cells(claims, references, self._language)
        if cells.unread and not self._has_warned:
            self._has_warned = True
            _LOG.warning(
                "the local judge knows English only: texts in other languages are judged by their "
                "words, numbers and names alone"
            )
        return cells

    # --- inference ---

    async def _off_the_loop(
        self, claims: Sequence[str], references: Sequence[str], lexical: DecidedRows
    ) -> DecidedRows:
        """Runs the inference on the judge's own thread, so that the event loop stays free."""
        verdicts = self._bundled_verdicts if self._model is None else self._pretrained_verdicts
        work = partial(verdicts, claims, references, lexical)
        try:
            future = asyncio.get_running_loop().run_in_executor(self._executor, work)
        except RuntimeError:
            # At the end of the interpreter threads take no new work, but this one may finish.
            return work()
        return await future

    def _bundled_verdicts(
        self, claims: Sequence[str], references: Sequence[str], lexical: DecidedRows
    ) -> DecidedRows:
        """Combines the lexical verdicts with the bundled model's logits where it reads a cell."""
        regression = self._regression
        rows = [[regression.verdict(lexical_features(cell)) for cell in row] for row in lexical]
        for cell, logits in self._read(self._cells(claims, references, lexical)):
            features = cell_features(lexical[cell.row][cell.column], logits)
            rows[cell.row][cell.column] = regression.verdict(features)
        factors = [abstention_discount(reference) for reference in references]
        return [
            words
            if is_bare_value(claim)
            else [discounted(cell, factor) for cell, factor in zip(row, factors, strict=True)]
            for claim, words, row in zip(claims, lexical, rows, strict=True)
        ]

    def _read(self, cells: Sequence[_Cell]) -> Iterator[tuple[_Cell, list[list[float]]]]:
        """Yields every cell with the logits of its pairs, all computed in one call."""
        logits = iter(self._encoder.logits([pair for cell in cells for pair in cell.pairs]))
        for cell in cells:
            yield cell, [next(logits) for _ in cell.pairs]

    def _cells(
        self, claims: Sequence[str], references: Sequence[str], lexical: DecidedRows
    ) -> list[_Cell]:
        """Returns the cells that may be entailed, each with the pairs that the model reads."""
        passages = [Passage(reference, self._language or "en") for reference in references]
        is_long = [len(reference.split()) >= _LONG_REFERENCE_WORDS for reference in references]
        cells: list[_Cell] = []
        for row, claim in enumerate(claims):
            if is_bare_value(claim):
                continue
            for column, (passage, verdict) in enumerate(zip(passages, lexical[row], strict=True)):
                if is_long[column] and _support(verdict) < self._regression.skip_below:
                    continue
                if pairs := [(claim, window) for window in passage.windows_for(claim)]:
                    cells.append(_Cell(row, column, pairs))
        return cells

    def _pretrained_verdicts(
        self, claims: Sequence[str], references: Sequence[str], _lexical: DecidedRows
    ) -> DecidedRows:
        """Returns the verdicts of a model by others, in the best window of every reference."""
        shown = [
            Passage(each, self._language or detect_language(each) or "en").windows or [""]
            for each in references
        ]
        pairs = [(window, claim) for claim in claims for each in shown for window in each]
        logits = iter(self._encoder.logits(pairs))
        labels = self._pretrained.labels
        return [[_best_window_verdict([next(logits) for _ in each], labels) for each in shown]
                for _ in claims]  # fmt: skip

    @cached_property
    def _regression(self) -> VerdictRegression:
        return VerdictRegression.read(WEIGHTS / "combination.json")

    @cached_property
    def _pretrained(self) -> PretrainedModel:
        return find_pretrained(self._model or "")

    @property
    def _encoder(self) -> CrossEncoder:
        # No cached_property: before Python 3.12 it has a lock, which a fork may leave locked.
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> CrossEncoder:
        if self._model is None:
            return CrossEncoder(BUNDLED_MODEL, threads=self._threads)
        return CrossEncoder(self._pretrained.files, threads=self._threads, premise_first=True)


_judges: Final[WeakSet[LocalJudge]] = WeakSet()


def _restart_all_in_child() -> None:
    for judge in list(_judges):
        judge.restart_in_child()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_restart_all_in_child)


def _support(verdict: Verdict) -> float:
    """Returns the probability that the reference is about the claim at all."""
    return (verdict.entailed or 0.0) + (verdict.contradicted or 0.0)


def _confidence(verdict: Verdict) -> float:
    return max(verdict.entailed or 0.0, verdict.neutral or 0.0, verdict.contradicted or 0.0)


def _best_window_verdict(windows: Sequence[Sequence[float]], labels: Sequence[Label]) -> Verdict:
    """Returns the verdict of the window with the highest p(entailed), not calibrated."""

    def verdict(logits: Sequence[float]) -> Verdict:
        by_label = dict(zip(labels, logits, strict=True))
        return softmax_verdict([by_label.get(label, _NO_SUCH_LABEL) for label in LABELS])

    return max(map(verdict, windows), key=lambda each: each.entailed or 0.0)
