"""The names that files and tables have for the fields of a record: this is the only list.

A name counts in any case and with or without separators, so that ``Ground Truth`` and
``groundTruth`` are ``ground_truth``. A value may stand for none, and a text be a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Final, Self

from pydantic import BeforeValidator

from claimspan.errors import ConfigError

__all__ = [
    "CHUNK_NAMES",
    "NAMES",
    "Columns",
    "TextOrScalar",
    "accepted_names",
    "field_of",
    "is_absent",
    "pick",
    "scalar_text",
]

NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "query": ("query", "question", "input", "user_input", "prompt"),
    "response": (
        *("response", "answer", "actual_output", "output", "generated_text", "prediction"),
        "result",
    ),
    "chunks": (
        *("chunks", "retrieved_context", "retrieved_contexts", "retrieval_context", "contexts"),
        *("retrieved_chunks", "retrieved_documents", "retrieved_docs", "source_documents"),
        *("source_nodes", "documents", "passages", "context", "page_content"),
    ),
    "ground_truth": (
        *("ground_truth", "gt_answer", "ground_truth_answer", "reference", "expected_output"),
        *("ground_truths", "gold_answer", "target", "expected"),
    ),
    "id": ("id", "query_id", "question_id"),
    "metadata": ("metadata",),
    "context_cut": ("context_cut",),
}
"""Field of a record to its names; of several in one row the first counts."""

CHUNK_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "text": ("text", "page_content", "content"),
    "id": ("id", "doc_id", "node_id", "id_"),
    "score": ("score",),
    "metadata": ("metadata", "meta"),
}
"""Part of a chunk to its keys and attributes; of several the first with a value counts."""

_EXACT: Final = 1e15
"""Below it a float that is a whole number is written digit by digit."""


def is_absent(value: object) -> bool:
    """Whether a value stands for none: null, or a data frame's sign for it."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    # By name, since pandas is no dependency.
    return type(value).__name__ in ("NAType", "NaTType")


def scalar_text(value: object) -> object:
    """Return a number or a boolean as JSON writes it, and anything else as it is.

    A table with gaps stores 1577 as 1577.0, whose last digit would count as written on purpose.
    Lists and objects stay what they are, and are refused by whatever wants a text: their text would
    be judged letter by letter.
    """
    match value:
        case bool():  # before int, which it is in Python
            return "true" if value else "false"
        case int() | Decimal():
            return str(value)
        case float() if value.is_integer() and abs(value) < _EXACT:
            return str(int(value))
        case float() if math.isfinite(value):
            return repr(value)
        case _:
            return value


TextOrScalar = Annotated[str, BeforeValidator(scalar_text)]
"""A text, which a file may write as a number or a boolean, such as ``"answer": 42``."""


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


_RANKS: Final[Mapping[str, tuple[str, int]]] = {
    _plain(name): (field, rank) for field, names in NAMES.items() for rank, name in enumerate(names)
}


def field_of(name: str) -> str | None:
    """Return the field that a name stands for; None if it stands for none."""
    return _RANKS.get(_plain(name), (None, 0))[0]


def pick(row: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    """Return the key of the first of some names, the best first, that a row has a value for.

    A key of the very spelling counts before others. An empty text is no value.
    """
    spelled: dict[str, str] = {}
    for key, value in row.items():
        if not is_absent(value) and value != "":
            spelled.setdefault(_plain(key), key)
            spelled[key] = key
    return next((spelled[n] for name in names for n in (name, _plain(name)) if n in spelled), None)


def accepted_names() -> str:
    """Return the whole list for a message: each field with its names."""
    fields = (f"{field} ({', '.join(names[1:])})" for field, names in NAMES.items() if names[1:])
    return "; ".join(fields)


class Columns:
    """Which column of a row is which field: by the list of names, or as the user says."""

    def __init__(self, given: Mapping[str, str | None] | None = None) -> None:
        """Take the user's mapping: field, by any of its names, to its column.

        An empty name, or None, is for no column at all.

        Raises:
            ConfigError: A name stands for no field, or two stand for one.
        """
        self.given: Final[dict[str, str]] = {}
        for name, column in (given or {}).items():
            field = field_of(name)
            if field is None:
                raise ConfigError(
                    f"{name!r} is no field of a record: give one of {', '.join(NAMES)}, such as "
                    f"--map question=COLUMN (columns={{'question': 'COLUMN'}} in Python)"
                )
            if field in self.given:
                raise ConfigError(f"{field} is mapped to two columns: give one")
            self.given[field] = column or ""

    @classmethod
    def of_options(cls, options: list[str]) -> Self:
        """Take the options of a command, each ``FIELD=COLUMN``, or refuse them as above."""
        pairs = [option.partition("=") for option in options]
        if any(not sign for _, sign, _ in pairs):
            raise ConfigError("--map needs FIELD=COLUMN, such as --map question=prompt")
        fields = [field_of(name) for name, _, _ in pairs]
        if len(set(fields)) < len(fields) and None not in fields:
            raise ConfigError("--map names one field twice: give each field one column")
        return cls({name.strip(): column.strip() for name, _, column in pairs})

    def read(self, row: Mapping[str, object]) -> dict[str, str]:
        """Return the field to the column that holds it; null and NaN are as good as absent."""
        best: dict[str, tuple[int, bool, str]] = {}
        for name, value in row.items():
            found = _RANKS.get(_plain(name))
            if found is None or name in self.given.values() or is_absent(value):
                continue
            field, rank = found
            here = (rank, name != NAMES[field][rank], name)
            if field not in self.given and (field not in best or here < best[field]):
                best[field] = here
        given = {f: c for f, c in self.given.items() if c and not is_absent(row.get(c))}
        return {**given, **{field: name for field, (_, _, name) in best.items()}}
