"""The commands ``claimspan bench context-coverage`` and ``context-coverage-build``."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from claimspan.benchmarks.context_coverage.builder import (
    CHUNK_WORDS,
    GOLDEN,
    NOISY,
    Built,
    build_items,
)
from claimspan.benchmarks.context_coverage.documents import Document, read_documents
from claimspan.benchmarks.context_coverage.items import CoverageItem, read_items
from claimspan.benchmarks.context_coverage.judged import JudgedFile, JudgedItem
from claimspan.benchmarks.context_coverage.judging import (
    CONCURRENCY,
    MAX_FACTS,
    ajudge_items,
    judge_of,
)
from claimspan.benchmarks.context_coverage.rankings import (
    BASELINES,
    RetrievalMetric,
    score_combinations,
)
from claimspan.benchmarks.context_coverage.summary import summarize
from claimspan.cli.bench.context_coverage_tables import as_markdown, as_text
from claimspan.cli.bench.user_metric import load_metric
from claimspan.cli.options import JudgeName, JudgeOptions, judge_from
from claimspan.errors import ConfigError
from claimspan.files.private import refuse_input, write_private
from claimspan.judges import JUDGE_VARIABLE, Judge
from claimspan.judges.choice import takes_options
from claimspan.progress import progress_bar
from claimspan.text.visible import visible

if TYPE_CHECKING:
    from claimspan.judges.llm.extraction import Extraction
    from claimspan.judges.llm.judge import ModelJudge

__all__ = ["NoiseChoice", "PromptStyle", "build", "context_coverage"]

SOME_FAILED: Final = 1
"""Exit code where some items have no verdicts; the output says why."""


class PromptStyle(StrEnum):
    """How a language model extracts the facts: directly, or after a chain of thought."""

    IO = "io"
    COT = "cot"


class NoiseChoice(StrEnum):
    """Which chunks of other documents are the noisy ones."""

    HARD = "hard"
    RANDOM = "random"


_EXTRACTION: Final[Mapping[PromptStyle, Extraction]] = {
    PromptStyle.IO: "direct",
    PromptStyle.COT: "reasoned",
}

_Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
_Progress = Annotated[
    bool | None,
    typer.Option(
        "--progress/--no-progress", help="Show a progress bar; by default only on a terminal."
    ),
]


def context_coverage(
    file: Annotated[Path, typer.Argument(help="The data set, JSON lines.")],
    judge: JudgeName = None,
    judge_options: JudgeOptions = None,
    prompt: Annotated[
        PromptStyle | None,
        typer.Option(help="With PROVIDER:MODEL: facts directly (io), or step by step (cot)."),
    ] = None,
    batched: Annotated[
        bool,
        typer.Option(
            "--batched/--unbatched",
            help="Many facts and chunks in a call, or each pair in a call of its own.",
        ),
    ] = True,
    max_facts: Annotated[int, typer.Option(help="Facts checked per item.", min=1)] = MAX_FACTS,
    concurrency: Annotated[int, typer.Option(help="Items under way at once.", min=1)] = CONCURRENCY,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metric",
            help="A retrieval metric of your own, FILE.py:FUNCTION; may be given repeatedly.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File of facts and verdicts. A run goes on with it."),
    ] = None,
    combinations: Annotated[
        Path | None,
        typer.Option(help="Write every combination with all of its scores here, JSON lines."),
    ] = None,
    markdown: Annotated[bool, typer.Option(help="Print the result as Markdown.")] = False,
    progress: _Progress = None,
    as_json: _Json = False,
) -> None:
    """Measure how well metrics rank combinations of retrieved chunks.

    Exits with 1 where some items could not be judged.
    """
    if markdown and as_json:
        raise ConfigError("--markdown and --json do not go together: give one of them")
    # Before judging, which costs money: a metric that cannot be loaded is noticed at once.
    own = dict(map(load_metric, metrics or ()))
    refuse_input(combinations, [file, output], option="--combinations")
    items = read_items(file)
    chosen = _judge(judge, judge_options, prompt)
    judged = _judge_all(items, chosen, output, progress, (batched, max_facts, concurrency))
    result = summarize(items, judged, metrics=own)
    if combinations is not None:
        _write_combinations(combinations, items, judged, own)
    if as_json:
        typer.echo(result.model_dump_json())
    else:
        typer.echo(visible(as_markdown(result) if markdown else as_text(result)))
    if result.failed:
        raise typer.Exit(SOME_FAILED)


def build(
    documents: Annotated[
        list[Path],
        typer.Argument(help="Text, Markdown or JSON-lines files of documents, or directories."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The data set, JSON lines.")],
    golden: Annotated[int, typer.Option(help="Golden chunks of an item.", min=2)] = GOLDEN,
    noisy: Annotated[int, typer.Option(help="Noisy chunks of an item.", min=0)] = NOISY,
    chunk_words: Annotated[int, typer.Option(help="Words of a chunk at most.", min=1)] = (
        CHUNK_WORDS
    ),
    items_per_document: Annotated[
        int, typer.Option(help="Items made from one document at most.", min=1)
    ] = 1,
    noise: Annotated[
        NoiseChoice, typer.Option(help="The nearest chunks of other documents, or any of them.")
    ] = NoiseChoice.HARD,
    questions: Annotated[
        str | None,
        typer.Option(
            metavar="JUDGE",
            help="A model, as --judge names it elsewhere (openai:MODEL), writes the questions of "
            "documents that have none.",
        ),
    ] = None,
    judge_options: JudgeOptions = None,
    seed: Annotated[int, typer.Option(help="Draws noisy chunks.")] = 0,
    as_json: _Json = False,
) -> None:
    """Make a data set for context-coverage out of documents.

    The file is meant to be read and edited: one item a line.
    """
    refuse_input(output, documents, option="-o")
    given = read_documents(documents)
    if questions is not None:
        given = _with_questions(given, _writer(questions, judge_options))
    elif judge_options:
        raise ConfigError("--judge-option is for the model that writes questions: add --questions")
    built = build_items(
        given,
        golden=golden,
        noisy=noisy,
        chunk_words=chunk_words,
        items_per_document=items_per_document,
        noise=noise.value,
        seed=seed,
    )
    lines = (f"{item.model_dump_json(exclude_defaults=True)}\n" for item in built.items)
    write_private(output, "".join(lines), what="the data set")
    typer.echo(_built_as_json(built) if as_json else visible(_built_as_text(built, output)))


def _judge(choice: str | None, options: Sequence[str] | None, prompt: PromptStyle | None) -> Judge:
    if prompt is None:
        return judge_from(choice, options)
    named = choice or os.environ.get(JUDGE_VARIABLE, "")
    if not named or not takes_options(named):
        raise ConfigError(f"--prompt needs a language model, not {named!r}: give openai:MODEL")
    return judge_from(choice, [*(options or ()), f"extraction={_EXTRACTION[prompt]}"])


def _writer(choice: str, options: Sequence[str] | None) -> ModelJudge:
    """The model that writes questions, as a judge bounds and asks it."""
    # Its client alone takes half a second to import.
    from claimspan.judges.llm.judge import ModelJudge

    judge = judge_from(choice, options)
    if not isinstance(judge, ModelJudge):
        raise ConfigError(f"--questions needs a language model, not {choice!r}: give openai:MODEL")
    return judge


def _judge_all(
    items: Sequence[CoverageItem],
    judge: Judge,
    output: Path | None,
    progress: bool | None,
    settings: tuple[bool, int, int],
) -> list[JudgedItem]:
    """Judge what is not in the file of results yet; returns all items, in order."""
    batched, max_facts, concurrency = settings
    with ExitStack() as stack:
        results = None
        if output is not None:
            results = stack.enter_context(JudgedFile(output, items, judge_of(judge)))
        known = {} if results is None else results.known
        left = [i for i in range(len(items)) if i not in known or known[i].verdicts is None]
        advance = stack.enter_context(progress_bar("judging", total=len(left), show=progress))

        def keep(judged: JudgedItem) -> None:
            if results is not None:
                results.add(judged)
            if judged.verdicts is not None or judged.error is not None:
                advance()

        return asyncio.run(
            ajudge_items(
                items,
                judge,
                batched=batched,
                max_facts=max_facts,
                concurrency=concurrency,
                known=known,
                keep=keep,
            )
        )


def _write_combinations(
    path: Path,
    items: Sequence[CoverageItem],
    judged: Sequence[JudgedItem],
    own: Mapping[str, RetrievalMetric],
) -> None:
    scored = (
        each
        for item, found in zip(items, judged, strict=True)
        for each in score_combinations(item, found, {**BASELINES, **own})
    )
    lines = "".join(f"{each.model_dump_json()}\n" for each in scored)
    write_private(path, lines, what="the combinations")


def _with_questions(documents: Sequence[Document], judge: ModelJudge) -> list[Document]:
    from claimspan.benchmarks.context_coverage.questions import awrite_questions

    return asyncio.run(awrite_questions(documents, judge.chat_model))


def _built_as_json(built: Built) -> str:
    return json.dumps({"items": len(built.items), "left_out": built.left_out})


def _built_as_text(built: Built, output: Path) -> str:
    lines = [f"{len(built.items)} items written to {output}"]
    if built.left_out:
        lines.append(
            f"{len(built.left_out)} documents with fewer than two sentences were left out: "
            f"{', '.join(built.left_out[:5])}"
        )
    return "\n".join(lines)
