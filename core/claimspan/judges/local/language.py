"""Tells which texts the bundled model can read: it knows English only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from claimspan.text.languages import languages_of

__all__ = ["ReadableCells", "readable_cells"]


class ReadableCells(NamedTuple):
    """The claims and the references that the model can read, by their places."""

    rows: Sequence[int]
    """Places of the claims."""

    columns: Sequence[int]
    """Places of the references."""

    unread: int
    """Number of cells whose claim or reference is in another language."""


def readable_cells(
    claims: Sequence[str], references: Sequence[str], language: str | None
) -> ReadableCells:
    """Returns the cells whose claim and reference are both in English.

    Each text is decided on its own. A name, a table or code, which have too few words to tell,
    counts as English unless all other texts are in another language.

    Args:
        claims: The texts of the claims.
        references: The references.
        language: Code of the language of all texts; None to detect it.
    """
    if language is not None:
        found = [language] * (len(claims) + len(references))
    else:
        found = languages_of([*claims, *references])
    rows = [i for i, code in enumerate(found[: len(claims)]) if code == "en"]
    columns = [i for i, code in enumerate(found[len(claims) :]) if code == "en"]
    return ReadableCells(rows, columns, len(claims) * len(references) - len(rows) * len(columns))
