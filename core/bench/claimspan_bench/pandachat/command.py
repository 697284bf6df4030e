"""The commands ``claimspan bench pandachat`` and ``pandachat-run``, and what they show."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from claimspan.errors import ConfigError, FileError
from claimspan.loading import load_object
from claimspan.text.visible import visible
from claimspan_bench.pandachat.evaluation import (
    PandaChat,
    SystemComparison,
    evaluate_submissions,
    find_results,
    markdown,
    merged,
    read_results,
    write_results,
)
from claimspan_bench.pandachat.runner import RunReport, run_retriever
from claimspan_bench.pandachat.submissions import is_submission, read_dataset
from claimspan_bench.retrievers import retriever_of
from claimspan_bench.shown import AsJson, Progress, interval

__all__ = ["evaluate_command", "run_command"]

_SIGNIFICANT: Final = 0.05
"""Adjusted p-value below which two systems count as different, by convention."""

_SHOWN: Final = 10
"""Pairs and questions that are listed; ``--json`` has all of them."""


def evaluate_command(
    directory: Annotated[
        Path, typer.Argument(help="Folder with submission_NAME.json files, or one such file.")
    ],
    top_k: Annotated[int, typer.Option(help="Number of retrieved sources that count.", min=1)] = 2,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for results.json and its table."),
    ] = None,
    dataset: Annotated[
        Path | None, typer.Option(help="The questions; by default those beside the submissions.")
    ] = None,
    published: Annotated[
        Path | None,
        typer.Option(help="results.json to compare with; by default the one beside them."),
    ] = None,
    with_published: Annotated[
        bool, typer.Option("--with-published", help="List its rows without a submission as well.")
    ] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the authors' table instead.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate submissions to PandaChat-RAG, the Slovenian retrieval benchmark.

    Gives the rows that the benchmark's authors publish, and how sure they are. Exits with 2 where
    a submission cannot be read; the others are evaluated.
    """
    path = published or find_results(directory)
    given = [] if path is None else read_results(path)
    found = evaluate_submissions(directory, top_k=top_k, dataset=dataset, published=given)
    rows = merged(given, found.rows) if with_published else found.rows
    if output is not None:
        for written in write_results(output, rows):
            typer.echo(f"wrote {visible(str(written))}", err=True)
    if as_json:
        typer.echo(json.dumps({**found.model_dump(mode="json"), "rows": rows}))
    else:
        typer.echo(visible(markdown(rows) if as_markdown else _evaluation_text(found)))
    # Last, so that one broken file costs nobody the figures of the others.
    if found.unread:
        raise FileError("; ".join(found.unread))


def run_command(
    retriever: Annotated[
        str, typer.Argument(help="module.py:name of a retriever, or of a function of a query.")
    ],
    directory: Annotated[Path, typer.Argument(help="The dataset, or the folder that it is in.")],
    system: Annotated[str, typer.Option(help="Name of the system.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="The submission; by default submission_SYSTEM.json."),
    ] = None,
    build: Annotated[
        bool,
        typer.Option(
            "--build",
            help="The name is a function from documents to a retriever.",
        ),
    ] = False,
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Make a submission to PandaChat-RAG with any retriever.

    The retriever is one of LangChain, LlamaIndex or Haystack, or a function from a query to texts,
    ids or documents. A run that was broken off goes on where it was. Exits with 2 where the
    retriever failed for a question.
    """
    questions = read_dataset(directory)
    # Models are often called like "BAAI/bge-m3", which would be a folder.
    name = re.sub(r"[^\w.-]+", "-", system)
    path = output or Path(f"submission_{name}.json")
    target = load_object(retriever)
    if build:
        if not callable(target):
            raise ConfigError(
                f"{retriever!r} cannot be called: with --build, name a function of documents"
            )
        target = cast("Callable[[Mapping[str, str]], object]", target)(questions.documents)
    report = run_retriever(retriever_of(target), questions, path, system=system, progress=progress)
    typer.echo(report.model_dump_json() if as_json else visible(_run_text(report)))
    # After the report is printed: it says how far the run has come.
    if report.failed:
        kinds = ", ".join(f"{name} for {count}" for name, count in report.failed.items())
        raise ConfigError(
            f"the retriever failed ({kinds} of {report.n} questions), so {str(path)!r} is not "
            "written: call it by itself to see why, then run the same command again, which asks "
            "these alone"
        )
    if not is_submission(path.name):
        typer.echo(
            "note: the evaluation of a folder finds files named submission_NAME.json", err=True
        )


def _evaluation_text(found: PandaChat) -> str:
    """The figures of all systems, what distinguishes them, and what is odd."""
    parts = (_systems(found), _comparisons(found), _missed(found), _findings(found), _beside(found))
    return "\n\n".join("\n".join(lines) for part in parts if (lines := list(part)))


def _run_text(report: RunReport) -> str:
    ways = ", ".join(f"{count} by {way}" for way, count in sorted(report.matched.items()))
    lines = [
        f"{report.system}: {report.n} questions, {report.resumed} of them from an earlier run",
        f"  time per question    {report.time_per_question:.4f} s",
        f"  chunks per question  {report.chunks_per_question:.2f}",
        f"  documents of chunks  {ways or 'none'}",
    ]
    lost = sum(report.matched.get(way, 0) for way in ("nothing", "several"))
    if lost:
        lines.append(f"  {lost} chunks belong to no one document, and count as misses")
    if report.submission is not None:
        lines.append(f"wrote {report.submission}")
    return "\n".join(lines)


def _systems(found: PandaChat) -> Iterator[str]:
    k = found.top_k
    width = max(len("system"), *(len(each.name) for each in found.systems))
    hits = "".join(f"{f'hit@{place}':>8}" for place in range(1, k + 1))
    yield (
        f"{'system':<{width}}  {'correct':>9}  {f'accuracy at {k} [95 %]':>24}{hits}{f'MRR@{k}':>8}"
        f"{'s/question':>12}{'sources':>9}"
    )
    for each in sorted(found.systems, key=lambda system: -system.accuracy.value):
        seconds = "-" if each.time_per_question is None else f"{each.time_per_question:.4f}"
        accuracy = interval(each.accuracy, scale=100, digits=2)
        shares = "".join(f"{100 * hit.value:>8.2f}" for hit in each.hit_at)
        yield (
            f"{each.name:<{width}}  {f'{each.correct}/{each.n}':>9}  {accuracy:>24}"
            f"{shares}{each.mrr.value:>8.4f}{seconds:>12}{each.sources_per_question:>9.2f}"
        )


def _comparisons(found: PandaChat) -> Iterator[str]:
    pairs = found.comparisons
    if not pairs:
        return
    apart = sum(pair.p_adjusted < _SIGNIFICANT for pair in pairs)
    yield (
        f"{apart} of {len(pairs)} pairs of systems differ by more than chance (paired permutation "
        "test, questions of one document together, Holm's adjustment):"
    )
    width = max(len(_pair(pair)) for pair in pairs[:_SHOWN])
    for pair in pairs[:_SHOWN]:
        difference = interval(pair.hits.difference, scale=100, digits=2, sign="+")
        yield (
            f"  {_pair(pair):<{width}}  {difference} points, "
            f"p {pair.hits.p_value:.4f}, adjusted {pair.p_adjusted:.4f}; right alone: "
            f"{pair.only_before} and {pair.only_after}"
        )
    yield from _more(len(pairs), "pairs")


def _missed(found: PandaChat) -> Iterator[str]:
    missed = found.missed_by_all
    if len(found.systems) < 2 or not found.missed:
        return
    at_least_one = len(found.missed)
    yield f"Questions that all systems miss: {len(missed)}; that at least one does: {at_least_one}"
    shown = missed or found.missed
    for each in shown[:_SHOWN]:
        by = f"{len(each.systems)} of {len(found.systems)}"
        yield f"  {each.query}  ({each.document}; missed by {by})"
    yield from _more(len(shown), "questions")


def _findings(found: PandaChat) -> Iterator[str]:
    if found.dataset is None:
        yield "The dataset is not at hand: give --dataset, so that submissions are held against it."
    if found.findings:
        yield "What is odd in the submissions:"
    yield from (f"  {each.system}: {each.message}" for each in found.findings)


def _beside(found: PandaChat) -> Iterator[str]:
    here = [each for each in found.published if each.equal is not None]
    if not found.published:
        return
    equal = [each for each in here if each.equal]
    absent = len(found.published) - len(here)
    yield (
        f"{len(equal)} of {len(here)} rows equal those of results.json; {absent} more rows of it "
        "have no submission here."
    )
    yield from (
        f"  {each.system}: {', '.join(each.differs)} differ" for each in here if not each.equal
    )


def _pair(pair: SystemComparison) -> str:
    return f"{pair.after} - {pair.before}"


def _more(count: int, what: str) -> Sequence[str]:
    return [f"  ... {count - _SHOWN} more {what}: see --json"] if count > _SHOWN else []
