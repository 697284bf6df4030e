"""Decides which cells a cross-encoder reads, and turns what it says into verdicts."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from claimspan.judges.lexical.cell_verdicts import abstention_discount, discounted
from claimspan.judges.lexical.cells import Verdicts, blocks_of
from claimspan.judges.lexical.changed_copies import is_restated, with_changes
from claimspan.judges.lexical.coverage import Reference
from claimspan.judges.lexical.gathering import Wanted, wanted_of
from claimspan.judges.local.background import Stop
from claimspan.judges.local.cross_encoder import Reading, TextPair
from claimspan.judges.local.features import cell_features, lexical_features
from claimspan.judges.local.regression import LABELS, VerdictRegression, softmax_verdict
from claimspan.judges.local.windows import Passage
from claimspan.judges.protocol import Cell
from claimspan.judges.references import AnswerText
from claimspan.judges.values import StatedValues, is_bare_value, with_values
from claimspan.text.languages import detect_language
from claimspan.verdicts import Label, Verdict

__all__ = ["Decided", "Question", "Reads", "bundled_verdicts", "pretrained_verdicts"]

# References are read in the order of their promise. After so many in a row that are less probable
# than this to entail the claim, those that promise less are not read: on the tune half of
# refchecker_msmarco, ten passages a claim, that leaves 63 % of the cells to read, and loses .4 % of
# those that the model calls entailed. ``tests/benchmarks/local_skips.py`` has the test halves.
#
# No reference is ruled out by its words alone. Bounds on the words that it shares with a claim
# saved 5 % of the cells there, and left 1 to 4 % of the claims that people call entailed without
# any reference in five of ten sets.
PATIENCE: Final = 2
_HOPELESS_BELOW: Final = 0.2
# People call each of the 113 claims of the tune halves entailed that are a sentence of their
# reference word for word. One wrong in a hundred is what so many can show.
_QUOTED: Final = Verdict(label=Label.ENTAILED, entailed=0.98, neutral=0.01, contradicted=0.01)
# Score of a label that a pretrained model does not have: its probability becomes 0.
_NO_SUCH_LABEL: Final = -1e9


class Question(NamedTuple):
    """The texts of one call, and what words alone say of the cells that are asked for."""

    claims: Sequence[str]
    references: Sequence[str]
    lexical: Mapping[Cell, Verdict]
    language: str | None
    """Code of the language of the references; None to detect it."""

    text: str | None = None
    """The question itself; None where unknown."""


class Decided(NamedTuple):
    """The verdicts of a call."""

    verdicts: Verdicts
    n_read: int
    """Number of cells that the model has read."""

    n_cut: int
    """Number of these whose texts are longer than the model reads."""


Reads: TypeAlias = Generator[Sequence[TextPair], Reading, Decided]
"""Yields the pairs to read next, is sent what the model says of them, and returns the verdicts."""


@dataclass
class _Row:
    """A claim in one block, and how far its references are read."""

    claim: Wanted
    """The words of the claim."""

    cells: list[Cell]
    """The cells to read, the most promising first."""

    n_read: int = 0
    n_hopeless: int = 0
    """How many of the last ones in a row did not entail the claim."""

    def next_cells(self) -> list[Cell]:
        """Returns the cells to read now; none where no more of them may entail the claim."""
        return self.cells[self.n_read : self.n_read + PATIENCE - self.n_hopeless]

    def note(self, entailed: float) -> None:
        """Notes what the model has said of the next cell."""
        self.n_read += 1
        self.n_hopeless = self.n_hopeless + 1 if entailed < _HOPELESS_BELOW else 0


def bundled_verdicts(regression: VerdictRegression, asked: Question, stop: Stop) -> Reads:
    """Combines the lexical verdicts with the bundled model's logits where it reads a cell.

    Args:
        regression: The fitted combination.
        asked: Texts and lexical verdicts.
        stop: Called for each reference that is cut into sentences, and between cells.
    """
    passages = _passages(asked, stop)
    verdicts = {
        cell: regression.verdict(lexical_features(words)) for cell, words in asked.lexical.items()
    }
    n_read, n_cut = 0, 0
    quoted = {(i, j) for i, j in asked.lexical if passages[j].quotes(asked.claims[i])}
    rows = _rows(asked, passages, quoted)
    while pairs := {cell: pair for cell, pair in _next_pairs(rows, asked, passages)}:
        found = yield list(pairs.values())
        n_read, n_cut = n_read + len(pairs), n_cut + sum(found.cut)
        for cell, logits in zip(pairs, found.logits, strict=True):
            verdicts[cell] = regression.verdict(cell_features(asked.lexical[cell], [logits]))
        for row in rows:
            for cell in row.next_cells():
                row.note(verdicts[cell].entailed or 0.0)
    decided = _with_words_alone(verdicts, asked, stop)
    for i, j in quoted:  # an answer that declines supports little, whatever it repeats
        decided[i, j] = discounted(_QUOTED, abstention_discount(asked.references[j]))
    return Decided(decided, n_read, n_cut)


def pretrained_verdicts(labels: Sequence[Label], asked: Question, stop: Stop) -> Reads:
    """Returns the verdicts of a model by others, in the best window of every reference.

    Args:
        labels: The label of every logit.
        asked: Texts, and the cells to decide.
        stop: Called for each reference that is cut into sentences.
    """
    passages = _passages(asked, stop)
    shown = {
        (i, j): [(window, asked.claims[i]) for window in passages[j].windows or [""]]
        for i, j in asked.lexical
    }
    found = yield [pair for pairs in shown.values() for pair in pairs]
    logits, cut = iter(found.logits), iter(found.cut)
    verdicts: Verdicts = {}
    n_cut = 0
    for cell, pairs in shown.items():
        verdicts[cell] = _best_window_verdict([next(logits) for _ in pairs], labels)
        n_cut += any([next(cut) for _ in pairs])
    return Decided(verdicts, len(verdicts), n_cut)


def _passages(asked: Question, stop: Stop) -> dict[int, Passage]:
    """Cuts the references that any cell is about."""
    passages: dict[int, Passage] = {}
    for j in sorted({j for _, j in asked.lexical}):
        stop()
        text = asked.references[j]
        passages[j] = Passage(text, asked.language or detect_language(text) or "en")
    return passages


def _rows(
    asked: Question,
    passages: Mapping[int, Passage],
    quoted: Set[Cell],
) -> list[_Row]:
    """Returns the cells that the model has to decide, by claim and block."""
    rows: list[_Row] = []
    for block in blocks_of(asked.lexical):
        for i in block.claims:
            if is_bare_value(asked.claims[i]):
                continue
            open_cells = {(i, j) for j in block.references if passages[j].sentences}
            cells = _by_promise(open_cells - quoted, asked)
            rows.append(_Row(wanted_of(asked.claims[i]), cells))
    return rows


def _by_promise(cells: Set[Cell], asked: Question) -> list[Cell]:
    return sorted(cells, key=lambda cell: (-_support(asked.lexical[cell]), cell))


def _next_pairs(
    rows: Sequence[_Row], asked: Question, passages: Mapping[int, Passage]
) -> Iterator[tuple[Cell, TextPair]]:
    for row in rows:
        for i, j in row.next_cells():
            yield (i, j), (asked.claims[i], passages[j].window(row.claim))


def _with_words_alone(verdicts: Verdicts, asked: Question, stop: Stop) -> Verdicts:
    """Returns the verdicts with what words alone tell.

    That is all of a bare value, one change in a copied sentence, the numbers and dates that a
    reference has otherwise, lacks, or gives in another form, and less support by what declines to
    answer.
    """
    words = _Words(asked)
    bare = {i for i in {i for i, _ in verdicts} if is_bare_value(asked.claims[i])}
    decided: Verdicts = {}
    for (i, j), verdict in verdicts.items():
        # Each cell holds the interpreter's lock for a millisecond or so; others wait for it.
        stop()
        decided[i, j] = asked.lexical[i, j] if i in bare else words.applied_to(verdict, (i, j))
    return decided


class _Words:
    """What words tell of the cells of one call; every reference is read once."""

    def __init__(self, asked: Question) -> None:
        self._asked = asked
        columns = sorted({j for _, j in asked.lexical})
        self._factors = {j: abstention_discount(asked.references[j]) for j in columns}
        self._stated = {j: StatedValues(asked.references[j]) for j in columns}
        self._question = StatedValues(asked.text or "")
        self._read: dict[int, Reference] = {}

    def applied_to(self, verdict: Verdict, cell: Cell) -> Verdict:
        i, j = cell
        claim, reference, stated = self._asked.claims[i], self._asked.references[j], self._stated[j]
        words = self._asked.lexical[cell]
        # The model takes "0.5 g" for another value than "500 mg".
        if _more_entailed(words, verdict) and is_restated(claim, reference, stated):
            verdict = words
        if verdict.label is Label.ENTAILED and not isinstance(reference, AnswerText):
            verdict = with_changes(verdict, claim, self._reference(j), stated)
        question = self._question if isinstance(reference, AnswerText) else None
        verdict = with_values(verdict, claim, stated, question)
        return discounted(verdict, self._factors[j])

    def _reference(self, j: int) -> Reference:
        if j not in self._read:
            self._read[j] = Reference(self._asked.references[j], self._asked.language)
        return self._read[j]


def _more_entailed(one: Verdict, other: Verdict) -> bool:
    return (one.entailed or 0.0) > (other.entailed or 0.0)


def _support(verdict: Verdict) -> float:
    """Returns the probability that the reference is about the claim at all."""
    return (verdict.entailed or 0.0) + (verdict.contradicted or 0.0)


def _best_window_verdict(windows: Sequence[Sequence[float]], labels: Sequence[Label]) -> Verdict:
    """Returns the verdict of the window with the highest p(entailed), not calibrated."""

    def verdict(logits: Sequence[float]) -> Verdict:
        by_label = dict(zip(labels, logits, strict=True))
        return softmax_verdict([by_label.get(label, _NO_SUCH_LABEL) for label in LABELS])

    return max(map(verdict, windows), key=lambda each: each.entailed or 0.0)
