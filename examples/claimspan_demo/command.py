"""The command ``claimspan demo``: runs a real pipeline with a real model and evaluates it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from claimspan.cli.options import JUDGE_HELP, JudgeOptions, judge_from
from claimspan.errors import ConfigError
from claimspan.files.private import check_replaceable, write_private
from claimspan.judges import Judge
from claimspan.report import ReportEntry, render_report, summarise
from claimspan_demo.backend import Backend, backend

if TYPE_CHECKING:
    from claimspan_demo.questions import Question

__all__ = ["demo"]

_Questions = Annotated[
    int, typer.Option("--questions", "-n", min=1, help="Ask the first N of 24 questions.")
]
_JudgeName = Annotated[
    str | None,
    typer.Option(
        metavar="JUDGE",
        help=f"{JUDGE_HELP}; by default that of CLAIMSPAN_JUDGE, else local if claimspan[local] is "
        "installed, else lexical.",
    ),
]


class _Model(NamedTuple):
    base_url: str
    name: str
    api_key: str


def demo(
    questions: _Questions = 12,
    judge: _JudgeName = None,
    judge_options: JudgeOptions = None,
    model: Annotated[
        str | None,
        typer.Option(help="A model at OPENAI_BASE_URL, in place of the included one."),
    ] = None,
    traces: Annotated[
        Path, typer.Option(help="The trace file to write; an existing file is replaced.")
    ] = Path("claimspan-demo.jsonl"),
    report: Annotated[Path, typer.Option(help="The HTML page to write.")] = Path(
        "claimspan-demo.html"
    ),
    phoenix: Annotated[
        bool, typer.Option("--phoenix", help="Start Phoenix beside it, to look at the traces.")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(help="Keep Phoenix's database in this folder; else it is deleted."),
    ] = None,
    wait: Annotated[
        bool | None,
        typer.Option(help="Keep Phoenix up until Ctrl-C. [default: where a terminal is there]"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Run a real RAG pipeline on this machine and evaluate it.

    The pipeline answers questions about the handbook of a company. It retrieves sections by BM25
    and generates with SmolLM2-135M, or with --model on the endpoint of OPENAI_BASE_URL and
    OPENAI_API_KEY. Every answer is evaluated against its chunks and its ground truth, and its
    scores are printed as soon as they are there. The command writes a trace file and a report, and
    also sends the traces to OTEL_EXPORTER_OTLP_ENDPOINT where that is set.
    With --phoenix it also starts Phoenix on this machine, and shows traces and scores there.
    """
    from claimspan_demo.questions import load_questions

    if not phoenix and (keep is not None or wait is not None):
        raise ConfigError("--keep and --wait are about Phoenix: add --phoenix")
    evaluates = judge_from(judge, judge_options)
    # Now, and not after all questions: what was there stays until the new page is complete.
    check_replaceable(report, what="the report")
    check_replaceable(traces, what="traces")
    traces.unlink(missing_ok=True)
    with backend(keep) if phoenix else nullcontext() as beside:
        with _served(model) as served:
            asked = load_questions()[:questions]
            entries = _ask(asked, served, evaluates, traces, beside, quiet=as_json)
        write_private(report, render_report(entries, title="Handbook demo"), what="the report")
        written = {"traces": str(traces), "report": str(report)}
        if beside is not None:
            written["phoenix"] = beside.page
        _print(entries, served.name, written, as_json=as_json)
        if beside is not None:
            beside.stay(sys.stdout.isatty() if wait is None else wait)


def _print(
    entries: Sequence[ReportEntry], model: str, written: dict[str, str], *, as_json: bool
) -> None:
    """Print the results, and where more is to be seen."""
    from claimspan_demo.display import show

    if as_json:
        means = {summary.metric.name: summary.mean for summary in summarise(entries)}
        result = {"records": len(entries), "model": model, "means": means}
        typer.echo(json.dumps({**result, **written}))
        return
    show(entries, model=model)
    typer.echo(f"\ntraces: {written['traces']}")
    typer.echo(f"report: {written['report']}   (open it in a browser)")
    if "phoenix" in written:
        typer.echo(f"phoenix: {written['phoenix']}")


@contextmanager
def _served(model: str | None) -> Generator[_Model]:
    """Serve the included model on loopback, or use the model that the user named."""
    if model is None:
        from claimspan_demo.model import MODEL_NAME, serve_model

        with serve_model() as base_url:
            yield _Model(base_url, MODEL_NAME, "none")
        return
    api_key = os.environ.get("OPENAI_API_KEY")
    if not api_key:
        raise ConfigError("--model needs OPENAI_API_KEY: set it, or leave --model out")
    yield _Model(os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1"), model, api_key)


def _unreachable(model: _Model, error: Exception) -> ConfigError:
    return ConfigError(
        f"model {model.name!r} at {model.base_url} failed with {type(error).__name__}: check "
        "OPENAI_BASE_URL, OPENAI_API_KEY and --model"
    )


def _ask(
    questions: Sequence[Question],
    model: _Model,
    judge: Judge,
    traces: Path,
    beside: Backend | None,
    *,
    quiet: bool,
) -> Sequence[ReportEntry]:
    """Run the pipeline on every question with the callback attached, and read the trace file."""
    from openai import OpenAIError

    from claimspan_demo.corpus import load_corpus
    from claimspan_demo.display import Arrivals
    from claimspan_demo.pipeline import build_chain, chat_model
    from claimspan_demo.retriever import Bm25Retriever
    from claimspan_langchain import ClaimspanCallbackHandler
    from claimspan_tracing import Monitor, configure
    from claimspan_tracing.trace_file.records import read_trace_file

    provider = configure(file=traces, service_name="claimspan-demo")
    if beside is not None:
        beside.export(provider)
    monitor = Monitor(
        judge,
        ground_truth={question.query: question.ground_truth for question in questions},
        tracer_provider=provider,
        sinks=[] if beside is None else beside.sinks(),
        on_result=None if quiet else Arrivals(len(questions)),
        # Nobody else needs this machine, and somebody waits.
        max_cpu_share=1.0,
    )
    # On standard error, and before the first answer: a small machine takes some seconds for it.
    told = f"asking {len(questions)} questions; each answer is shown as soon as it is judged ..."
    typer.echo(told, err=True)
    chain = build_chain(chat_model(*model), Bm25Retriever(documents=load_corpus()))
    handler = ClaimspanCallbackHandler(monitor)
    for number, question in enumerate(questions):
        metadata = {"question_id": question.id}
        try:
            chain.invoke(question.query, {"callbacks": [handler], "metadata": metadata})
        except OpenAIError as error:
            if number == 0:
                raise _unreachable(model, error) from error
            # A single failed answer is recorded as a state on its trace; others may succeed.
    monitor.shutdown(timeout=60)
    provider.shutdown()
    return read_trace_file(traces)
