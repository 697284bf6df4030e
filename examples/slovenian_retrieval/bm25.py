"""BM25 over Slovenian documents as retrievers of LangChain, and what words do to their accuracy.

Two functions build a retriever from the documents of PandaChat-RAG, id to text:

- ``build_plain``: words as the library `bm25s` splits them by itself, which is made for English.
- ``build_slovenian``: words without case, carons and endings, so that `šola` and `Šoli` meet.

The README beside this file has the commands and the figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Protocol, cast

import bm25s  # type: ignore[import-untyped]  # the library ships no type information
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from claimspan.text.sentences import split_prose
from claimspan.text.words import slovenian_words

__all__ = ["Bm25", "build_plain", "build_slovenian", "chunked"]

MAX_WORDS: Final = 128
"""Words of a chunk. The authors' systems have chunks of 128 tokens, which are fewer words."""

RETURNED: Final = 5
"""Chunks that are returned, as by the authors' systems; the first two of them count."""

Words = Callable[[list[str]], list[list[str]]]
"""Splits texts into the words by which they are compared."""


class _Scores(Protocol):
    """The part of a NumPy array of scores, one for each chunk, that this module uses."""

    def tolist(self) -> list[float]: ...


class _Index(Protocol):
    """The part of `bm25s.BM25` that this module uses."""

    def index(self, corpus: list[list[str]], *, show_progress: bool) -> None: ...

    def get_scores(self, query_tokens_single: list[str]) -> _Scores: ...


class _Library(Protocol):
    """The part of `bm25s` that this module uses; the package has no type stubs."""

    BM25: Callable[[], _Index]

    def tokenize(
        self, texts: list[str], *, return_ids: bool, show_progress: bool
    ) -> list[list[str]]: ...


_LIBRARY: Final = cast(_Library, bm25s)


class Bm25(BaseRetriever):
    """Returns the chunks with the highest BM25 scores, the best first."""

    documents: list[Document]
    """The chunks, each with the id of its document in the metadata."""

    words: Words
    """How texts are split."""

    _index: _Index = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Build the index once, when the retriever is created."""
        self._index = _LIBRARY.BM25()
        texts = [document.page_content for document in self.documents]
        self._index.index(self.words(texts), show_progress=False)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        scores = self._index.get_scores(self.words([query])[0]).tolist()
        # The sort is stable: chunks with equal scores keep their order on every machine.
        best = sorted(range(len(scores)), key=lambda place: -scores[place])[:RETURNED]
        return [self.documents[place] for place in best if scores[place] > 0]


def build_plain(documents: Mapping[str, str]) -> Bm25:
    """Index documents, with the words of `bm25s`."""
    return Bm25(documents=chunked(documents), words=_plain_words)


def build_slovenian(documents: Mapping[str, str]) -> Bm25:
    """Index documents, with the stems of Slovenian words."""
    return Bm25(documents=chunked(documents), words=_slovenian_words)


def chunked(documents: Mapping[str, str]) -> list[Document]:
    """Split documents between sentences, into chunks of at most ``MAX_WORDS`` words."""
    return [
        Document(page_content=chunk, metadata={"document": id_})
        for id_, text in documents.items()
        for chunk in _packed(_sentences(text))
    ]


def _sentences(text: str) -> Iterator[str]:
    for paragraph in text.split("<p>"):
        yield from split_prose(paragraph, "sl")


def _packed(sentences: Iterable[str]) -> Iterator[str]:
    held: list[str] = []
    for sentence in sentences:
        if held and len(" ".join([*held, sentence]).split()) > MAX_WORDS:
            yield " ".join(held)
            held = []
        held.append(sentence)
    if held:
        yield " ".join(held)


def _plain_words(texts: list[str]) -> list[list[str]]:
    return _LIBRARY.tokenize(texts, return_ids=False, show_progress=False)


def _slovenian_words(texts: list[str]) -> list[list[str]]:
    return [slovenian_words(text) for text in texts]
