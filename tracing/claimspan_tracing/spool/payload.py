"""What is read back from the spool is checked before it is parsed: others may write to a file."""

from __future__ import annotations

import re
from typing import Final

from claimspan.errors import ConfigError
from claimspan_tracing.job import Job, Outcome

__all__ = ["MAX_PAYLOAD_BYTES", "read_job_text", "read_outcome_text"]

MAX_PAYLOAD_BYTES: Final = 16 * 1024 * 1024
"""Bytes of one job: 100 chunks of 64 KiB each, twice over, and some more."""

MAX_DEPTH: Final = 100
"""Nesting of a payload; metadata of applications is the only part of any depth."""

MAX_DIGITS: Final = 400
"""Digits in a row outside of texts: no float has more, and parsing them takes squared time."""

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_BRACKET: Final = re.compile(rb"[\[\]{}]")
_LONG_NUMBER: Final = re.compile(rb"[0-9]{%d}" % MAX_DIGITS)


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
    data = text.encode("utf-8", "surrogatepass")
    if len(data) > MAX_PAYLOAD_BYTES:
        raise ConfigError("the payload is too long")
    bare = _STRING.sub(b"", data)
    if _LONG_NUMBER.search(bare):
        raise ConfigError("the payload has a number of too many digits")
    if _depth(bare) > MAX_DEPTH:
        raise ConfigError("the payload is nested too deeply")
    return data


def _depth(bare: bytes) -> int:
    deepest = depth = 0
    for found in _BRACKET.finditer(bare):
        depth += 1 if found.group() in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest
