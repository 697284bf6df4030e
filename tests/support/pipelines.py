"""What the scenarios need of a pipeline, whatever framework it is written in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from claimspan_tracing import Monitor

__all__ = ["AppError", "Driver", "Passage", "Pipeline", "Recipe", "answer_to", "passages_for"]


class AppError(Exception):
    """What the application itself raises."""


@dataclass(frozen=True)
class Passage:
    """A document of the store."""

    text: str
    id: str | None = None
    score: float | None = None


def passages_for(query: str) -> list[Passage]:
    """Two passages that only this query gets: one with id and score, one with neither."""
    return [
        Passage(f"Answer to {query}. More on {query}", f"doc-{query}", 0.75),
        Passage(f"Something else about {query}"),
    ]


def answer_to(query: str) -> str:
    """What the model says: one claim that the first passage supports, one that none does."""
    return f"Answer to {query}. Invented for {query}."


@dataclass(frozen=True)
class Recipe:
    """How a pipeline behaves; by default it retrieves ``passages_for`` and says ``answer_to``."""

    passages: Sequence[Passage] | None = None
    """What is retrieved for any query, instead."""

    answer: str | None = None
    """What the model says to any query, instead."""

    retriever_error: Exception | None = None
    generator_error: Exception | None = None
    retriever_seconds: float = 0.0
    """How long the asynchronous retriever sleeps before it answers."""


class Pipeline(Protocol):
    """A question-answering pipeline: retrieve, put into a prompt, generate."""

    def run(self, query: str) -> str: ...

    async def arun(self, query: str) -> str: ...

    def stream(self, query: str) -> Iterator[str]: ...

    def astream(self, query: str) -> AsyncIterator[str]: ...


class Driver(Protocol):
    """Builds pipelines in one framework and attaches us to it as its users would."""

    name: str

    def attach(self, monitor: Monitor) -> Callable[[], object]:
        """Attach to everything built from now on; returns what detaches again."""
        ...

    def build(self, recipe: Recipe) -> Pipeline: ...
