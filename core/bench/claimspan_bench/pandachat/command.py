"""The commands ``claimspan bench pandachat`` and ``claimspan bench pandachat-run``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, cast

import typer

from claimspan.errors import ConfigError, FileError
from claimspan.loading import load_object
from claimspan.retrievers import Retrieve, retriever_of
from claimspan.text.visible import visible
from claimspan_bench.pandachat.dataset import Dataset, read_dataset
from claimspan_bench.pandachat.evaluation import PandaChat, evaluate_submissions
from claimspan_bench.pandachat.published import (
    Row,
    find_results,
    markdown,
    merged,
    read_results,
    write_results,
)
from claimspan_bench.pandachat.runner import RunReport, run_retriever
from claimspan_bench.pandachat.submissions import is_submission
from claimspan_bench.pandachat.tables import evaluation_text, run_text

__all__ = ["evaluate_command", "run_command"]

_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


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
    as_json: _Json = False,
) -> None:
    """Evaluate submissions to PandaChat-RAG, the Slovenian retrieval benchmark.

    Gives the rows that the benchmark's authors publish, and how sure they are. Exits with 2 where
    a submission cannot be read; the others are evaluated.
    """
    given = _published(directory, published)
    found = evaluate_submissions(directory, top_k=top_k, dataset=dataset, published=given)
    rows = merged(given, found.rows) if with_published else found.rows
    if output is not None:
        for path in write_results(output, rows):
            typer.echo(f"wrote {visible(str(path))}", err=True)
    typer.echo(_shown(found, rows, as_markdown=as_markdown, as_json=as_json))
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
    progress: Annotated[
        bool | None,
        typer.Option(
            "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Make a submission to PandaChat-RAG with any retriever.

    The retriever is one of LangChain, LlamaIndex or Haystack, or a function from a query to texts,
    ids or documents. A run that was broken off goes on where it was. Exits with 2 where the
    retriever failed for a question.
    """
    questions = read_dataset(directory)
    path = output or _default_output(system)
    retrieve = _retriever(retriever, questions, build=build)
    report = run_retriever(retrieve, questions, path, system=system, progress=progress)
    typer.echo(report.model_dump_json() if as_json else visible(run_text(report)))
    # After the report is printed: it says how far the run has come.
    _refuse_holes(report, path)
    if not is_submission(path.name):
        typer.echo(
            "note: the evaluation of a folder finds files named submission_NAME.json", err=True
        )


def _default_output(system: str) -> Path:
    # Models are often called like "BAAI/bge-m3", which would be a folder.
    name = re.sub(r"[^\w.-]+", "-", system)
    return Path(f"submission_{name}.json")


def _published(directory: Path, given: Path | None) -> list[Row]:
    path = given or find_results(directory)
    return [] if path is None else read_results(path)


def _shown(found: PandaChat, rows: list[Row], *, as_markdown: bool, as_json: bool) -> str:
    if as_json:
        return json.dumps({**found.model_dump(mode="json"), "rows": rows})
    return visible(markdown(rows) if as_markdown else evaluation_text(found))


def _retriever(spec: str, dataset: Dataset, *, build: bool) -> Retrieve:
    target = load_object(spec)
    if not build:
        return retriever_of(target)
    if not callable(target):
        raise ConfigError(f"{spec!r} cannot be called: with --build, name a function of documents")
    make = cast("Callable[[Mapping[str, str]], object]", target)
    return retriever_of(make(dataset.documents))


def _refuse_holes(report: RunReport, path: Path) -> None:
    if report.failed:
        kinds = ", ".join(f"{name} for {count}" for name, count in report.failed.items())
        raise ConfigError(
            f"the retriever failed ({kinds} of {report.n} questions), so {str(path)!r} is not "
            "written: call it by itself to see why, then run the same command again, which asks "
            "these alone"
        )
