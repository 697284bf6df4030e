"""What is read back from the spool is checked before it is parsed: others may write to a file."""

from __future__ import annotations

from typing import Final

from claimspan.errors import ConfigError, PayloadError
from claimspan.files.jsonl import check_bounds
from claimspan_tracing.job import Job, Outcome

__all__ = ["MAX_PAYLOAD_BYTES", "read_job_text", "read_outcome_text"]

MAX_PAYLOAD_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one job: 100 chunks of 64 KiB each, twice over, and some more."""

MAX_DEPTH: Final = 100
"""Nesting of a payload; metadata of applications is the only part of any depth."""


def read_job_text(text: object) -> Job:
    """Return the job of a row.

    Raises:
        ConfigError: The row holds something else; the message does not quote it.
    """
    return Job.from_json(_checked(text))


def read_outcome_text(text: object) -> Outcome | None:
    """Return the outcome of a row; None where it has none.

    Raises:
        ConfigError: As ``read_job_text``.
    """
    return None if text is None else Outcome.from_json(_checked(text))


def _checked(text: object) -> bytes:
    if not isinstance(text, str):
        raise ConfigError("the payload is no text of a bounded length")
    try:
        return check_bounds(text, max_bytes=MAX_PAYLOAD_BYTES, max_depth=MAX_DEPTH)
    except PayloadError as error:
        raise ConfigError(f"the payload is {error.reason}") from None
