"""What was attached to a query: the metadata of its root, and what OpenTelemetry's context says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from opentelemetry.context import get_current
from pydantic import JsonValue

from claimspan.text.shapes import is_mapping
from claimspan_tracing import semconv
from claimspan_tracing.capture.runs import RunTree
from claimspan_tracing.guard import Guard
from claimspan_tracing.text import MAX_TEXT_BYTES, Walk, to_json

__all__ = ["attached_to"]

CONTEXT_KEYS: Final = (semconv.SESSION_ID, semconv.USER_ID, semconv.TAGS)
"""Keys in OpenTelemetry's context at which OpenInference's ``using_session``, ``using_user`` and
``using_tags`` keep their values."""

ATTRIBUTE_KEYS: Final = (*semconv.SESSION_KEYS, *semconv.USER_KEYS, semconv.TAGS)
"""Keys of the metadata whose values are attributes by themselves."""


def attached_to(tree: RunTree, walk: Walk, guard: Guard) -> dict[str, JsonValue]:
    """Return the metadata of a record, with session, user and tags under OpenInference's names.

    What the run itself says goes before what the context says; tags are those of both.

    Args:
        tree: Its root has metadata, and its context is that of the request.
        walk: The budget of the record.
        guard: Counts the faults of the reader.
    """
    said = _json_object(tree.root.metadata, walk)
    own = said
    with guard:
        own = {key: value for key, value in said.items() if not tree.reader.is_internal(key)}
    around = _json_object(_in_context(tree), walk)
    tags = _tags(own, tree, guard) + _tags(around, tree, guard)
    both = around | own
    if tags:
        both[semconv.TAGS] = list(dict.fromkeys(tags))
    return both


def _json_object(values: object, walk: Walk) -> dict[str, JsonValue]:
    found = to_json(_first_ids(values), walk)
    return found if isinstance(found, dict) else {}


def _first_ids(values: object) -> object:
    """The values that are attributes by themselves before the others: a walk ends at its budget."""
    # A mapping of another kind may do anything when it is read.
    if not is_mapping(values) or values.__class__ is not dict:
        return values
    return {key: values[key] for key in ATTRIBUTE_KEYS if key in values} | {**values}


def _in_context(tree: RunTree) -> dict[str, object]:
    """What OpenInference keeps in the context that the request had when its root began."""
    # A copy, since a context can be entered only once at a time.
    context = tree.context.copy().run(get_current)
    found = {key: context[key] for key in CONTEXT_KEYS if key in context}
    return {**_parsed(context.get(semconv.METADATA)), **found}


def _parsed(metadata: object) -> dict[str, object]:
    """The metadata in the context, which is a JSON object."""
    if not isinstance(metadata, str) or len(metadata) > MAX_TEXT_BYTES:
        return {}
    try:
        parsed: object = json.loads(metadata)
    except (ValueError, RecursionError):  # it may be a value of somebody else
        return {}
    return {str(k): value for k, value in parsed.items()} if is_mapping(parsed) else {}


def _tags(values: Mapping[str, JsonValue], tree: RunTree, guard: Guard) -> list[JsonValue]:
    tags = values.get(semconv.TAGS)
    texts: list[JsonValue] = [*tags] if isinstance(tags, list) else []
    with guard:
        return [t for t in texts if isinstance(t, str) and not tree.reader.is_internal(t)]
    return texts
