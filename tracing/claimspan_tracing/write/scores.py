"""The first writer: scores on the spans of the query, or on a carrier if these have ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from opentelemetry.trace import Span, Tracer

from claimspan import Chunk, Evaluation, Label, VerdictMatrix
from claimspan.metrics import CATALOGUE, compute_metrics
from claimspan.metrics.catalogue import Group
from claimspan_tracing import semconv
from claimspan_tracing.job import RetrieverRun
from claimspan_tracing.records.record import OpenSpans
from claimspan_tracing.write.attributes import found_by_judge, metric_scores
from claimspan_tracing.write.evaluation_span import write_carrier
from claimspan_tracing.write.limits import WITHHELD, Attributes
from claimspan_tracing.write.sinks import Finished
from claimspan_tracing.write.spans import recorded_texts

__all__ = ["are_told_apart", "worth_of_chunks", "write_scores"]


def worth_of_chunks(
    shown: Sequence[Chunk], judged: Sequence[Chunk], evaluation: Evaluation
) -> Attributes:
    """Return two lists of numbers, one a chunk, in the order of the documents on a span.

    A list is left out if a number would be missing: a chunk was dropped before the generator
    and never judged, no verdict on it is decided, or it cannot be told which one it is. Zero would
    be wrong there, and a list of doubles has nothing else to say it with.
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


RETRIEVER_METRICS: Final = [e.name for e in CATALOGUE.values() if e.group is Group.RETRIEVER]
GENERATOR_METRICS: Final = [e.name for e in CATALOGUE.values() if e.group is Group.GENERATOR]


def write_scores(tracer: Callable[[], Tracer], finished: Finished) -> None:
    """Put all scores on the root, and those of retriever and generator on their own spans.

    The state ``evaluated`` is written only after this has not raised.
    """
    evaluation = finished.outcome.evaluation
    if evaluation is None:
        return
    if finished.spans is None:
        write_carrier(finished, tracer())
        return
    # All attributes are computed before the first is set: what fails leaves no score behind.
    placed = _placed(finished.spans, evaluation)
    root = found_by_judge(finished.spans.job, finished.outcome, finished.judgement)
    for span, attributes in (*placed, (finished.spans.root, root)):
        span.set_attributes(attributes)


def _placed(spans: OpenSpans, evaluation: Evaluation) -> list[tuple[Span, Attributes]]:
    """The spans below the root, with the attributes that each gets."""
    judged = spans.job.record.chunks
    placed = [
        (
            span,
            worth_of_chunks(run.chunks, judged, evaluation)
            | metric_scores(_metrics_of(spans, run, evaluation), RETRIEVER_METRICS),
        )
        for span, run in spans.retrievers
    ]
    if spans.answering is not None:
        answering = metric_scores(evaluation.metrics, GENERATOR_METRICS)
        # It has the chunks where they are not those of the retrievers.
        own = () if judged == spans.job.retrieved else judged
        placed.append((spans.answering, worth_of_chunks(own, judged, evaluation) | answering))
    return placed


def _metrics_of(spans: OpenSpans, run: RetrieverRun, evaluation: Evaluation) -> Mapping[str, float]:
    """The metrics over a retriever's own chunks, if several retrievers ran."""
    matrix = evaluation.ground_truth_vs_chunks
    # With one retriever its own chunks are all chunks, also after a reranker.
    if matrix is None or len(spans.retrievers) == 1:
        return evaluation.metrics if matrix is not None else {}
    if not are_told_apart(spans.job.record.chunks):
        return {}
    own = {(chunk.id, chunk.text) for chunk in run.chunks}
    columns = [i for i, c in enumerate(spans.job.record.chunks) if (c.id, c.text) in own]
    # What the retriever found beyond the bounds may hold what these do not.
    unseen = [None] if matrix.has_unseen or run.found > len(run.chunks) else []
    labels = [[*(row[i] for i in columns), *unseen] for row in matrix.labels]
    found = compute_metrics(ground_truth_vs_chunks=labels)
    return {name: value for name, value in found.items() if name in evaluation.metrics}
