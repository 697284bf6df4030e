"""What one span may hold: bytes of texts, attributes, and the mark of a text that is withheld."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry.util.types import AttributeValue

from claimspan_tracing import semconv
from claimspan_tracing.text import cut

__all__ = [
    "MAX_ATTRIBUTES",
    "MAX_METADATA_BYTES",
    "MAX_PREVIEW_BYTES",
    "MAX_VALUE_BYTES",
    "WITHHELD",
    "Attributes",
    "present",
    "text_attributes",
    "types_of",
]

MAX_ATTRIBUTES: Final = 110
"""Attributes of ours on one span: the SDK drops the oldest past 128, and others set theirs."""

MAX_VALUE_BYTES: Final = 8 * 1024
"""Query, response, prompt and completion on a span."""

MAX_PREVIEW_BYTES: Final = 1024
"""Input or output of a run whose texts are on the same span in another form: documents, messages.
Lists of spans show its beginning. Written whole, each chunk would be on the wire twice more."""

MAX_METADATA_BYTES: Final = 1024
"""Metadata of one chunk, an id, a name."""

WITHHELD: Final = "[not captured]"
"""Stands for a text that is not captured; no attribute is written for it."""

Attributes = dict[str, AttributeValue]


def present(optional: Mapping[str, AttributeValue | None]) -> Attributes:
    """Return the attributes that have a value; None stands for one that is absent."""
    return {name: value for name, value in optional.items() if value is not None}


_MIME_TYPES: Final = {
    semconv.INPUT_VALUE: semconv.INPUT_MIME_TYPE,
    semconv.OUTPUT_VALUE: semconv.OUTPUT_MIME_TYPE,
}


def text_attributes(texts: Mapping[str, str]) -> Attributes:
    """Return plain texts as they are written, without those that were not captured."""
    return {n: cut(text, MAX_VALUE_BYTES) for n, text in texts.items() if text != WITHHELD}


def types_of(texts: Attributes) -> Attributes:
    """Return that the input and the output among the texts are plain ones."""
    return {kind: semconv.MIME_TEXT for name, kind in _MIME_TYPES.items() if texts.get(name)}
