"""What an adapter knows about its framework: how to read the objects that its callbacks saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from claimspan_tracing.runs import Run

__all__ = ["Document", "Generation", "Reader", "Retrieval"]


@dataclass(frozen=True, slots=True)
class Document:
    """One retrieved document as the framework gave it, before any cleaning."""

    text: object
    id: object = None
    """None where the store gave none."""
    score: float | None = None
    metadata: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What went into a retriever and what came out."""

    query: object
    documents: Sequence[Document]
    source: object = None
    """Name of the store, where known."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What went into a generator and what came out."""

    prompt: object = None
    completion: object = None
    model: object = None
    provider: object = None
    input_tokens: int | None = None
    output_tokens: int | None = None


class Reader(Protocol):
    """Reads the raw inputs and outputs that runs hold. All but ``size`` is called on the worker.

    A reader that raises loses the one thing that it was asked for, and is counted.
    """

    def query(self, root: Run) -> object:
        """What the user asked; None where it cannot be found."""
        ...

    def response(self, root: Run) -> object:
        """What the pipeline answered; None where it cannot be found."""
        ...

    def retrieval(self, run: Run) -> Retrieval:
        """The query and the documents of a retriever run."""
        ...

    def found(self, run: Run) -> Retrieval | None:
        """Documents in the output of a run that is no retriever; None where it has none.

        Asked only where no retriever ran: a look-up in a store that the framework does not report.
        """
        ...

    def context(self, root: Run) -> Sequence[Document] | None:
        """What the generator really read, after rerankers and cut-offs, where the run tells.

        None where it does not: then it is what the retrievers returned.
        """
        ...

    def generation(self, run: Run) -> Generation:
        """Prompt, completion, model and tokens of a generator run."""
        ...

    def size(self, outputs: object) -> int:
        """Characters that a retriever's output keeps alive; on the caller's thread, so quick."""
        ...

    def interrupted(self, root: Run) -> bool:
        """Whether the run stopped to wait for a person, or was cancelled: neither is an error."""
        ...
