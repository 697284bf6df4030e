"""What each chunk was worth: the share of the claims that it entails, on the span that shows it."""

from __future__ import annotations

from collections.abc import Sequence

from claimspan import Chunk, Evaluation, Label, VerdictMatrix
from claimspan_tracing import semconv
from claimspan_tracing.write.documents import recorded_texts
from claimspan_tracing.write.limits import WITHHELD, Attributes

__all__ = ["are_told_apart", "worth_of_chunks"]


def worth_of_chunks(
    shown: Sequence[Chunk], judged: Sequence[Chunk], evaluation: Evaluation
) -> Attributes:
    """Return two lists of numbers, one a chunk, in the order of the documents on a span.

    A list is left out where a number would be missing: a chunk was dropped before the generator
    and never judged, no verdict on it is decided, or nobody can tell which one it is. Zero would be
    wrong there, and a list of doubles has nothing else to say it with.

    Args:
        shown: The chunks of one span.
        judged: The chunks that the judge read, one for each column of a matrix.
        evaluation: Has the verdicts.
    """
    if not are_told_apart(judged):
        return {}
    columns = _columns(shown, judged)
    shares = {
        semconv.CHUNKS_RELEVANCE: _shares(evaluation.ground_truth_vs_chunks, columns),
        semconv.CHUNKS_USED: _shares(evaluation.response_vs_chunks, columns),
    }
    return {name: values for name, values in shares.items() if values}


def are_told_apart(chunks: Sequence[Chunk]) -> bool:
    """Whether each chunk can be found again by id and text.

    Two stores may count their chunks from 0 both, and texts that are not captured tell nothing.
    """
    ids = [chunk.id for chunk in chunks if chunk.text == WITHHELD]
    return len(set(ids)) == len(ids)


def _columns(shown: Sequence[Chunk], judged: Sequence[Chunk]) -> list[int | None]:
    """The column of each chunk that a span has room for; None for one that was not judged."""
    places = {(chunk.id, chunk.text): column for column, chunk in enumerate(judged)}
    recorded = shown[: len(recorded_texts(shown))]
    return [places.get((chunk.id, chunk.text)) for chunk in recorded]


def _shares(matrix: VerdictMatrix | None, columns: Sequence[int | None]) -> list[float]:
    """The share of the decided verdicts that entail, for each column; empty if one has none."""
    shares: list[float] = []
    for column in columns:
        rows = [] if matrix is None or column is None else matrix.labels
        decided = [row[column] for row in rows if column is not None and row[column] is not None]
        if not decided:
            return []
        shares.append(decided.count(Label.ENTAILED) / len(decided))
    return shares
