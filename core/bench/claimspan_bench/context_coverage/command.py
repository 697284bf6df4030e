"""The commands ``claimspan bench context-coverage`` and ``context-coverage-build``."""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from claimspan.cli.options import JudgeName, JudgeOptions, judge_from
from claimspan.errors import ConfigError
from claimspan.files.private import refuse_input, write_private
from claimspan.judges import JUDGE_VARIABLE
from claimspan.judges.choice import takes_options
from claimspan.loading import load_object
from claimspan.progress import progress_bar
from claimspan.records import Chunk
from claimspan.text.visible import visible
from claimspan_bench.context_coverage.builder import (
    CHUNK_WORDS,
    GOLDEN,
    NOISY,
    awrite_questions,
    build_items,
)
from claimspan_bench.context_coverage.items import CoverageItem, read_documents, read_items
from claimspan_bench.context_coverage.judging import (
    CONCURRENCY,
    MAX_FACTS,
    JudgedItem,
    ajudge_items,
    judge_of,
    judged_file,
)
from claimspan_bench.context_coverage.rankings import (
    BASELINES,
    MAX_CHUNKS,
    CoverageResult,
    RetrievalMetric,
    score_combinations,
    summarize,
)
from claimspan_bench.shown import (
    SOME_FAILED,
    AsJson,
    Progress,
    Table,
    aligned,
    interval,
    piped,
    refuse_both,
)

if TYPE_CHECKING:
    from claimspan.judges.llm.extraction import Extraction

__all__ = ["as_text", "build", "context_coverage"]

_MAX_REASONS: Final = 5
"""Reasons of failed items that are shown."""


class _PromptStyle(StrEnum):
    """How a language model extracts the facts: directly, or after a chain of thought."""

    IO = "io"
    COT = "cot"


class _NoiseChoice(StrEnum):
    """Which chunks of other documents are the noisy ones."""

    HARD = "hard"
    RANDOM = "random"


_EXTRACTION: Final[Mapping[_PromptStyle, Extraction]] = {
    _PromptStyle.IO: "direct",
    _PromptStyle.COT: "reasoned",
}


def context_coverage(
    file: Annotated[Path, typer.Argument(help="The data set, JSON lines.")],
    judge: JudgeName = None,
    judge_options: JudgeOptions = None,
    prompt: Annotated[
        _PromptStyle | None,
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
    progress: Progress = None,
    as_json: AsJson = False,
) -> None:
    """Measure how well metrics rank combinations of retrieved chunks.

    Exits with 1 where some items could not be judged.
    """
    refuse_both(markdown, as_json)
    # Before judging, which costs money: a metric that cannot be loaded is noticed at once.
    own = dict(map(_loaded_metric, metrics or ()))
    refuse_input(combinations, [file, output], option="--combinations")
    items = read_items(file)
    options = list(judge_options or ())
    if prompt is not None:
        named = judge or os.environ.get(JUDGE_VARIABLE, "")
        if not named or not takes_options(named):
            raise ConfigError(f"--prompt needs a language model, not {named!r}: give openai:MODEL")
        options.append(f"extraction={_EXTRACTION[prompt]}")
    chosen = judge_from(judge, options)
    with ExitStack() as stack:
        results = None
        if output is not None:
            results = stack.enter_context(judged_file(output, items, judge_of(chosen)))
        known = {} if results is None else results.known
        left = [i for i in range(len(items)) if i not in known or known[i].verdicts is None]
        advance = stack.enter_context(progress_bar("judging", total=len(left), show=progress))

        def keep(judged: JudgedItem) -> None:
            if results is not None:
                results.add(judged)
            if judged.verdicts is not None or judged.error is not None:
                advance()

        judged = asyncio.run(
            ajudge_items(
                items,
                chosen,
                batched=batched,
                max_facts=max_facts,
                concurrency=concurrency,
                known=known,
                keep=keep,
            )
        )
    result = summarize(items, judged, metrics=own)
    if combinations is not None:
        scored = (
            each
            for item, found in zip(items, judged, strict=True)
            for each in score_combinations(item, found, {**BASELINES, **own})
        )
        lines = "".join(f"{each.model_dump_json()}\n" for each in scored)
        write_private(combinations, lines, what="the combinations")
    if as_json:
        typer.echo(result.model_dump_json())
    else:
        typer.echo(visible(_as_markdown(result) if markdown else as_text(result)))
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
        _NoiseChoice, typer.Option(help="The nearest chunks of other documents, or any of them.")
    ] = _NoiseChoice.HARD,
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
    as_json: AsJson = False,
) -> None:
    """Make a data set for context-coverage out of documents.

    The file is meant to be read and edited: one item a line.
    """
    refuse_input(output, documents, option="-o")
    given = read_documents(documents)
    if questions is not None:
        # Its client alone takes half a second to import.
        from claimspan.judges.llm.judge import ModelJudge

        judge = judge_from(questions, judge_options)
        if not isinstance(judge, ModelJudge):
            raise ConfigError(
                f"--questions needs a language model, not {questions!r}: give openai:MODEL"
            )
        given = asyncio.run(awrite_questions(given, judge.chat_model))
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
    if as_json:
        typer.echo(json.dumps({"items": len(built.items), "left_out": built.left_out}))
        return
    typer.echo(visible(f"{len(built.items)} items written to {output}"))
    if built.left_out:
        typer.echo(
            visible(
                f"{len(built.left_out)} documents with fewer than two sentences were left out: "
                f"{', '.join(built.left_out[:5])}"
            )
        )


def _loaded_metric(place: str) -> tuple[str, RetrievalMetric]:
    """The name of a function of the user's, and a metric whose errors are ``ConfigError``."""
    function = load_object(place)
    name = place.rpartition(":")[2]
    if not callable(function):
        raise ConfigError(f"--metric {place!r} cannot be called: name a function")
    metric = cast("Callable[[CoverageItem, Sequence[Chunk]], float | None]", function)

    def guarded(item: CoverageItem, chunks: Sequence[Chunk]) -> float | None:
        try:
            return metric(item, chunks)
        except Exception as error:
            raise ConfigError(
                f"metric {name!r} raised {type(error).__name__} on item {item.id!r}: correct it, "
                "or return None where it has no score"
            ) from error

    return name, guarded


# --- what is shown ---


def as_text(result: CoverageResult) -> str:
    """Format the result for a terminal or a file."""
    first, *others = _facts(result)
    facts = "\n".join([first, *(f"  {line}" for line in others)])
    tables = [
        f"{title}\n{aligned(table, figures=True, indent='  ')}"
        for title, table in _tables(result).items()
    ]
    return "\n\n".join((facts, *tables, *_remarks(result)))


def _as_markdown(result: CoverageResult) -> str:
    facts = "\n".join(f"- {line}" for line in _facts(result))
    tables = [
        f"## {title}\n\n{piped(table, figures=True)}" for title, table in _tables(result).items()
    ]
    return "\n\n".join(("# Context coverage", facts, *tables, *_remarks(result)))


def _facts(result: CoverageResult) -> Iterator[str]:
    yield (
        f"{len(result.items)} of {result.n_items} items, {result.n_facts:,} facts, "
        f"{result.n_combinations:,} combinations of chunks"
    )
    yield f"judge: {result.judge}, verdicts: {result.score_mode or 'none'}"
    yield (
        f"calls: {result.calls:,} made ({result.calls_unbatched:,} with each fact and chunk in "
        f"a call of its own), ${result.cost_usd:.4f}"
    )


def _tables(result: CoverageResult) -> dict[str, Table]:
    """Title to table."""
    kinds = {"golden": result.golden_score, "noisy": result.noisy_score}
    rankings: list[Sequence[str]] = []
    for name, quality in result.ranking.items():
        versus = quality.versus_continuous
        rankings.append(
            (
                name,
                interval(quality.tau),
                f"{quality.tau.n if quality.tau else 0:,}",
                f"{quality.undefined:,}",
                interval(versus.difference if versus else None),
                f"{versus.p_value:.4f}" if versus else "-",
            )
        )
    return {
        "Weighted score of a chunk: mean of p(entailed) over the facts": [
            ("chunks", "mean", "n"),
            *((kind, interval(each), f"{each.n if each else 0:,}") for kind, each in kinds.items()),
        ],
        "Of five retrieved chunks, the first two score above the last two": [
            ("score", "share", "above", "equal", "below", "left out"),
            *(
                (
                    name,
                    interval(each.share),
                    *(f"{n:,}" for n in (each.above, each.equal, each.below, each.left_out)),
                )
                for name, each in result.pairs.items()
            ),
        ],
        "Kendall's tau of the combinations of an item against its gold coverage": [
            ("metric", "mean tau", "items", "undefined", "minus continuous", "p"),
            *rankings,
        ],
    }


def _remarks(result: CoverageResult) -> Iterator[str]:
    """What a reader has to know to trust the figures."""
    yield "Intervals are of 95 %: whole questions are resampled, and shares have Wilson's interval."
    yield "p is that of a paired permutation test, for one comparison."
    sources = Counter(each.gold_source for each in result.items)
    if sources["verdicts"]:
        yield (
            f"The gold coverage of {sources['verdicts']} items comes from the judge's own verdicts "
            "on golden chunks, which favours our own scores: give the items gold."
        )
    if sources[None]:
        yield f"{sources[None]} items have no gold coverage: a verdict is undecided."
    if sampled := sum(each.is_sampled for each in result.items):
        yield (
            f"{sampled} items have more than {MAX_CHUNKS} chunks: a sample of their combinations "
            "was scored."
        )
    if dropped := sum(each.facts_dropped for each in result.items):
        yield f"{dropped:,} facts beyond --max-facts were not checked."
    reasons = Counter(result.failed.values()).most_common()
    yield from (f"failed: {n} items, {reason}" for reason, n in reasons[:_MAX_REASONS])
    if len(reasons) > _MAX_REASONS:
        yield f"failed: {len(reasons) - _MAX_REASONS} further reasons, see --json"
