"""Finds the known query that is most like a live one, among thousands, by letters or by embeddings.

``wording`` has the last word: what is alike and still another question is no match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from claimspan.errors import ConfigError, GroundTruthError, MissingExtraError
from claimspan.files.ground_truth_wording import (
    asks_the_same,
    may_ask_the_same,
    normalise,
    words_of,
)
from claimspan.text.percentages import percent_hint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embed", "SimilarQueries", "similar_queries"]

CANDIDATES: Final = 50
"""Known queries that are looked at, the most similar first: questions made from one template are
alike by the dozen, and differ in the word that matters."""

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""From texts to their embeddings, one vector of the same length for each."""


class SimilarQueries(Protocol):
    """Known queries that can be searched by similarity."""

    def find(self, query: str) -> tuple[str, float] | None:
        """Return the most similar known query that asks the same, with its similarity, 0 to 1."""
        ...


def similar_queries(
    queries: Sequence[str], threshold: float, embed: Embed | None = None
) -> SimilarQueries:
    """Index queries.

    Args:
        queries: The known queries.
        threshold: Similarity from which a query may match, above 0 up to 1.
        embed: Makes embeddings, which are compared by cosine; None compares letters.

    Raises:
        ConfigError: The threshold is no such number.
        GroundTruthError: ``embed`` returned something else.
        MissingExtraError: A package that compares is not installed.
    """
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)  # pyright: ignore[reportUnnecessaryIsInstance] - checked for those who do not type-check
    if not is_number or not 0 < threshold <= 1:
        hint = percent_hint(threshold)
        raise ConfigError(f"similarity is {threshold!r}: give a number above 0 up to 1{hint}")
    if embed is None:
        return _ByLetters(queries, threshold)
    return _ByEmbedding(queries, threshold, embed)


class _ByLetters:
    """Compares normalised queries letter by letter: the share of letters that both have in order.

    rapidfuzz does it in C++: 10,000 queries take milliseconds.
    """

    def __init__(self, queries: Sequence[str], threshold: float) -> None:
        try:
            from rapidfuzz import fuzz, process
        except ImportError as error:
            raise MissingExtraError("rapidfuzz", "similarity") from error
        self._extract = process.extract
        self._ratio = fuzz.ratio
        self._queries = queries
        self._normalised = [normalise(query) for query in queries]
        # A word that stands in some known query is a word, and no slip for one that looks like it.
        self._vocabulary = {word for query in queries for word in words_of(query)}
        self._threshold = threshold

    def find(self, query: str) -> tuple[str, float] | None:
        """Return the most similar known query that asks the same."""
        found = self._extract(
            normalise(query),
            self._normalised,
            scorer=self._ratio,
            # Normalised already; its own processor would drop the signs that we keep.
            processor=None,
            limit=CANDIDATES,
            # rapidfuzz counts from 0 to 100, and stops early at what cannot reach the cutoff.
            score_cutoff=100 * self._threshold,
        )
        for _, score, place in found:
            known = self._queries[place]
            if asks_the_same(query, known, is_word=self._vocabulary.__contains__):
                return known, score / 100
        return None


class _ByEmbedding:
    """Compares the embeddings of queries by their cosine."""

    def __init__(self, queries: Sequence[str], threshold: float, embed: Embed) -> None:
        self._queries = queries
        self._embed = embed
        self._threshold = threshold
        self._known = self._vectors(queries) if queries else None

    def find(self, query: str) -> tuple[str, float] | None:
        """Return the most similar known query of which nothing says that it asks something else."""
        if self._known is None:
            return None
        cosines = self._known @ self._vectors([query])[0]
        # argsort has no order from high to low, so the signs are turned.
        for place in map(int, (-cosines).argsort()[:CANDIDATES]):
            score, known = float(cosines[place]), self._queries[place]
            if score < self._threshold:
                return None
            if may_ask_the_same(query, known):
                # In single precision the cosine of a vector with itself may be 1.0000001.
                return known, min(score, 1.0)
        return None

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings of length 1, of shape ``(n_texts, n_dimensions)``."""
        try:
            import numpy as np
        except ImportError as error:
            raise MissingExtraError("numpy", "similarity") from error
        wanted = "return one list of numbers for each text, all of the same length"
        try:
            vectors = np.asarray(self._embed(texts), dtype=np.float32)
        except (TypeError, ValueError):
            raise GroundTruthError(
                f"embed returned something else than vectors: {wanted}"
            ) from None
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise GroundTruthError(
                f"embed returned the shape {vectors.shape} for {len(texts)} texts: {wanted}"
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        # A vector of nothing is like nothing.
        lengths[lengths == 0] = np.inf
        units: NDArray[np.float32] = (vectors / lengths).astype(np.float32)
        return units
