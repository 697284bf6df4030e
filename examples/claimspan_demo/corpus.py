"""The demo's corpus: the handbook of a company that does not exist, one passage a section."""

from __future__ import annotations

from importlib.resources import files

from langchain_core.documents import Document

__all__ = ["load_corpus"]


def load_corpus() -> list[Document]:
    """Read the handbook.

    Returns:
        Its sections in order, each with its title as the first line, and an id such as
        ``annual-leave``.
    """
    text = files("claimspan_demo").joinpath("handbook.md").read_text(encoding="utf-8")
    return [
        Document(id=section.partition("\n")[0].lower().replace(" ", "-"), page_content=section)
        for section in (part.strip() for part in text.split("## ")[1:])
    ]
