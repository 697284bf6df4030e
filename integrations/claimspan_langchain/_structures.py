"""Structured answers of LangChain's: the fields of its objects, and of the user's own."""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.documents import Document as LangChainDocument
from langchain_core.messages import BaseMessage

from claimspan_langchain._messages import Said, content_of
from claimspan_tracing.adapters import fields_of as plain_fields_of

__all__ = ["Structure", "fields_of"]


class Structure(dict[str, object]):
    """The fields of a structured answer as they were."""


def fields_of(value: object) -> Mapping[str, object]:
    """Return the fields of an object: of a message what it says, and none of a document."""
    if isinstance(value, LangChainDocument):
        return {}
    if isinstance(value, BaseMessage | Said):
        return {"content": content_of(value.content)}
    return plain_fields_of(value)
