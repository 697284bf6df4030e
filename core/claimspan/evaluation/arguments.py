"""What a caller gives to an evaluation, checked before a judge is asked."""

from __future__ import annotations

from collections.abc import Sequence

from claimspan.errors import ConfigError
from claimspan.metrics.compute import Undefined, check_undefined
from claimspan.records import RagRecord

__all__ = ["check_options", "check_records"]


def check_options(undefined: Undefined, max_claims: int) -> None:
    """Refuse options of ``aevaluate`` that cannot work.

    Raises:
        ConfigError: One of them cannot.
    """
    check_undefined(undefined)
    if max_claims < 1:
        raise ConfigError(f"max_claims is {max_claims!r}: give 1 or more")


def check_records(records: Sequence[RagRecord]) -> None:
    """Refuse what is no record, such as a mapping.

    Raises:
        ConfigError: One of them is none.
    """
    for record in records:
        if not isinstance(record, RagRecord):  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
            raise ConfigError(
                f"a record is of type {type(record).__name__}:"
                " give RagRecord(query=..., chunks=..., "
                "response=...)"
            )
