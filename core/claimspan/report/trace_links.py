"""Links from the records of a report to their traces in the user's tracing backend."""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import Formatter
from typing import Final
from urllib.parse import SplitResult, urlsplit

from claimspan.errors import ConfigError
from claimspan.report.entries import ReportEntry

__all__ = ["TraceLinks"]

FIELDS: Final = ("trace_id", "span_id")
"""What a template may name."""

_EXAMPLE: Final = "such as http://localhost:6006/projects/x/traces/{trace_id}"

# A browser drops some characters of an address and rewrites others, so that what it opens is not
# what was checked. Those of RFC 3986 it takes as they are.
_ADDRESS: Final = re.compile(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]*")

# Damaged files may hold any text as an id, and no backend has a trace for such a one.
_ID: Final = re.compile(r"[0-9A-Fa-f]{1,64}")


@dataclass(frozen=True, slots=True)
class TraceLinks:
    """Makes the address of a record's trace out of a template."""

    template: str
    """An http or https address in which ``{trace_id}``, and ``{span_id}`` if wanted, stand for the
    hexadecimal ids of the trace and of the record's root span."""

    def __post_init__(self) -> None:
        """Check the template.

        Raises:
            ConfigError: It is no such address, or names another field. The message does not quote
                it, as it might have a key in it.
        """
        address = _split(_without_fields(self.template))
        if address.scheme not in ("http", "https"):
            raise ConfigError(f"the template of trace addresses is not http or https: {_hint()}")
        if not address.hostname or "{" in _split(self.template).netloc:
            raise ConfigError(
                f"the template of trace addresses has no fixed host before its path: {_hint()}"
            )
        if "@" in address.netloc:
            raise ConfigError(
                "the template of trace addresses has a user name or a password, which every reader "
                "of the report would see: leave them out"
            )

    def url(self, entry: ReportEntry) -> str | None:
        """Return the address of a record's trace.

        Returns:
            The address; None where the record has no trace, or lacks an id that the template names.
        """
        ids = {"trace_id": entry.trace_id, "span_id": entry.span_id}
        named = [ids[field] for field in FIELDS if f"{{{field}" in self.template]
        return self.template.format_map(ids) if all(map(_ID.fullmatch, named)) else None


def _without_fields(template: str) -> str:
    """The template without its fields, all of which are known."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        raise ConfigError(
            f"the template of trace addresses has a brace without its partner: {_hint()}"
        ) from None
    fields = [field for _, field, _, _ in parts if field is not None]
    unknown = next((field for field in fields if field not in FIELDS), None)
    if unknown is not None:
        raise ConfigError(
            f"the template of trace addresses names {unknown!r}: the names are "
            "{trace_id} and {span_id}"
        )
    if any(spec or conversion for _, _, spec, conversion in parts):
        raise ConfigError(
            "the template of trace addresses formats a field: ids are put in as they are, "
            "by {trace_id} and {span_id} alone"
        )
    if "trace_id" not in fields:
        raise ConfigError(f"the template of trace addresses has no {{trace_id}}: {_hint()}")
    rest = "".join(literal for literal, *_ in parts)
    if not _ADDRESS.fullmatch(rest):
        raise ConfigError(
            "the template of trace addresses has a character that no address has: write spaces, "
            "braces, letters with accents and the like in their percent-encoded form"
        )
    return rest


def _split(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        raise ConfigError(f"the template of trace addresses is no address: {_hint()}") from None


def _hint() -> str:
    return f"give an address {_EXAMPLE}"
