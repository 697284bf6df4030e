"""What is known of the cells of a matrix before a model is asked: cache keys and free verdicts."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from claimspan.judges.llm.batches import Context
from claimspan.judges.llm.verdict_cache import content_key, joint_key
from claimspan.judges.protocol import Cell
from claimspan.judges.values import telling_values
from claimspan.verdicts import Claim, Label, Verdict, VerdictMatrix

__all__ = ["cell_keys", "free_verdicts", "matrix_of", "unknown_cells"]

_EMPTY: Final = Verdict(label=Label.NEUTRAL, entailed=0.0, neutral=1.0, contradicted=0.0)
_NUMBER: Final = re.compile(r"\d+")


def cell_keys(
    claims: Sequence[Claim],
    references: Sequence[str],
    cells: Collection[Cell],
    context: Context,
    *,
    scope: Sequence[str | None],
) -> dict[Cell, str]:
    """The cache key of each cell: scope, claim and reference, or all references of the context.

    The rank of a reference counts where the claim names it, as "passage 3 says" does. The verdict
    by a context of one text is that by the text.

    Args:
        claims: Claims of the matrix.
        references: References of the matrix.
        cells: The cells.
        context: What is read together.
        scope: What else a verdict depends on: model, prompts, question.
    """
    about = content_key("verdict", *scope)
    rows = [content_key(claim.text) for claim in claims]
    columns = [content_key(text) for text in references]
    together = joint_key("context", *(columns[j] for j in context.ranks))
    keys: dict[Cell, str] = {}
    for i, j in sorted(cells):
        if j == context.column and len(context.distinct) != 1:
            keys[i, j] = joint_key(about, rows[i], together)
            continue
        single = context.distinct[0] if j == context.column else j
        rank = str(context.ranks.get(single, ""))
        named = rank if rank in _NUMBER.findall(claims[i].text) else ""
        keys[i, j] = joint_key(about, rows[i], columns[single], named)
    return keys


def free_verdicts(
    claims: Sequence[Claim],
    references: Sequence[str],
    cells: Collection[Cell],
    context: Context,
    question: str | None,
) -> dict[Cell, Verdict]:
    """Verdicts that no model is asked for: by blank references, and by the value check.

    Args:
        claims: Claims of the matrix.
        references: References of the matrix.
        cells: The cells.
        context: What is read together.
        question: The question, where known.
    """
    single = [cell for cell in cells if cell[1] != context.column]
    joint = [cell for cell in cells if cell[1] == context.column]
    found = {(i, j): _EMPTY for i, j in single if not references[j].strip()}
    found |= telling_values(claims, references, single, question)
    if not context.distinct:
        return found | dict.fromkeys(joint, _EMPTY)
    return found | {
        cell: verdict for cell in joint if (verdict := _undisputed(found, cell[0], context))
    }


def unknown_cells(keys: Mapping[Cell, str], known: Mapping[str, Verdict]) -> list[Cell]:
    """The cells to ask about: of those with equal texts, which share a key, the first one."""
    first: dict[str, Cell] = {}
    for cell, key in keys.items():
        if key not in known:
            first.setdefault(key, cell)
    return list(first.values())


def matrix_of(found: Mapping[Cell, Verdict], n_claims: int, n_columns: int) -> VerdictMatrix:
    """The matrix of the verdicts that were found; None in every other cell."""
    rows = [[found.get((i, j)) for j in range(n_columns)] for i in range(n_claims)]
    return VerdictMatrix.of(rows, n_columns)


def _undisputed(found: Mapping[Cell, Verdict], row: int, context: Context) -> Verdict | None:
    """The verdict of a value that a reference of the context gives, and none gives otherwise."""
    verdicts = [found[row, j] for j in context.distinct if (row, j) in found]
    labels = {verdict.label for verdict in verdicts}
    if Label.ENTAILED not in labels or Label.CONTRADICTED in labels:
        return None
    return next(verdict for verdict in verdicts if verdict.label is Label.ENTAILED)
