"""The interface between the scenarios and the frameworks: recipe, pipeline and driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from claimspan_tracing import Monitor

__all__ = ["AppError", "Driver", "Passage", "Pipeline", "Recipe", "answer_to", "passages_for"]


class AppError(Exception):
    """An exception of the application."""


@dataclass(frozen=True)
class Passage:
    """A document of the store."""

    text: str
    id: str | None = None
    score: float | None = None


def passages_for(query: str) -> list[Passage]:
    """Return two passages that only this query gets: one with id and score, one with neither."""
    return [
        Passage(f"Answer to {query}. More on {query}", f"doc-{query}", 0.75),
        Passage(f"Something else about {query}"),
    ]


def answer_to(query: str) -> str:
    """Return the model's answer: one claim that the first passage supports, one that none does."""
    return f"Answer to {query}. Invented for {query}."


@dataclass(frozen=True)
class Recipe:
    """How a pipeline behaves; by default it retrieves ``passages_for``, answers ``answer_to``."""

    passages: Sequence[Passage] | None = None
    """Retrieved for any query, instead of ``passages_for``."""

    answer: str | None = None
    """Answered to any query, instead of ``answer_to``."""

    retriever_error: BaseException | None = None
    generator_error: BaseException | None = None
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
        """Attach to every pipeline built from now on; return a callable that detaches."""
        ...

    def build(self, recipe: Recipe) -> Pipeline: ...
