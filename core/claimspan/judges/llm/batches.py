"""Plans of checks: which claims and which references go into one call."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from math import ceil
from operator import itemgetter
from typing import Final, NamedTuple

from claimspan.judges.protocol import Cell
from claimspan.text.tokens import token_upper_bound
from claimspan.verdicts import Label, Verdict

__all__ = [
    "MAX_NEAR",
    "MAX_REFERENCE_TOKENS",
    "CheckBatch",
    "Context",
    "joint_batches",
    "plan_batches",
]

MAX_CELLS: Final = 600
"""Cells in one call: their labels take about 2,000 tokens, which common models can still write."""

MAX_REFERENCE_TOKENS: Final = 12_000
"""Tokens of the references in one call; models overlook the middle of longer prompts."""

MAX_NEAR: Final = 10
"""References in a call for joint verdicts alone, the nearest ones; as many as a call usually has.
"""

_Limits = tuple[int | None, float]
"""Most references in one call, None for any number; and most of their tokens."""

_LONG_WORD: Final = re.compile(r"\w{4,}")
_MAX_CHARACTERS: Final = 20_000  # 2 ms; enough to tell whether a reference is about a claim


class Context(NamedTuple):
    """The references that are read together, and the column of the verdicts on all of them."""

    ranks: Mapping[int, int]
    """Index of each of them to its rank, from 1; in the order of the ranks."""

    distinct: tuple[int, ...]
    """Those to read: without blank ones, and without those whose text comes before."""

    column: int
    """Index of the column."""

    @classmethod
    def of(cls, indices: Sequence[int], references: Sequence[str]) -> Context:
        """The context of these references, in the order of their rank; empty for none of them."""
        by_text: dict[str, int] = {}
        for j in indices:
            if references[j].strip():
                by_text.setdefault(references[j], j)
        ranks = {j: rank for rank, j in enumerate(indices, start=1)}
        return cls(ranks, tuple(by_text.values()), len(references))


class CheckBatch(NamedTuple):
    """The texts of one call by their index in the whole matrix, and the cells to decide."""

    claims: Mapping[int, str]
    references: Mapping[int, str]
    cells: frozenset[Cell]
    context: Context
    """What is read together, where a cell is in its column."""

    @property
    def is_joint(self) -> bool:
        """Whether a verdict on the context as a whole is to be decided."""
        return any(j == self.context.column for _, j in self.cells)

    @property
    def is_joint_only(self) -> bool:
        """Whether no other verdict is."""
        return all(j == self.context.column for _, j in self.cells)

    @property
    def reference_tokens(self) -> float:
        """An upper estimate of the tokens of the references."""
        return sum(map(_tokens, self.references.values()))

    def halves(self) -> list[CheckBatch]:
        """Two batches of half the references, or of half the claims if there is one reference.

        None of them reads the context together. Empty if there is one claim and one reference.
        """
        cells = [cell for cell in self.cells if cell[1] != self.context.column]
        side = 1 if len(self.references) > 1 else 0
        places = sorted({cell[side] for cell in cells})
        if len(places) < 2:
            return []
        first = {*places[: len(places) // 2]}
        return [
            self.restricted_to([cell for cell in cells if (cell[side] in first) is wanted])
            for wanted in (True, False)
        ]

    def restricted_to(self, cells: Collection[Cell]) -> CheckBatch:
        """The batch for some of its cells, with the texts of those cells alone."""
        rows, columns = {i for i, _ in cells}, {j for _, j in cells}
        if self.context.column in columns:
            columns |= {*self.context.distinct}
        return CheckBatch(
            {i: text for i, text in self.claims.items() if i in rows},
            {j: text for j, text in self.references.items() if j in columns},
            frozenset(cells),
            self.context,
        )


def plan_batches(
    claims: Sequence[str],
    references: Sequence[str],
    cells: Collection[Cell],
    *,
    references_per_call: int | None,
    context: Context | None = None,
    max_tokens: float = MAX_REFERENCE_TOKENS,
) -> list[CheckBatch]:
    """Distributes cells over calls: references in their order, each with all of its claims.

    The references of a context go into one call where they fit, so that they can be read together
    there; the others go with them where there is room. ``references_per_call`` is the most of them
    in one call, None for as many as fit; ``max_tokens`` is the most of their tokens.

    Returns:
        Batches that together hold every cell once, without those of a context that fits into no
        call: they are left to ``joint_batches``.
    """
    context = context or Context.of((), references)
    wanted = sorted({j for _, j in cells if j != context.column})
    is_joint = any(j == context.column for _, j in cells)
    limits = references_per_call, max_tokens
    if is_joint and _fits(context.distinct, references, limits):
        groups = _groups_around(context, wanted, references, limits)
    else:
        groups = _groups(wanted, references, limits)
    return [
        _batch(claims, references, cells, columns, rows, context)
        for columns in groups
        for rows in _evenly(sorted({i for i, j in cells if j in columns}), _max_rows(columns))
    ]


def joint_batches(
    claims: Sequence[str],
    references: Sequence[str],
    cells: Collection[Cell],
    answered: Collection[Cell],
    *,
    context: Context,
    verdicts: Mapping[Cell, Verdict | None],
    max_near: int = MAX_NEAR,
    max_tokens: float = MAX_REFERENCE_TOKENS,
) -> list[CheckBatch]:
    """Calls for the verdicts on a context that did not fit, with the references that came near.

    ``cells`` are not decided yet; of those ``answered``, which were asked about, a reply has left
    the verdict out, and it stays undecided. ``verdicts`` are those on single references.
    """
    cells = [cell for cell in cells if cell[1] == context.column and cell not in answered]
    rows = sorted({i for i, _ in cells})
    if not rows:
        return []
    near = _nearest(claims, references, rows, context.distinct, verdicts)
    kept = _beginning_that_fits(near, references, max_near, max_tokens)
    part = context._replace(distinct=tuple(j for j in context.distinct if j in kept))
    columns = (*part.distinct, context.column)
    return [
        _batch(claims, references, cells, columns, some, part) for some in _evenly(rows, MAX_CELLS)
    ]


def _batch(
    claims: Sequence[str],
    references: Sequence[str],
    cells: Collection[Cell],
    columns: Sequence[int],
    rows: Sequence[int],
    context: Context,
) -> CheckBatch:
    return CheckBatch(
        {i: claims[i] for i in rows},
        {j: references[j] for j in columns if j != context.column},
        frozenset((i, j) for i, j in cells if i in rows and j in columns),
        context,
    )


def _max_rows(columns: Sequence[int]) -> int:
    return MAX_CELLS // len(columns) or 1


# --- references ----------------------------------------------------------------------------------


def _groups_around(
    context: Context, wanted: Sequence[int], references: Sequence[str], limits: _Limits
) -> list[Sequence[int]]:
    """The references of each call, where those of the context and its column share one call."""
    together = context.distinct
    others = [j for j in wanted if j not in together]
    whole = [*together, *others]
    # Where the single verdicts are known, the context is asked about alone, and as one text.
    has_single = len(others) < len(wanted)
    if has_single and _fits(whole, references, limits):
        return [[*whole, context.column]]
    return [[*together, context.column], *_groups(others, references, limits)]


def _fits(indices: Sequence[int], references: Sequence[str], limits: _Limits) -> bool:
    number, tokens = limits
    return len(indices) <= (number or len(indices)) and (
        sum(_tokens(references[j]) for j in indices) <= tokens
    )


def _groups(
    wanted: Sequence[int], references: Sequence[str], limits: _Limits
) -> list[Sequence[int]]:
    """Indices of the references of each call, in groups of about the same size."""
    number, tokens = limits
    by_number = _evenly(wanted, number or max(len(wanted), 1))
    return [part for group in by_number for part in _within_tokens(group, references, tokens)]


def _within_tokens(
    indices: Sequence[int], references: Sequence[str], limit: float
) -> list[Sequence[int]]:
    """Splits a group at the token limit; a reference beyond the limit is a part of its own."""
    parts: list[list[int]] = []
    room = 0.0
    for j in indices:
        tokens = _tokens(references[j])
        if not parts or tokens > room:
            parts.append([])
            room = limit
        parts[-1].append(j)
        room -= tokens
    return [*parts]


def _tokens(text: str) -> float:
    # A third of the bytes is no less than the tokens in any script; counting is far slower.
    return token_upper_bound(text) / 3


def _evenly(indices: Sequence[int], limit: int) -> list[Sequence[int]]:
    """Splits into groups of at most ``limit`` whose sizes differ by one at most."""
    if not indices:
        return []
    groups = ceil(len(indices) / limit)
    size, extra = divmod(len(indices), groups)
    cuts = [k * size + min(k, extra) for k in range(groups + 1)]
    return [indices[start:end] for start, end in pairwise(cuts)]


# --- nearness ------------------------------------------------------------------------------------


def _nearest(
    claims: Sequence[str],
    references: Sequence[str],
    rows: Sequence[int],
    columns: Sequence[int],
    verdicts: Mapping[Cell, Verdict | None],
) -> Iterable[int]:
    """The columns, nearest first: the best one of each claim, then the second of each."""
    words = {j: _words(references[j]) for j in columns}
    orders: list[list[int]] = []
    for i in rows:
        wanted = _words(claims[i])
        shares = {j: len(wanted & words[j]) / (len(wanted) or 1) for j in columns}
        nearness = [_bearing(verdicts.get((i, j))) + shares[j] for j in columns]
        # The sort is stable: of two that are as near, the one of the better rank comes first.
        ordered = sorted(zip(nearness, columns, strict=True), key=itemgetter(0), reverse=True)
        orders.append([j for _, j in ordered])
    return dict.fromkeys(j for places in zip(*orders, strict=True) for j in places)


def _bearing(verdict: Verdict | None) -> float:
    """How likely a reference speaks of a claim, be it for or against."""
    if verdict is None:
        return 0.0
    return (
        float(verdict.label is not Label.NEUTRAL)
        if verdict.neutral is None
        else (1.0 - verdict.neutral)
    )


def _words(text: str) -> set[str]:
    return set(_LONG_WORD.findall(text[:_MAX_CHARACTERS].casefold()))


def _beginning_that_fits(
    near: Iterable[int], references: Sequence[str], most: int, limit: float
) -> set[int]:
    """The first ones, as many as one call takes; one at least."""
    kept: set[int] = set()
    room = limit
    for j in near:
        tokens = _tokens(references[j])
        if kept and (tokens > room or len(kept) == most):
            continue
        kept.add(j)
        room -= tokens
    return kept
