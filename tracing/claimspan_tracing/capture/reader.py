"""What an adapter provides: a reader of the framework's objects, and the values it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from claimspan_tracing.capture.runs import Run

__all__ = ["Document", "Generation", "Reader", "Retrieval"]


# Not frozen, though nothing changes it: a frozen one takes twice the time to make, and pipelines
# hand on their documents many times.
@dataclass(slots=True)
class Document:
    """One retrieved document as the framework returned it, before any cleaning."""

    text: object
    """What the generator can read of it."""

    id: object = None
    """Its id in the store; None where the store gave none."""

    score: object = None
    """The retriever's own score, on its own scale; None where it gave none."""

    metadata: Mapping[str, object] = field(default_factory=dict[str, object])
    """What the store keeps with the document."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What went into a retriever and what came out."""

    query: object
    """What the retriever was asked."""

    documents: Sequence[Document]
    """What it returned, in its order."""

    source: object = None
    """Name of the store, where known."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What went into a generator and what came out."""

    prompt: object = None
    """Everything that the model read."""

    completion: object = None
    """What the model answered."""

    model: object = None
    """Name of the model."""

    provider: object = None
    """Name of the model's provider."""

    input_tokens: int | None = None
    """Tokens of the prompt, as the provider counted them."""

    output_tokens: int | None = None
    """Tokens of the completion, as the provider counted them."""

    tool_results: Sequence[object] | None = None
    """What tools had returned, of the messages of the prompt: evidence, without failures and notes
    of the framework. None for all messages of the role ``tool``."""

    messages: Sequence[tuple[object, object]] = ()
    """Role and text of each message of the prompt; the roles are ``system``, ``user``,
    ``assistant`` and ``tool``. Nothing where the model takes a plain text."""


class Reader(Protocol):
    """Reads the raw inputs and outputs of runs. The worker calls all methods but ``parts``.

    Where a method raises, the one value that it was asked for is empty, and the fault is counted.
    """

    def is_query(self, root: Run) -> bool:
        """Whether a question was asked, as far as the framework's own types tell.

        False for what builds an index, embeds, judges an answer, or retrieves and does no more.
        """
        ...

    def query(self, root: Run) -> object:
        """Return what the user asked; None where it cannot be found."""
        ...

    def response(self, root: Run) -> object:
        """Return what the pipeline answered; None where it cannot be found."""
        ...

    def names_answer(self, root: Run) -> bool:
        """Whether the application itself says where its answer is.

        Then it is one, also where it consists of retrieved texts: else that is a pipeline which
        retrieves and does no more.
        """
        ...

    def retrieval(self, run: Run) -> Retrieval:
        """Return the query and the documents of a retriever run."""
        ...

    def unreported_retrieval(self, run: Run) -> Retrieval | None:
        """Return the documents in the output of a run that is no retriever; None where it has none.

        Called only where no retriever ran: some pipelines search a store without a retriever, and
        the framework does not report that search as a run.
        """
        ...

    def given_documents(self, run: Run) -> Sequence[Document]:
        """Return the documents in the input of a run; nothing where it has none.

        They count only where they stand in the prompt of the answer.
        """
        ...

    def passages(self, run: Run) -> Sequence[str]:
        """Return texts of a run that may have been read as evidence, and are no documents.

        Such as what a search returned as a plain text. They count only where they stand in the
        prompt of the answer, and no document explains them. The results of tools among the messages
        of a prompt need not be returned: ``Generation.messages`` has them.
        """
        ...

    def context(self, root: Run) -> Sequence[Document] | None:
        """Return what the generator read, after rerankers and cut-offs.

        None where the run does not show it: then it is what the retrievers returned.
        """
        ...

    def generation(self, run: Run) -> Generation:
        """Return prompt, completion, model and tokens of a generator run."""
        ...

    def is_internal(self, name: str) -> bool:
        """Whether a key of the metadata, or a tag, is the framework's own.

        Such names say nothing about the application, and are left out.
        """
        ...

    def parts(self, value: object) -> Sequence[object]:
        """Return the texts, lists, mappings and objects that an object of the framework holds.

        Nothing for any other object. Runs on the caller's thread, to measure what a record keeps
        alive, so it must not call code of the user's.
        """
        ...

    def interrupted(self, root: Run) -> bool:
        """Whether the run waits for a person, or was cancelled; neither is an error."""
        ...
