"""Prints the results of the demo in the terminal: scores, and the worst unsupported claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from rich import box
from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from claimspan import Chunk, Label
from claimspan.metrics import CATALOGUE
from claimspan.report import ReportClaim, ReportEntry, summarise
from claimspan.text.visible import visible
from claimspan_tracing import Finished

__all__ = ["show"]

COLUMNS: Final = {
    "faithfulness": "faith-\nful",
    "contradicted_by_chunks": "contra-\ndicted",
    "precision": "pre-\ncision",
    "recall": "recall",
    "claim_recall": "claim\nrecall",
    "context_precision": "context\nprec.",
}
"""Metric to column head: two generator metrics, two overall, two retriever metrics."""

HEAD_WIDTH: Final = 7
MIN_QUESTION_WIDTH: Final = 16
WORST_CLAIMS: Final = 4
ARRIVAL_METRICS: Final = ("faithfulness", "f1")


class _Finding(NamedTuple):
    """A claim of a response that no chunk entails."""

    entry: ReportEntry
    claim: ReportClaim
    chunk: Chunk | None
    """The chunk that contradicts the claim, else the first retrieved chunk."""


class Arrivals:
    """Prints each answer with its scores as soon as it is judged, also without a terminal."""

    def __init__(self, total: int) -> None:
        """Expect so many answers."""
        self._total = total
        self._count = 0

    def __call__(self, finished: Finished) -> None:
        """Print one line about an answer."""
        self._count += 1
        scores = {each.name: each.value for each in finished.assessments}
        parts = [f"{name} {scores[name]:.2f}" for name in ARRIVAL_METRICS if name in scores]
        said = ", ".join(parts) or "it makes no claim"
        query = visible(finished.job.record.query)
        # Flushed: whoever watches a file or a pipe waits for it as well.
        print(f"[{self._count}/{self._total}] {query} - {said}", flush=True)


def show(entries: Sequence[ReportEntry], *, model: str) -> None:
    """Print the table of scores and the worst claims.

    Args:
        entries: One entry for each question.
        model: The name of the model that answered.
    """
    console = Console()
    console.print(_table(entries, model, console.width))
    for finding in _worst(entries):
        console.print(_panel(finding))


def _table(entries: Sequence[ReportEntry], model: str, width: int) -> Table:
    judges = ", ".join(sorted({entry.judge for entry in entries if entry.judge}))
    title = f"{len(entries)} answers of {model}, judged by {judges}"
    table = Table(title=Text(visible(title)), show_footer=True, box=box.SIMPLE_HEAD, padding=0)
    room = width - len(COLUMNS) * (HEAD_WIDTH + 1) - 3
    table.add_column("question", "mean", no_wrap=True, max_width=max(room, MIN_QUESTION_WIDTH))
    means = {summary.metric.name: summary.mean for summary in summarise(entries)}
    for metric, head in COLUMNS.items():
        footer = _cell(metric, means.get(metric))
        table.add_column(head, footer, justify="right", min_width=HEAD_WIDTH)
    for entry in entries:
        cells = [_cell(metric, entry.scores.get(metric)) for metric in COLUMNS]
        table.add_row(Text(visible(entry.query), overflow="ellipsis"), *cells)
    return table


def _cell(metric: str, value: float | None) -> Text:
    """Format a score in green, yellow or red; an undefined score is a dash."""
    if value is None:
        return Text("-", style="dim")
    goodness = 1 - value if CATALOGUE[metric].failure else value
    style = "green" if goodness >= 0.75 else "yellow" if goodness >= 0.4 else "red"
    return Text(f"{value:.2f}", style=style)


def _worst(entries: Sequence[ReportEntry]) -> list[_Finding]:
    """The surest finding of each question, the surest of all first."""
    firsts = [finding for entry in entries for finding in list(_findings(entry))[:1]]
    return sorted(firsts, key=_severity)[:WORST_CLAIMS]


def _findings(entry: ReportEntry) -> Iterator[_Finding]:
    """The findings of one record, the surest first."""
    bad = [c for c in entry.response_claims if c.label in (Label.CONTRADICTED, Label.NEUTRAL)]
    chunks = {chunk.id: chunk for chunk in entry.chunks}
    findings = [
        _Finding(entry, claim, chunks.get(next(iter(claim.contradicted_by), entry.chunks[0].id)))
        for claim in bad
        if entry.chunks
    ]
    return iter(sorted(findings, key=_severity))


def _severity(finding: _Finding) -> tuple[float, bool]:
    """The claims first of which the judge is surest; a label without a confidence is the last."""
    contradicted = finding.claim.label is Label.CONTRADICTED
    return -(finding.claim.confidence or 0.0), not contradicted


def _panel(finding: _Finding) -> Panel:
    contradicted = finding.claim.label is Label.CONTRADICTED
    style = "red" if contradicted else "yellow"
    verdict = "contradicted by" if contradicted else "not supported by"
    body = Text.assemble(
        (visible(finding.entry.query), "bold"),
        "\n",
        ("claim   ", "dim"),
        (visible(finding.claim.text), style),
    )
    if finding.chunk is not None:
        body.append(visible(f"\n{verdict} {finding.chunk.id}   "), "dim")
        body.append(visible(" ".join(finding.chunk.text.split())[:320]))
    return Panel(body, border_style=style)
