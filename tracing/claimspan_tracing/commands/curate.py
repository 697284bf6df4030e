"""``claimspan curate``: picks records worth labelling, for a file of ground truths to fill in.

A set of bad answers alone says nothing about all of them, so a share is picked at random beside the
doubtful ones, the low ones, and those unlike all others. Candidates are compared by the words of
their queries, so no model is needed.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Annotated, Final, Literal, cast, get_args

import typer

from claimspan.cli.options import AsJson
from claimspan.errors import ConfigError
from claimspan.files.ground_truth import QUERY_KEYS, TEXT_KEYS, first_of, read_rows
from claimspan.files.ground_truth_similarity import normalise
from claimspan.files.private import check_replaceable, refuse_input, write_private
from claimspan.results.rows import ResultRow, harmless, holds_results, read_lines
from claimspan.text.shapes import is_list
from claimspan.text.visible import visible
from claimspan.text.words import FUNCTION_WORDS, tokenize
from claimspan.verdicts import Label, VerdictMatrix
from claimspan_tracing import semconv
from claimspan_tracing.trace_file.records import read_trace_file
from claimspan_tracing.trace_file.spans import Skipped, number_on, read_spans

__all__ = ["Candidate", "Pick", "curate", "pick"]

Reason = Literal["uncertain", "low", "diverse", "random"]

REASONS: Final[tuple[Reason, ...]] = get_args(Reason)


def curate(
    files: Annotated[
        list[Path], typer.Argument(help="Trace files, or results of `claimspan evaluate` or `run`.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="File to fill in; JSON lines, or CSV by its ending."),
    ] = Path("golden.jsonl"),
    n: Annotated[int, typer.Option("--n", "-n", help="Records to pick.", min=1)] = 50,
    by: Annotated[
        str, typer.Option(help=f"What to pick for, an equal share each: {', '.join(REASONS)}.")
    ] = ",".join(REASONS),
    seed: Annotated[int, typer.Option(help="Of the random share.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Pick records worth labelling, as a file of ground truths to fill in.

    Lines that are in the file already stay. `Monitor(ground_truth=FILE)` takes the lines that are
    filled in.
    """
    names = dict.fromkeys(name.strip() for name in by.split(",") if name.strip())
    if not names or not names.keys() <= set(REASONS):
        raise ConfigError(f"--by {by!r} is unknown: give one or more of {', '.join(REASONS)}")
    reasons = cast("tuple[Reason, ...]", tuple(names))
    # Before it is read: what is no file may have no end.
    check_replaceable(output, what="the ground truths")
    refuse_input(output, files, option="-o")
    rows: list[_Row] = [row for _, row in read_rows(output)] if output.exists() else []
    candidates = _read_candidates(files)
    known = filter(None, (first_of(row, QUERY_KEYS, str(output)) for row in rows))
    picks = pick(candidates, n, reasons, known=known, seed=seed)
    if picks:
        rows = _write(output, rows, picks)
    unfilled = sum(first_of(row, TEXT_KEYS, str(output)) is None for row in rows)
    counts = Counter(each.reason for each in picks)
    if as_json:
        result = {
            "output": str(output),
            "candidates": len(candidates),
            "picked": {reason: counts[reason] for reason in reasons},
            "lines": len(rows),
            "unfilled": unfilled,
        }
        typer.echo(json.dumps(result))
        return
    listed = ", ".join(f"{counts[reason]} {reason}" for reason in reasons)
    typer.echo(visible(f"{output}: {len(picks)} picked of {len(candidates)} ({listed})"))
    if not candidates:
        typer.echo("every record of the files has a ground truth already: nothing is left to label")
    typer.echo(f"{unfilled} of {len(rows)} lines wait for a ground truth")


# --- candidates, from trace files and from files of results ---------------------------------------

LOW_IS_BAD: Final = ("faithfulness", "precision", "recall", "claim_recall", "alignment")
"""Metrics of which the lowest says how bad an answer is."""


@dataclass(frozen=True)
class Candidate:
    """One query that might be labelled."""

    query: str
    response: str = ""
    chunks: tuple[str, ...] = ()
    id: str | None = None
    """The application's own id of the query."""

    trace_id: str | None = None
    sample_weight: float | None = None
    """How many records it stands for by the sampler's decision; None if there was none."""

    doubt: float = 0.0
    """Mean doubt of the judge over the claims: 0 sure, 1 undecided or a probability of 0.5."""

    lowest: float | None = None
    """The lowest score; None without any."""

    copies: int = 1
    """Records of the files that ask the same."""

    @cached_property
    def words(self) -> frozenset[str]:
        """The stems of the query's words, by which queries are compared."""
        return frozenset(t.stem for t in tokenize(self.query) if t.stem not in FUNCTION_WORDS)

    def likeness(self, other: Candidate) -> float:
        """The share of all words of both queries that both have (Jaccard)."""
        both = len(self.words & other.words)
        return both / (len(self.words) + len(other.words) - both) if both else 0.0


def _read_candidates(paths: Iterable[Path]) -> list[Candidate]:
    """Records without a ground truth; those that ask the same are one, the first with scores."""
    found: dict[str, Candidate] = {}
    for path in paths:
        for candidate in _of_results(path) if holds_results(path) else _of_traces(path):
            # As the ground truths are looked up later: one label serves all that ask the same.
            key = normalise(candidate.query)
            if not key:
                continue
            known = found.get(key, replace(candidate, copies=0))
            better = known.lowest is None and candidate.lowest is not None
            found[key] = replace(candidate if better else known, copies=known.copies + 1)
    return list(found.values())


def _of_traces(path: Path) -> Iterator[Candidate]:
    # An entry has no room for the record's own id and its weight.
    roots = {
        span.key[0]: span.attributes
        for span in read_spans(path, Skipped(path))
        if semconv.EVALUATION_STATUS in span.attributes
    }
    for entry in read_trace_file(path):
        if entry.ground_truth:
            continue
        root = roots.get(entry.trace_id, {})
        id_ = root.get(semconv.RECORD_ID)
        yield Candidate(
            query=entry.query,
            response=entry.response,
            chunks=tuple(chunk.text for chunk in entry.chunks),
            id=None if id_ is None else str(id_),
            trace_id=entry.trace_id,
            sample_weight=number_on(root, semconv.SAMPLE_WEIGHT),
            # Spans have labels alone; an undecided one has none.
            doubt=fmean([float(claim.label is None) for claim in entry.response_claims] or [0.0]),
            lowest=_lowest(entry.scores),
        )


def _of_results(path: Path) -> Iterator[Candidate]:
    for row in read_lines(path, ResultRow):
        record, matrix = row.record, row.evaluation.response_vs_chunks
        if record.ground_truth:
            continue
        trace_id = record.metadata.get("trace_id")
        claims = range(len(matrix.labels)) if matrix else ()
        yield Candidate(
            query=record.query,
            response=record.response,
            chunks=tuple(chunk.text for chunk in record.chunks),
            id=row.id,
            trace_id=trace_id if isinstance(trace_id, str) else None,
            doubt=fmean([_doubt(matrix, claim) for claim in claims if matrix] or [0.0]),
            lowest=_lowest(row.metrics),
        )


def _doubt(matrix: VerdictMatrix, claim: int) -> float:
    """The doubt about one claim: that of the chunk which supports it most."""
    verdicts = matrix.rows[claim]
    entailed = [v.entailed for v in verdicts if v is not None and v.entailed is not None]
    if entailed:
        # The best chunk decides a claim, so its distance from 0.5 is the doubt: 1 at 0.5, 0 at 0
        # and 1.
        return 1.0 - 2.0 * abs(max(entailed) - 0.5)
    labels = matrix.all_labels[claim]
    return float(Label.ENTAILED not in labels and None in labels)


def _lowest(scores: Mapping[str, float]) -> float | None:
    return min((scores[name] for name in LOW_IS_BAD if name in scores), default=None)


# --- the choice ---------------------------------------------------------------------------------

NEAR: Final = 0.8
"""Share of words in common from which two queries are near-duplicates: of ten words one differs."""


@dataclass(frozen=True, slots=True)
class Pick:
    """A candidate that was picked."""

    candidate: Candidate
    reason: Reason
    weight: float | None = None
    """How many records of the files it stands for; None if it was not drawn at random."""


def pick(
    candidates: Sequence[Candidate],
    n: int,
    reasons: Sequence[Reason],
    *,
    known: Iterable[str] = (),
    seed: int = 0,
) -> list[Pick]:
    """Pick candidates, the same ones for the same seed, and none near a ``known`` query.

    Each reason gets an equal share. If one has too few candidates, the rest goes to the others.
    """
    chosen = [Candidate(query=query) for query in known]
    free = [each for each in candidates if _nearest(each, chosen) < NEAR]
    # An equal share for each reason; the first ones get what is left over.
    each, over = divmod(n, len(reasons))
    shares: dict[Reason, int] = {
        reason: each + (place < over) for place, reason in enumerate(reasons)
    }
    # First, from all of them: what other reasons take away would no longer be drawn.
    drawn = random.Random(seed).sample(free, min(shares.pop("random", 0), len(free)))  # noqa: S311 - no secret
    picks = [Pick(one, "random", len(free) / len(drawn) * one.copies) for one in drawn]
    chosen += drawn
    # Once more, for what the shares have left over: a reason may have too few candidates.
    rest: list[tuple[Reason, int]] = [(reason, n) for reason in shares]
    for reason, share in [*shares.items(), *rest]:
        wanted = min(share, n - len(picks))
        for candidate in _ordered(free, reason, chosen):
            if wanted <= 0:
                break
            if _nearest(candidate, chosen) < NEAR:
                chosen.append(candidate)
                picks.append(Pick(candidate, reason))
                wanted -= 1
    return picks


def _nearest(candidate: Candidate, chosen: Iterable[Candidate]) -> float:
    return max(map(candidate.likeness, chosen), default=0.0)


def _ordered(
    candidates: Sequence[Candidate], reason: Reason, chosen: Sequence[Candidate]
) -> Iterable[Candidate]:
    """The candidates for a reason, the best first; equal ones in the order of the files."""
    if reason == "uncertain":
        return sorted((each for each in candidates if each.doubt > 0), key=lambda c: -c.doubt)
    if reason == "low":
        scored = [(each.lowest, each) for each in candidates if each.lowest is not None]
        return [each for low, each in sorted(scored, key=lambda pair: pair[0]) if low < 1]
    return _farthest_first(candidates, chosen)


def _farthest_first(
    candidates: Sequence[Candidate], chosen: Sequence[Candidate]
) -> Iterator[Candidate]:
    """Each time the candidate whose nearest chosen one is farthest away (max-min distance).

    The distance to what was chosen before is kept for each candidate, and only the last chosen one
    is compared anew: picking 50 of 10,000 makes half a million comparisons.
    """
    nearest = [_nearest(each, chosen) for each in candidates]
    left = set(range(len(candidates)))
    while left:
        # Ties go to the first of the file, so that the same files give the same picks.
        best = min(left, key=lambda place: (nearest[place], place))
        left.discard(best)
        yield candidates[best]
        for place in left:
            likeness = candidates[best].likeness(candidates[place])
            nearest[place] = max(nearest[place], likeness)


# --- the file to fill in ------------------------------------------------------------------------

_Row = Mapping[str, object]


def _write(path: Path, rows: Sequence[_Row], picks: Sequence[Pick]) -> list[_Row]:
    """Write the file anew, with the picks behind its lines, which stay; returns all lines.

    It is JSON lines, or CSV by its ending, with an empty ``ground_truth`` to fill in.
    """
    new = list(map(_row, picks))
    if path.suffix.lower() == ".csv":
        # New rows alone: what people have written, formulas included, is theirs.
        new = [{name: harmless(_cell(row[name])) for name in row} for row in new]
        written = [*rows, *new]
        # The columns of the file as it is, then ours.
        columns = list(dict.fromkeys(name for row in written for name in row))
        file = io.StringIO(newline="")
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows({name: _cell(row[name]) for name in row} for row in written)
        text = file.getvalue()
    else:
        written = [*rows, *new]
        text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in written)
    write_private(path, text, what="the ground truths")
    return written


def _row(pick: Pick) -> _Row:
    candidate = pick.candidate
    return {
        "id": candidate.id,
        "query": candidate.query,
        "ground_truth": "",
        "response": candidate.response,
        "chunks": [_first_line(text) for text in candidate.chunks],
        "picked_for": pick.reason,
        "weight": pick.weight,
        "sample_weight": candidate.sample_weight,
        "trace_id": candidate.trace_id,
    }


def _first_line(text: str) -> str:
    """As much of a chunk as recognises it."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= 200 else f"{line[:199]}…"


def _cell(value: object) -> object:
    return "\n".join(map(str, value)) if is_list(value) else value
