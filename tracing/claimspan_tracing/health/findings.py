"""What a check found, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final, Literal

__all__ = ["CHECKS", "Diagnosis", "Finding", "State"]

State = Literal["ok", "warning", "failed"]
"""``warning``: scores may be missing or wrong; ``failed``: there will be none, or nobody sees them.
"""

CHECKS: Final = "claimspan.checks"
"""Entry-point group: checks of integrations, each a function without arguments that returns
findings. The name of an entry is the package that has to be loaded for the check to make sense."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    check: str
    """What was looked at, in a word or two."""

    state: State
    """How it is."""

    found: str
    """What was found, in a sentence that holds no content of records and no key."""

    remedy: str = ""
    """What to do about it; empty where nothing is to be done."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All findings of one run, in the order of the checks."""

    findings: tuple[Finding, ...]
    """One or more for each check."""

    @property
    def ok(self) -> bool:
        """Whether no check has failed; warnings do not count."""
        return all(each.state != "failed" for each in self.findings)

    def __iter__(self) -> Iterator[Finding]:
        """Iterates over the findings."""
        return iter(self.findings)

    def __str__(self) -> str:
        """Returns a line for each finding, and one for what to do about it."""
        return "\n".join(_lines(self.findings))

    def to_dict(self) -> dict[str, object]:
        """Returns the diagnosis as JSON can take it."""
        return {"ok": self.ok, "findings": [asdict(each) for each in self.findings]}


def _lines(findings: tuple[Finding, ...]) -> Iterator[str]:
    width = max((len(each.check) for each in findings), default=0)
    for each in findings:
        yield f"{each.state:7}  {each.check:{width}}  {each.found}"
        if each.remedy:
            yield f"{'':7}  {'':{width}}  -> {each.remedy}"
