"""A redactor, and for whom it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

from claimspan_tracing.job import Job

__all__ = ["AUDIENCES", "Audience", "Redaction", "Redactor"]

Redactor = Callable[[str], str]
"""Returns a text without what nobody may see."""

Audience = Literal["judge", "export"]
"""Who reads texts: the judge; or spans, sinks and disk."""

AUDIENCES: Final[frozenset[Audience]] = frozenset({"judge", "export"})


@dataclass(frozen=True, slots=True)
class Redaction:
    """A redactor, and who gets redacted texts."""

    redactor: Redactor
    """Takes out what nobody may see."""

    audiences: frozenset[Audience] = field(default=AUDIENCES)
    """Who gets redacted texts. Without ``judge``, the judge of this process alone sees them raw."""

    def apply(self, job: Job) -> Job:
        """Return a job with every text of it redacted."""
        raise NotImplementedError
